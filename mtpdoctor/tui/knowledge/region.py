"""The Knowledge region: every rule and every cause of launches that stand still, found by words or by a pasted message,
and its long form."""

from __future__ import annotations

import contextlib
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from mtpdoctor.errors import UserError
from mtpdoctor.kb.hangs import HangCause
from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.search import parse_query, search, search_hangs
from mtpdoctor.tui.knowledge.rules import Entry, RuleList
from mtpdoctor.tui.messages import CopyText
from mtpdoctor.tui.page import Page
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside

WIDE = 110  # columns from which list and rule stand side by side
HINT = "words, an error message, stage:weights, role:cause, role:hang, release:0.5.13"

WAITING = "The rules are being read ..."


class KnowledgeRegion(Vertical):
    """Posts CopyText."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/", tooltip=f"Search: {HINT}"),
        Binding("c", "copy", "Copy rule", tooltip="Copy the rule as text"),
        Binding("escape", "clear", "All rules", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._knowledge: Knowledge | None = None
        self._asked: str | None = None  # the rule that the session asked for last
        self._hangs: tuple[HangCause, ...] = ()
        self._rule: Entry | None = None

    def compose(self) -> ComposeResult:
        with Container(id="knowledge-halves"):
            with Vertical(id="knowledge-left"):
                yield Static("", markup=False, id="knowledge-count")
                yield RuleList()
            yield Page()
        yield Input(
            placeholder=HINT, id="knowledge-search", compact=True
        )  # last: the list has the focus first

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-wide")

    def show(self, session: Session) -> None:
        if session.knowledge is not None and session.knowledge is not self._knowledge:
            self._knowledge = session.knowledge
            with contextlib.suppress(
                UserError
            ):  # of a knowledge folder of one's own: `kb lint` says what is wrong
                self._hangs = load_hangs().causes
            self._search(self.query_one(Input).value)
        if self._knowledge is None:
            self.query_one("#knowledge-count", Static).update(Content(WAITING))
            return
        wanted = session.rule
        if wanted is None or wanted == self._asked or wanted not in self._knowledge.by_id:
            return
        self._asked = wanted
        if not self.query_one(RuleList).go_to(wanted):
            self.query_one(Input).value = ""
            self._search("")
            self.query_one(RuleList).go_to(wanted)
        self._look(self._knowledge.by_id[wanted])

    # -- looking for rules -----------------------------------------------------------------------------
    @on(Input.Changed, "#knowledge-search")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value)

    @on(Input.Submitted, "#knowledge-search")
    def _found(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(RuleList).focus()

    def _search(self, text: str) -> None:
        if self._knowledge is None:
            return
        every, query = self._knowledge.rules, parse_query(text)
        rules, hangs = search(every, query), search_hangs(self._hangs, query)
        found: tuple[Entry, ...] = (*rules, *hangs)
        self.query_one(RuleList).set_rules(found)
        count = f"{len(rules)} of {len(every)} rules" if len(rules) < len(every) else f"{len(every)} rules"
        count += f", {len(hangs)} hang{'s' if len(hangs) > 1 else ''}" if hangs else ""
        said = f"No rule holds all of this; there are {len(every)}." if not found else count
        self.query_one("#knowledge-count", Static).update(Content.styled(said, "$text-muted"))
        if found:
            self._look(found[0])
        else:
            self._rule = None
            self.query_one(Page).show_page(lambda _: "")

    @on(RuleList.Looked)
    def _looked(self, message: RuleList.Looked) -> None:
        message.stop()
        self._look(message.rule)

    def _look(self, rule: Entry) -> None:
        if rule is self._rule:
            return
        self._rule = rule
        self.query_one(Page).show_page(
            lambda width: "\n".join(_explained(rule, max(width, 40), color=True)), top=True
        )

    # -- what the person wants -------------------------------------------------------------------------
    def action_search(self) -> None:
        self.query_one(Input).focus()

    def action_clear(self) -> None:
        field = self.query_one(Input)
        if field.value:
            field.value = ""
        self.query_one(RuleList).focus()

    def action_copy(self) -> None:
        if self._rule is not None:
            what = "hang" if isinstance(self._rule, HangCause) else "rule"
            self.post_message(CopyText("\n".join(_explained(self._rule)), f"{what} {self._rule.id}"))


def _explained(entry: Entry, width: int = 80, *, color: bool = False) -> list[str]:
    from mtpdoctor.report.hang_text import explain_hang
    from mtpdoctor.report.rule_text import explain

    explained = explain_hang if isinstance(entry, HangCause) else explain
    return explained(entry, width, color=color)  # type: ignore[arg-type]  # one of the two takes it
