"""From a shown line to cells: gutter, rank, text with what is marked in it. Log text is never markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mtpdoctor.patterns import lazy
from mtpdoctor.tui.log.marks import GLYPHS, Kind, Mark
from mtpdoctor.tui.log.shown import Shown

STYLES = (
    "number",
    "rank",
    "prefix",
    "root",
    "evidence",
    "finding",
    "consequence",
    "ready",
    "stage",
    "error",
    "warning",
    "words",
    "match",
    "cursor",
    "folded",
)
_BAD = lazy(r"^(?:\w+\.)*\w*(?:Error|Exception)\b|\b(?:ERROR|CRITICAL|FATAL)\b|^Traceback \(most recent")
_WARN = lazy(r"\bWARN(?:ING)?\b|^\S*Warning:")
_RANK_COLUMNS = 11
_STAGE_COLUMNS = 13


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a row: number, mark, stage, rank, text."""

    width: int
    digits: int
    rank: int  # columns of the rank, 0: none shown
    stage: int  # columns of the stage's name
    prefix: bool  # SGLang's own "[time rank]" is shown

    @property
    def gutter(self) -> int:
        return self.digits + 3 + (self.stage + 1 if self.stage else 0) + (self.rank + 1 if self.rank else 0)

    @property
    def room(self) -> int:
        return max(self.width - self.gutter, 10)


def layout_of(width: int, count: int, ranks: Sequence[str], prefix: bool, stages: bool) -> Layout:
    """``stages``: the log has marks of stages."""
    rank = 0 if prefix else min(max((len(r) for r in ranks), default=0), _RANK_COLUMNS)
    stage = _STAGE_COLUMNS if stages and width >= 120 else 0
    return Layout(width, max(len(str(count)), 4), rank, stage, prefix)


class Painter:
    """Paints rows; ``style`` gives the rich style of a name in STYLES, "" the plain one."""

    def __init__(self, style: Callable[[str], Style]) -> None:
        self._style = style

    def text_of(self, line: Shown, layout: Layout, folded: int = 0) -> str:
        text = line.text if layout.prefix else line.text[line.body :]
        return f"{text}  (×{folded})" if folded else text

    def row(
        self,
        line: Shown,
        number: int | None,
        mark: Mark | None,
        layout: Layout,
        spans: Sequence[tuple[int, int]],
        *,
        start: int = 0,
        end: int | None = None,
        cursor: bool = False,
        folded: int = 0,
        first: bool = True,
    ) -> Strip:
        """The columns of the text from ``start`` to ``end``; not ``first``: a row that goes on, wrapped."""
        plain = self._style("")
        gutter = self._gutter(line, number, mark, layout, first)
        text = self.text_of(line, layout, folded)
        body = self._body(line, text, mark, layout, spans, folded)
        strip = Strip(body).crop(start, end if end is not None else start + layout.room)
        rest = (
            self._style(_name(mark))
            if mark is not None and mark.kind in (Kind.ROOT, Kind.EVIDENCE)
            else plain
        )
        out = Strip.join([Strip(gutter), strip]).extend_cell_length(layout.width, Style(bgcolor=rest.bgcolor))
        out = out.crop(0, layout.width)
        if cursor:
            return out.apply_style(self._style("cursor"))
        return out

    def _gutter(
        self, line: Shown, number: int | None, mark: Mark | None, layout: Layout, first: bool
    ) -> list[Segment]:
        plain = self._style("")
        shown = str(number) if first and number is not None else "~" if first else ""
        out = [Segment(f"{shown:>{layout.digits}} ", self._style("number"))]
        glyph = GLYPHS[mark.kind] if mark is not None and first else " "
        out.append(Segment(glyph, self._style(_name(mark)) if mark is not None else plain))
        if layout.stage:
            label = mark.label if mark is not None and first else ""
            out.append(Segment(f" {label:<{layout.stage}}", self._style("stage")))
        if layout.rank:
            rank = (line.rank or "") if first else ""
            out.append(Segment(f" {rank[: layout.rank]:<{layout.rank}}", self._style("rank")))
        out.append(Segment(" ", plain))
        return out

    def _body(
        self,
        line: Shown,
        text: str,
        mark: Mark | None,
        layout: Layout,
        spans: Sequence[tuple[int, int]],
        folded: int,
    ) -> list[Segment]:
        base = self._style(self._base(line, mark))
        shown_prefix = line.body if layout.prefix else 0
        edges: list[tuple[int, int, Style]] = []
        if shown_prefix and not (mark and mark.kind is Kind.CONSEQUENCE):
            edges.append((0, shown_prefix, self._style("prefix")))
        for word in mark.words if mark is not None else ():
            at = text.find(word)
            if word and at >= 0 and len(word) < 0.6 * len(text):
                edges.append((at, at + len(word), self._style("words")))
        edges += [(a, b, self._style("match")) for a, b in spans]
        if folded:
            edges.append((len(text) - len(f"(×{folded})"), len(text), self._style("folded")))
        return _segments(text, base, edges)

    def _base(self, line: Shown, mark: Mark | None) -> str:
        if mark is not None and mark.kind not in (Kind.STAGE, Kind.ERROR):
            return _name(mark)
        body = line.text[line.body :][:400]
        if _BAD.search(body):
            return "error"
        return "warning" if _WARN.search(body) else ""


def _name(mark: Mark) -> str:
    return mark.kind.name.lower()


def _segments(text: str, base: Style, edges: Sequence[tuple[int, int, Style]]) -> list[Segment]:
    if not edges:
        return [Segment(text, base)]
    cuts = sorted({0, len(text), *(min(max(x, 0), len(text)) for a, b, _ in edges for x in (a, b))})
    out = []
    for a, b in pairwise(cuts):
        style = base
        for start, end, more in edges:
            if start <= a and b <= end:
                style = style + more
        out.append(Segment(text[a:b], style))
    return out
