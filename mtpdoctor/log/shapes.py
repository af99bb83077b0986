"""The shape of a prefix that only this file has: what a platform puts in front of every line.

A line of SGLang's own form somewhere behind the beginning of a line shows where the prefix ends. Its
text, with whatever counts or names something by a number left open, must then fit nearly all lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mtpdoctor.log.kinds import STRONG, Kind, Peeled
from mtpdoctor.patterns import lazy

_LONGEST = 240  # characters of a prefix
_LEAST, _SHARE = 5, 0.9  # lines that must carry it
_FEW_VALUES = 16  # of a field: more, and it counts lines rather than naming processes
_TELLING = lazy(
    r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d|Traceback \(most recent call last\):|usage: \S|[A-Za-z_.]+Error: "
    r'|  File "[^"]+", line \d+, in '
)
_STRONG_AT = lazy(r"(?<!\S)[\[(](?=\S)")
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d+)?"
_LEVEL = r"(?i:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SUCCESS|TRACE)|stdout|stderr"
_NAME = r"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_TOKEN = lazy(
    rf"(?P<time>{_TIME})|(?P<level>\b(?:{_LEVEL})\b)|(?P<name>\b(?:{_NAME})\b)"
    r"|(?P<number>[\w.@/-]*\d[\w.@/-]*)|(?P<space>[ \t]+)|(?P<text>[^\W\d_]+|.)",
    re.S,
)
_FORMS = {
    "time": f"(?:{_TIME})",
    "level": f"(?:{_LEVEL})",
    "name": f"(?:{_NAME})",
    # whole words only, so that a line that does not fit is given up at once
    "number": r"(?=[\w.@/-]{0,120}\d)[\w.@/-]{1,160}",
    "space": r"[ \t]+",
}


def shape_of(lines: Sequence[str]) -> Kind | None:
    """The kind of a prefix of its own that nearly all ``lines`` carry, None when there is none."""
    lines = [text.split("\n", 1)[0] for text in lines]  # a JSON record may hold several
    if len(lines) < _LEAST:
        return None
    shapes: Counter[str] = Counter()
    for text in lines:
        end = _begins(text)
        if end == 0:  # the log itself begins here: no such line may be frequent
            shapes[""] += 1
        elif end is not None:
            shapes[_abstract(text[:end])] += 1
    if not shapes or shapes[""] > (1 - _SHARE) * len(lines):
        return None
    for shape, _ in shapes.most_common(4):
        if shape:
            kind = _kind(shape, lines)
            if kind is not None:
                return kind
    return None


def _begins(text: str) -> int | None:
    """Where the log's own text, or a prefix that is known anywhere, begins."""
    m = _TELLING.search(text, 0, _LONGEST)
    end = m.start() if m else None
    for at in _STRONG_AT.finditer(text, 0, end if end is not None else _LONGEST):
        rest = text[at.start() :]
        if any(kind.might(rest) and kind.peel(rest) is not None for kind in STRONG):
            return at.start()
    return end


def _abstract(prefix: str) -> str:
    """A regular expression of the prefix: constant text as it stands, the rest left open."""
    body = prefix.rstrip()
    out: list[str] = []
    for m in _TOKEN.finditer(body):
        kind = m.lastgroup or "text"
        form = _FORMS.get(kind)
        out.append(re.escape(m[0]) if form is None else f"({form})" if kind == "number" else form)
    # the blanks at its end are its own, those behind them the log's
    return f"{''.join(out)}(?:{re.escape(prefix[len(body) :])}|[ \\t]*$)" if body else ""


def _kind(shape: str, lines: Sequence[str]) -> Kind | None:
    pattern = re.compile(shape)
    found = [m for text in lines if (m := pattern.match(text)) is not None]
    if len(found) < max(_LEAST, _SHARE * len(lines)):
        return None
    most = min(_FEW_VALUES, max(len(found) // 3, 1))
    naming = [
        i for i in range(1, pattern.groups + 1) if len({m[i] for m in found}) <= most
    ]  # fields that tell processes apart

    def peel(text: str) -> Peeled | None:
        m = pattern.match(text)
        if m is None:
            return None
        time = re.search(_TIME, m[0])
        stream = " ".join(m[i] for i in naming)
        return Peeled(stream, time[0] if time else None, text[m.end() :])

    return Kind("shape", lambda text: True, peel, _SHARE, _LEAST)
