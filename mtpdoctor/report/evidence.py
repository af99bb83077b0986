"""Log lines as evidence: gutter with line numbers, shortened around the decisive words, those marked."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.report.style import Style
from mtpdoctor.text import char_width, width

MARKED_ROWS = 2  # carets cost a row each
_GAP = " ... "
_Span = tuple[int, int]


def excerpt(
    number: int,
    text: str,
    marks: Sequence[str],
    *,
    gutter: int,
    columns: int,
    rows: int,
    style: Style,
    root: bool = False,
) -> list[str]:
    """One log line as at most ``rows`` rows (plus rows of carets) of ``columns`` columns.

    ``gutter`` is the width of the line-number column. The ``root`` line has a pointer at its left and is
    bold where no word is marked.
    """
    room = max(columns - gutter - 7, 10)
    text = " ".join(text.split())
    shown = shorten(text, marks, room, rows)
    cuts = row_spans(shown, room)
    spans = _few_rows(mark_spans(shown, marks), cuts)
    out: list[str] = []
    for i, (start, end) in enumerate(cuts):
        label = str(number) if i == 0 else ""
        pointer = style("red", "->") if root and i == 0 else "  "
        bar = style("cyan", f"{label:>{gutter}} |")
        inside = [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]
        if root and not spans:
            body = style("bold", shown[start:end])
        else:
            body = _styled(shown, start, end, inside, style)
        out.append(f"{pointer}  {bar} {body}")
        if inside and not style.color:
            out.append(f"    {'':>{gutter}} | {_carets(shown, start, inside)}")
    return out


def shorten(text: str, marks: Sequence[str], columns: int, rows: int = 1) -> str:
    """``text`` cut to fit ``rows`` rows of ``columns``: its beginning and what surrounds the ``marks``."""
    if _fits(text, columns, rows):
        return text
    spans = _find(text, marks)
    head = _head(text)
    context = 400 if spans else 0
    while context:
        around = ((max(a - context, 0), min(b + context, len(text))) for a, b in spans)
        kept = [_to_words(text, s, spans) for s in _merge([(0, head), *around])]
        candidate = _GAP.join(text[a:b].strip() for a, b in kept)
        if kept[-1][1] < len(text):
            candidate += _GAP.rstrip()
        if _fits(candidate, columns, rows):
            return candidate
        context = context * 4 // 5
    start = spans[0][0] if spans and spans[0][0] > columns * rows // 2 else 0
    lead = _GAP.lstrip() if start else ""
    room = columns * rows
    while True:
        kept_text = _whole_words(_cut(text[start:], room - len(lead) - len(_GAP.rstrip())))
        candidate = lead + kept_text + _GAP.rstrip()
        if room <= columns or _fits(candidate, columns, rows):
            return candidate
        room -= 4


def _fits(text: str, columns: int, rows: int) -> bool:
    size = width(text)
    return size <= columns or (size <= columns * rows and len(row_spans(text, columns)) <= rows)


def _whole_words(text: str) -> str:
    """``text`` without a last word that may be cut, unless that word is long."""
    space = text.rfind(" ")
    return text[:space] if space > len(text) - 24 and space > 0 else text.rstrip()


def mark_spans(text: str, marks: Sequence[str]) -> list[_Span]:
    """Where the decisive words stand, most telling first; none when they are nearly the whole text, for
    then they single nothing out."""
    if sum(b - a for a, b in _find(text, marks)) > 0.6 * len(text):
        return []
    return [span for mark in marks for span in _find(text, (mark,))]


def _few_rows(spans: list[_Span], rows: list[_Span]) -> list[_Span]:
    """The first of ``spans`` that stand on MARKED_ROWS rows, in the order of the text."""
    marked: set[int] = set()
    kept: list[_Span] = []
    for a, b in spans:
        on = {i for i, (start, end) in enumerate(rows) if a < end and b > start}
        if len(marked | on) <= MARKED_ROWS:
            marked |= on
            kept.append((a, b))
    return _merge(kept)


def row_spans(text: str, columns: int) -> list[_Span]:
    """Start and end of each row of ``text`` broken at spaces; words longer than a row are cut."""
    rows: list[_Span] = []
    start = 0
    while start < len(text):
        end, used, space = start, 0, -1
        while end < len(text):
            used += char_width(text[end])
            if used > columns and end > start:
                break
            if text[end] == " ":
                space = end
            end += 1
        if end < len(text) and text[end] != " " and space > start:
            end = space
        rows.append((start, end))
        start = end
        while start < len(text) and text[start] == " ":
            start += 1
    return rows or [(0, 0)]


def _find(text: str, marks: Sequence[str]) -> list[_Span]:
    found: list[_Span] = []
    for mark in marks:
        mark = " ".join(mark.split())
        at = text.find(mark) if mark else -1
        if at >= 0:
            found.append((at, at + len(mark)))
    return _merge(found)


def _merge(spans: list[_Span]) -> list[_Span]:
    out: list[_Span] = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


def _to_words(text: str, span: _Span, marks: list[_Span]) -> _Span:
    """The span narrowed to whole words, but never into a mark."""
    a, b = span
    first = min((m[0] for m in marks if m[0] >= a), default=b)
    last = max((m[1] for m in marks if m[1] <= b), default=a)
    if a > 0 and text[a - 1] != " ":
        space = text.find(" ", a, min(first, a + 24))
        a = space + 1 if space >= 0 else a
    if b < len(text) and text[b] != " ":
        space = text.rfind(" ", max(last, b - 40), b)
        b = space if space >= 0 else b
    return a, b


def _head(text: str) -> int:
    """The length of what names the line: "ValueError:", else its first words."""
    colon = text.find(": ", 0, 48)
    return colon + 1 if colon > 0 else min(24, len(text))


def _cut(text: str, columns: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += char_width(char)
        if used > columns:
            return text[:i]
    return text


def _styled(text: str, start: int, end: int, spans: list[_Span], style: Style) -> str:
    out, at = "", start
    for a, b in spans:
        out += text[at:a] + style("mark", text[a:b])
        at = b
    return out + text[at:end]


def _carets(text: str, start: int, spans: list[_Span]) -> str:
    out, at = "", start
    for a, b in spans:
        out += " " * width(text[at:a]) + "^" * width(text[a:b])
        at = b
    return out.rstrip()
