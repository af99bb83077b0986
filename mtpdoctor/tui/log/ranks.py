"""Choosing whose lines are shown."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mtpdoctor.text import one_line
from mtpdoctor.tui.styles import beside


class RankPicker(ModalScreen["str | None"]):
    """Gives the rank, "" for all of them; None when nothing was chosen."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "Close", show=False)]

    def __init__(self, ranks: tuple[str, ...], current: str | None) -> None:
        super().__init__()
        self._ranks = ranks
        self._current = current

    def compose(self) -> ComposeResult:
        options = OptionList(markup=False)
        options.add_option(Option("all ranks"))
        options.add_options([Option(one_line(rank)) for rank in self._ranks])
        options.highlighted = self._ranks.index(self._current) + 1 if self._current in self._ranks else 0
        options.border_title = "Lines of"
        yield options

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._ranks[event.option_index - 1] if event.option_index else "")
