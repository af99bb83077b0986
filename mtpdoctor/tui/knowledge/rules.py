"""The list of rules, and of what holds launches up."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mtpdoctor.kb.hangs import HangCause
from mtpdoctor.kb.types import Rule
from mtpdoctor.tui.styles import beside

Entry = Rule | HangCause
_ROLES = {"cause": "", "degrades": "$text-warning", "consequence": "$text-muted", "noise": "$text-muted"}


class RuleList(OptionList):
    """One rule, or one cause of launches that stand still, a row."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", show=False),
        Binding("j", "cursor_down", show=False),
    ]

    class Looked(Message):
        """This one is looked at."""

        def __init__(self, rule: Entry) -> None:
            super().__init__()
            self.rule = rule

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._rules: tuple[Entry, ...] = ()

    def set_rules(self, rules: tuple[Entry, ...]) -> None:
        if rules == self._rules:
            return
        self._rules = rules
        self.set_options([Option(_prompt(rule)) for rule in rules])
        self.highlighted = 0 if rules else None

    def go_to(self, rule_id: str) -> bool:
        """Highlight a rule. False when it is not in the list."""
        for i, rule in enumerate(self._rules):
            if rule.id == rule_id:
                self.highlighted = i
                return True
        return False

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_index < len(self._rules):
            self.post_message(self.Looked(self._rules[event.option_index]))


def _prompt(rule: Entry) -> Content:
    if isinstance(rule, HangCause):
        return Content.assemble((rule.id, "bold"), " ", (rule.title, "$text-accent"))
    return Content.assemble((rule.id, "bold"), " ", (rule.title, _ROLES.get(rule.role.value, "")))
