"""The line under the log in which something to look for, or a line number, is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from mtpdoctor.tui.log.search import Pattern
from mtpdoctor.tui.styles import beside


class Prompt(Horizontal):
    """Hidden until ``ask``. What is typed is told at once (``Typed``), then ``Done`` or ``Left``."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "End the search", show=False),
        Binding("ctrl+r", "regex", "While searching: regular expression or plain text", show=False),
    ]

    class Typed(Message):
        def __init__(self, pattern: Pattern) -> None:
            super().__init__()
            self.pattern = pattern

    class Done(Message):
        def __init__(self, pattern: Pattern) -> None:
            super().__init__()
            self.pattern = pattern

    class Number(Message):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    class Left(Message):
        pass

    def __init__(self) -> None:
        super().__init__()
        self._what = "search"
        self._is_regex = False
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)
        yield Input(compact=True, select_on_focus=True)

    def ask(self, what: str) -> None:
        """``what``: "search" or "line"."""
        self._what = what
        self.display = True
        box = self.query_one(Input)
        with self.prevent(Input.Changed):
            box.value = ""
        box.placeholder = (
            "text to look for; Ctrl+R: regular expression" if what == "search" else "line number"
        )
        self._say()
        box.focus()

    def _say(self) -> None:
        word = "Line" if self._what == "line" else "Regex" if self._is_regex else "Find"
        self.query_one(Static).update(f" {word}: ")

    @property
    def pattern(self) -> Pattern:
        return Pattern(self.query_one(Input).value, self._is_regex)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._what == "search":
            self.post_message(self.Typed(self.pattern))

    @on(Input.Submitted)
    def _done(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        if self._what == "search":
            self.post_message(self.Done(self.pattern))
            return
        digits = "".join(c for c in event.value if c.isdigit())[:18]
        if digits:
            self.post_message(self.Number(int(digits)))
        else:
            self.post_message(self.Left())

    def action_leave(self) -> None:
        self.display = False
        self.post_message(self.Left())

    def action_regex(self) -> None:
        if self._what == "search":
            self._is_regex = not self._is_regex
            self._say()
            self.post_message(self.Typed(self.pattern))
