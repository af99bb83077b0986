"""A page of the reports (host, model, rule) inside the application: the same text, in the theme's colours."""

from __future__ import annotations

import re
from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content, Span
from textual.widgets import Static

from mtpdoctor.text import safe
from mtpdoctor.tui.styles import beside

# The styles of report/style.py, by their codes; anything else that looks like an escape is taken out.
_THEMED = {
    "1": "bold",
    "2": "$text-muted",
    "1;31": "bold $text-error",
    "31": "$text-error",
    "32": "$text-success",
    "33": "$text-warning",
    "35": "$text-accent",
    "36": "$text-primary",
    "1;4": "bold underline",
}
_STYLED = re.compile(r"\x1b\[([0-9;]*)m(.*?)\x1b\[0m", re.DOTALL)


def themed(text: str) -> Content:
    """A report's text with its ANSI styles as styles of the theme; every other escape is taken out."""
    plain: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for m in _STYLED.finditer(text):
        for piece, code in ((text[at : m.start()], ""), (m[2], m[1])):
            shown = safe(piece)
            if code in _THEMED and shown:
                spans.append(Span(length, length + len(shown), _THEMED[code]))
            plain.append(shown)
            length += len(shown)
        at = m.end()
    plain.append(safe(text[at:]))
    return Content("".join(plain), spans=spans)


class Page(VerticalScroll):
    """Shows what ``render`` makes of its width; scrolls; keeps its place when it is drawn again."""

    DEFAULT_CSS = beside(__file__)
    can_focus = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make: Callable[[int], str] | None = None
        self._drawn: tuple[int, str] | None = None

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show_page(self, make: Callable[[int], str], *, top: bool = False) -> None:
        """``make`` gives the text for a number of columns; it may hold the styles of report/style.py."""
        self._make = make
        self._draw()
        if top:
            self.scroll_home(animate=False)

    def on_resize(self, _: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.scrollable_content_region.width
        if self._make is None or width <= 0 or not self.is_mounted:
            return
        text = self._make(width)
        if self._drawn == (width, text):
            return
        self._drawn = (width, text)
        self.query_one(Static).update(themed(text))
