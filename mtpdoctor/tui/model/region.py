"""The Model region: what the model's folder says, and what it takes of a GPU's memory."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.tui.model.wording import empty_words, memory_of, page
from mtpdoctor.tui.page import Page
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside


class ModelRegion(Vertical):
    """One page: layers, heads, MTP, quantization, files, problems, then the memory sum."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "all", "All details", tooltip="All parts of the weights, and the numbers behind the sum")
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._verbose = False

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, id="model-empty")
        yield Page()

    def show(self, session: Session) -> None:
        self._session = session
        self._draw()

    def _draw(self) -> None:
        session = self._session
        if session is None:
            return
        shown, empty = self.query_one(Page), self.query_one("#model-empty", Static)
        shown.display = session.model is not None or memory_of(session) is not None
        empty.display = not shown.display
        empty.update(Content(empty_words(session)))
        if shown.display:
            verbose = self._verbose
            shown.show_page(lambda width: page(session, width, verbose))

    def action_all(self) -> None:
        self._verbose = not self._verbose
        self._draw()
