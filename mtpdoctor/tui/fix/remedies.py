"""The list of remedies and of their edits, each of which can be switched on and off."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mtpdoctor.launch.types import Edit
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.tui.fix.offers import ON, PARTLY, Offer, Row, rows_of, state_of
from mtpdoctor.tui.styles import beside

_SAFETY = {"safe": "$text-success", "risky": "$text-error", "manual": "$text-warning"}
_MARK = {ON: "(*)", PARTLY: "(-)"}


class RemedyList(OptionList):
    """Space or Enter switches what is highlighted; what is chosen comes down with ``set_offers``."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space", "select", "Switch", key_display="space", tooltip="Switch a remedy or an edit on or off"
        ),
        Binding("k", "cursor_up", show=False),
        Binding("j", "cursor_down", show=False),
    ]

    class Switched(Message):
        """A row was switched."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class Looked(Message):
        """A remedy is looked at: its index."""

        def __init__(self, offer: int) -> None:
            super().__init__()
            self.offer = offer

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._rows: tuple[Row, ...] = ()

    def row_at(self, index: int) -> Row:
        return self._rows[index]

    def set_offers(self, offers: tuple[Offer, ...], edits: tuple[Edit, ...], clean: Cleaner) -> None:
        """Show these, with ``edits`` on. The highlighted row stays."""
        rows = rows_of(offers)
        prompts = [_prompt(row, offers[row.offer], edits, clean) for row in rows]
        if rows == self._rows:
            for i, prompt in enumerate(prompts):
                self.replace_option_prompt_at_index(i, prompt)
            return
        self._rows = rows
        self.set_options([Option(prompt) for prompt in prompts])
        self.highlighted = 0 if rows else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._rows):
            self.post_message(self.Switched(self._rows[event.option_index]))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_index < len(self._rows):
            self.post_message(self.Looked(self._rows[event.option_index].offer))


def _prompt(row: Row, offer: Offer, edits: tuple[Edit, ...], clean: Cleaner) -> Content:
    if row.edit is not None:
        mark = "[x]" if row.edit in edits else "[ ]"
        value = clean.value(row.edit)
        shown = str(Edit(row.edit.op, clean.line(row.edit.name), value))
        return Content.assemble("    ", mark, " ", shown)
    if row.run is not None:
        return Content.assemble("    ", ("$ ", "$text-muted"), clean.line(row.run))
    safety = offer.fix.safety
    mark = _MARK.get(state_of(offer, edits), "( )") if offer.edits else " - "
    return Content.assemble(
        mark, " ", (f"{safety:<6}", _SAFETY.get(safety, "bold")), " ", (clean.line(offer.fix.title), "bold")
    )
