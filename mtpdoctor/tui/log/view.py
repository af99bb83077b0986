"""The lines of a log on the screen. Reads only what it shows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mtpdoctor.text import cut, one_line, width
from mtpdoctor.tui.log.document import LogDocument
from mtpdoctor.tui.log.marks import Kind, Mark
from mtpdoctor.tui.log.paint import STYLES, Layout, Painter, layout_of
from mtpdoctor.tui.log.rows import Rows
from mtpdoctor.tui.log.search import Pattern
from mtpdoctor.tui.log.shown import Shown, masked, shown_of
from mtpdoctor.tui.styles import beside

_KEPT = 2000  # shown lines that are remembered
_MOST_WRAPPED = 12  # rows of one wrapped line
_STEP = 20  # columns
_BLENDED = frozenset({"root", "evidence", "match", "cursor"})  # styles with a background of their own
PREFIX_FROM = 120  # terminal columns from which SGLang's own prefix is shown


class LogView(ScrollView, can_focus=True):
    """Rows of a document. Line numbers count from 1; rows are what is left of them by fold and filter."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"log--{name}" for name in STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Line up", show=False),
        Binding("down,j", "move(1)", "Line down", show=False),
        Binding("pageup,b", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "go_row(0)", "First line", show=False),
        Binding("end,G", "go_row(-1)", "Last line; there, a growing log is followed", show=False),
        Binding("left", "sideways(-1)", "To the left", show=False),
        Binding("right", "sideways(1)", "To the right", show=False),
        Binding("w", "wrap", "Wrap long lines, or cut them", show=False),
        Binding("p", "prefix", "Show or hide SGLang's [time rank]", show=False),
    ]
    cursor = reactive(0, repaint=False)
    wrapping = reactive(False, repaint=False)
    left = reactive(0)

    class Moved(Message):
        """The cursor stands on another row."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.document: LogDocument | None = None
        self.hint = ""  # where there is no document
        self.rows = Rows(0)
        self.marks: dict[int, Mark] = {}
        self._stages = False
        self.ranks: tuple[str, ...] = ()
        self.pattern: Pattern | None = None
        self.clean: Callable[[str], str] = masked
        self._prefix: bool | None = None  # None: as the width allows
        self._lines: OrderedDict[int, Shown] = OrderedDict()
        self._painter = Painter(self._style)
        self._screen: list[tuple[int, int, int, int, bool]] = []
        self._screen_of: tuple[object, ...] = ()
        self._styles_of: dict[str, Style] = {}

    # -- what is shown ---------------------------------------------------------------------------------
    def show_document(self, document: LogDocument | None, rows: Rows) -> None:
        """Another document (at its end), or None for nothing."""
        self.document, self.rows = document, rows
        self._lines.clear()
        self.left = 0
        self._resized()
        self.go_row(len(rows) - 1)

    def show_rows(self, rows: Rows, number: int) -> None:
        """Other rows of the same document; the cursor goes to line ``number``."""
        offset = self.cursor - round(self.scroll_y)
        self.rows = rows
        self._lines.clear()
        self._resized()
        row = rows.row(number)
        self.cursor = row
        self.scroll_to(y=max(row - offset, 0), animate=False, force=True)
        self._see(row)
        self._fresh()

    def show_more(self, rows: Rows) -> None:
        """The document has grown: who stands at its end goes along."""
        at_end = self.at_end
        self.rows = rows
        self._lines.clear()
        self._resized()
        if at_end:
            self.go_row(len(rows) - 1)

    def restyle(self) -> None:
        """Marks, search pattern or cleaning have changed."""
        self._stages = any(mark.kind is Kind.STAGE for mark in self.marks.values())
        self._lines.clear()
        self._fresh()

    def _fresh(self) -> None:
        self._screen_of = ()
        self.refresh()

    def _resized(self) -> None:
        extra = max(self.room.height - 1, 0) if self.wrapping else 0
        self.virtual_size = Size(self.room.width, len(self.rows) + extra)
        self._fresh()

    def on_resize(self) -> None:
        self._resized()
        self._see(self.cursor)

    @property
    def room(self) -> Size:
        """Columns and rows for text, without the scroll bar."""
        return self.scrollable_content_region.size

    @property
    def prefix(self) -> bool:
        return self.room.width >= PREFIX_FROM if self._prefix is None else self._prefix

    @property
    def number(self) -> int:
        """The line that the cursor stands on."""
        return self.rows.number(self.cursor) if len(self.rows) else 0

    @property
    def at_end(self) -> bool:
        """The cursor stands on the last row."""
        return self.cursor >= len(self.rows) - 1

    @property
    def columns(self) -> Layout:
        count = self.document.count if self.document is not None else 0
        if self.document is not None and not self.document.numbered:
            count = 10 ** len(str(self.document.size // 100))
        return layout_of(self.room.width, count, self.ranks, self.prefix, self._stages)

    def line(self, number: int) -> Shown:
        known = self._lines.get(number)
        if known is not None:
            self._lines.move_to_end(number)
            return known
        assert self.document is not None
        raw, more = self.document.raw(number)
        shown = shown_of(
            raw, number, self.document.file, self.document.transports, left_out=more, clean=self.clean
        )
        self._lines[number] = shown
        if len(self._lines) > _KEPT:
            self._lines.popitem(last=False)
        return shown

    # -- painting --------------------------------------------------------------------------------------
    def _style(self, name: str) -> Style:
        style = self._styles_of.get(name)
        if style is None:
            style = self.rich_style
            if name:
                style = self.get_component_rich_style(f"log--{name}", partial=name not in _BLENDED)
            self._styles_of[name] = style
        return style

    def notify_style_update(self) -> None:
        """Theme or focus has changed."""
        self._styles_of.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        if self.document is None or not len(self.rows):
            text = one_line(self.hint) if y == 1 else ""
            return Strip([Segment(f"  {text}", self._style("number"))]).adjust_cell_length(
                self.room.width, self._style("")
            )
        layout = self.columns
        placed = self._placed(layout)
        if y >= len(placed):
            return Strip.blank(self.room.width, self._style(""))
        row, start, end, _, first = placed[y]
        number = self.rows.number(row)
        line = self.line(number)
        folded = self.rows.folded.get(number, 0)
        text = self._painter.text_of(line, layout, folded)
        strip = self._painter.row(
            line,
            number if self.document.numbered else None,
            self.marks.get(number) if self.document.numbered else None,
            layout,
            self.pattern.spans(text) if self.pattern is not None else (),
            start=start,
            end=end,
            cursor=row == self.cursor,
            folded=folded,
            first=first,
        )
        return _filled(strip, self._style(""))

    def _placed(self, layout: Layout) -> list[tuple[int, int, int, int, bool]]:
        """For each row of the screen: (row, first column, last column, 0, begins the line)."""
        top = min(round(self.scroll_y), max(len(self.rows) - 1, 0))
        key = (top, self.room, layout, self.wrapping, self.left, len(self.rows))
        if key == self._screen_of:
            return self._screen
        placed: list[tuple[int, int, int, int, bool]] = []
        row = top
        while len(placed) < self.room.height and row < len(self.rows):
            if self.wrapping:
                for i, (start, end) in enumerate(self._wrapped(row, layout)):
                    placed.append((row, start, end, 0, i == 0))
            else:
                placed.append((row, self.left, self.left + layout.room, 0, True))
            row += 1
        self._screen, self._screen_of = placed[: self.room.height], key
        return self._screen

    def _wrapped(self, row: int, layout: Layout) -> list[tuple[int, int]]:
        """The column ranges that a line is broken into."""
        number = self.rows.number(row)
        text = self._painter.text_of(self.line(number), layout, self.rows.folded.get(number, 0))
        out: list[tuple[int, int]] = []
        at = 0
        while text and len(out) < _MOST_WRAPPED:
            head, text = cut(text, layout.room)
            size = width(head)
            out.append((at, at + size))
            at += size
        return out or [(0, layout.room)]

    # -- moving ----------------------------------------------------------------------------------------
    def go_row(self, row: int, *, middle: bool = False) -> None:
        """Put the cursor on a row and scroll to it; ``middle``: with room above it."""
        row = max(0, min(row, len(self.rows) - 1))
        self.cursor = row
        if middle and not self._is_seen(row):
            self.scroll_to(y=max(row - self.room.height // 3, 0), animate=False, force=True)
        self._see(row)
        self.refresh()

    def go_number(self, number: int) -> None:
        self.go_row(self.rows.row(number), middle=True)

    def watch_cursor(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    def _height(self, row: int, layout: Layout) -> int:
        return len(self._wrapped(row, layout)) if self.wrapping else 1

    def _is_seen(self, row: int) -> bool:
        top = round(self.scroll_y)
        return self._top_for(row, self.columns) <= top <= row

    def _top_for(self, row: int, layout: Layout) -> int:
        """The lowest top row with which ``row`` is wholly on the screen."""
        room = self.room.height - self._height(row, layout)
        top = row
        while top > 0 and room > 0:
            room -= self._height(top - 1, layout)
            if room < 0:
                break
            top -= 1
        return top

    def _see(self, row: int) -> None:
        if not self.room.height or not len(self.rows):
            return
        top = round(self.scroll_y)
        lowest = self._top_for(row, self.columns)
        if row < top:
            self.scroll_to(y=row, animate=False, force=True)
        elif top < lowest:
            self.scroll_to(y=lowest, animate=False, force=True)

    def action_move(self, rows: int) -> None:
        self.go_row(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        step = max(self.room.height - 1, 1)
        if not self.wrapping:
            self.scroll_to(y=round(self.scroll_y) + pages * step, animate=False, force=True)
            self.go_row(self.cursor + pages * step)
            return
        seen = {row for row, *_ in self._placed(self.columns)} or {self.cursor}
        self.go_row(self.cursor + pages * max(len(seen) - 1, 1))

    def action_go_row(self, row: int) -> None:
        self.go_row(len(self.rows) - 1 if row < 0 else row)

    def action_sideways(self, steps: int) -> None:
        if not self.wrapping:
            self.left = max(self.left + steps * _STEP, 0)

    def action_wrap(self) -> None:
        self.wrapping = not self.wrapping
        self.left = 0
        self._resized()
        self._see(self.cursor)

    def action_prefix(self) -> None:
        self._prefix = not self.prefix
        self._fresh()

    def on_click(self, event: events.Click) -> None:
        placed = self._placed(self.columns)
        if event.y < len(placed):
            self.cursor = placed[event.y][0]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.refresh(Region(0, 0, *self.room))


def _filled(strip: Strip, style: Style) -> Strip:
    """The widget's own colours where a style has none."""
    return Strip(
        [Segment(s.text, style + s.style if s.style is not None else style) for s in strip], strip.cell_length
    )
