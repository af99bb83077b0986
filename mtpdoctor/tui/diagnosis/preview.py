"""The log around a line, beside the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from textual.content import Content
from textual.widget import Widget

from mtpdoctor.errors import UserError
from mtpdoctor.log.types import LogReading
from mtpdoctor.tui.diagnosis.parts import Place
from mtpdoctor.tui.log.marks import GLYPHS, Kind, Mark, Marks, marks_of
from mtpdoctor.tui.log.shown import Shown, masked, shown_parts
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.shown import cleaner_of, shown_line
from mtpdoctor.tui.styles import beside

_STYLES = {
    Kind.ROOT: "$text-error bold",
    Kind.EVIDENCE: "$text-warning",
    Kind.FINDING: "$text-warning",
    Kind.CONSEQUENCE: "$text-disabled",
    Kind.READY: "$text-success",
    Kind.STAGE: "",
    Kind.ERROR: "$text-error",
}
_GLYPHS = {Kind.STAGE: "$text-primary"}  # where the text of the line has another colour
_WHOLE = 10  # rows of the line that is looked at; the others have one each


class Preview(Widget):
    """Only to be looked at; the log itself is in its region."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__()
        self._reading: LogReading | None = None
        self._marks: Marks = {}
        self._clean: Callable[[str], str] = masked
        self._at: tuple[int, int] | None = None  # file, line

    @property
    def has_lines(self) -> bool:
        return self._at is not None

    def show(self, session: Session, place: Place | None) -> None:
        """The lines around ``place``; without one the end of a log that says no more."""
        self._reading = session.reading
        self._marks = marks_of(session.report, session.reading, session.diagnosis)
        self._clean = cleaner_of(session).text
        self._at = None
        if self._reading is not None and session.report is not None:
            if place is not None:
                self._at = (place.file, place.number)
            elif session.report.outcome == "unfinished" and self._reading.files:
                last = len(self._reading.files) - 1
                self._at = (last, self._reading.files[last].line_count)
        self.refresh()

    def look_at(self, place: Place) -> None:
        """Another line of the same log."""
        self._at = (place.file, place.number)
        self.refresh()

    def render(self) -> Content:
        width, height = self.content_size
        if self._reading is None or self._at is None or width < 20 or height < 3:
            return Content("")
        file, number = self._at
        info = self._reading.files[file]
        name = shown_line(info.name.rpartition("/")[2])
        head = Content.styled(f"{name}, line {number:,} of {info.line_count:,}", "$text-muted")
        try:
            rows, at = self._rows(self._reading, file, number, width, height)
        except UserError as error:  # the disk it lies on has gone away
            rows, at = [Content(shown_line(str(error)))], 0
        room = height - 1
        top = max(min(at - room // 2, len(rows) - room), 0)
        return Content("\n").join([head.truncate(width, ellipsis=True), *rows[top : top + room]])

    def _rows(
        self, reading: LogReading, file: int, number: int, width: int, height: int
    ) -> tuple[list[Content], int]:
        """The rows around a line, and at which of them it begins."""
        lines = reading.hits.window(file, number - height, number + height)
        marks = self._marks.get(file, {})
        digits = len(str(number + height))
        rows: list[Content] = []
        at = 0
        for each, parts in groupby(lines, key=lambda line: line.number):
            if each == number:
                at = len(rows)
            shown = shown_parts(tuple(parts), self._clean)
            rows += self._row(shown, each, marks.get(each), digits, width, whole=each == number)
        return rows, at

    def _row(
        self, line: Shown, number: int, mark: Mark | None, digits: int, width: int, *, whole: bool
    ) -> Iterator[Content]:
        style = _STYLES[mark.kind] if mark is not None else ""
        glyph = GLYPHS[mark.kind] if mark is not None else " "
        glyph_style = _GLYPHS.get(mark.kind, style) if mark is not None else ""
        lead = Content.assemble((f"{number:>{digits}} ", "$text-disabled"), (f"{glyph} ", glyph_style))
        rank = Content.styled(f"{line.rank} ", "$text-secondary") if line.rank else Content("")
        text = Content.assemble(
            rank, Content.styled(line.text[line.body :], style) if style else line.text[line.body :]
        )
        room = max(width - lead.cell_length, 8)
        pieces = text.wrap(room)[:_WHOLE] if whole else [text.truncate(room, ellipsis=True)]
        for i, piece in enumerate(pieces):
            yield Content.assemble(lead if i == 0 else Content(" " * lead.cell_length), piece)
