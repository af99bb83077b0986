"""The text of the command while it is edited: unknown flags and refused values are marked in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.document._document import Document
from textual.widgets import TextArea

from mtpdoctor.sglang.completing import Mark, marks
from mtpdoctor.sglang.flags import FlagTable
from mtpdoctor.text import safe
from mtpdoctor.tui.styles import beside


class CommandText(TextArea):
    """``wrong`` is what is wrong in it, by the flags of ``table``. ``first`` is asked about every key before
    the text gets it; True: it has been dealt with."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"command-text--wrong", "command-text--doubtful"}

    def __init__(self, text: str, table: FlagTable, first: Callable[[str], bool]) -> None:
        super().__init__(
            safe(text),
            soft_wrap=True,
            tab_behavior="focus",
            show_line_numbers=False,
            highlight_cursor_line=False,
        )
        self._table, self._first = table, first
        self.wrong: tuple[Mark, ...] = marks(self.text, table)

    @property
    def _lines(self) -> Document:
        assert isinstance(self.document, Document)  # every document of a TextArea is one
        return self.document

    @property
    def cursor_index(self) -> int:
        """The cursor as characters from the start."""
        return self._lines.get_index_from_location(self.cursor_location)

    def go_to(self, index: int) -> None:
        """The cursor to a place, as characters from the start."""
        self.move_cursor(self._lines.get_location_from_index(index))

    def put(self, start: int, end: int, text: str) -> None:
        """Put ``text`` in place of the characters ``start`` to ``end``, with the cursor behind it."""
        at = self._lines.get_location_from_index
        edit = self.replace(text, at(start), at(end), maintain_selection_offset=False)
        self.move_cursor(edit.end_location)

    def on_key(self, event: events.Key) -> None:
        if self._first(event.key):
            event.prevent_default()
            event.stop()

    def on_text_area_changed(self) -> None:
        self.wrong = marks(self.text, self._table)
        self.refresh()

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        start = self._lines.get_index_from_location((line_index, 0))
        for mark in self.wrong:
            a, b = mark.start - start, mark.end - start
            if b > 0 and a < len(line.plain):
                name = "doubtful" if mark.kind == "deprecated" else "wrong"
                line.stylize(self._mark_style(name), max(a, 0), b)
        return line

    def _mark_style(self, name: str) -> Style:
        return self.get_component_rich_style(f"command-text--{name}", partial=True)
