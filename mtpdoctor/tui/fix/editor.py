"""Editing the command by hand, with the flags of its release completed and explained."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.widgets import Footer, Static, TextArea

from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Form
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.completing import Completion, complete, explain, flag_at
from mtpdoctor.sglang.flags import FlagTable, flag_table
from mtpdoctor.tui.fix.command_text import CommandText
from mtpdoctor.tui.fix.completions import CompletionList
from mtpdoctor.tui.fix.hiding import hide
from mtpdoctor.tui.fix.trying import Trying
from mtpdoctor.tui.fix.verdict import VerdictLine
from mtpdoctor.tui.fix.wording import Verdict
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside

PAUSE = 0.35  # seconds without a key before the command is checked
MOST_MARKS = 3


class CommandEditor(ModalScreen["str | None"]):
    """Answers the text to use, or None."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "use", "Use it", priority=True, tooltip="Use the edited command"),
        Binding("ctrl+space,ctrl+n", "complete", "Complete", key_display="^n", tooltip="What may stand here"),
        Binding("escape", "leave", "Leave"),
    ]

    checking = True  # what is typed is tried at once

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._trying = Trying(session)
        self._table: FlagTable = flag_table(_release(session))
        self._completion: Completion | None = None
        self._then: bool | None = None  # after a completion was taken: whether its values are offered at once
        self._hidden = hide(editable_text(session))
        self._start = self._hidden.text

    def compose(self) -> ComposeResult:
        with Vertical(id="editor"):
            yield Static(self._title(), markup=False, id="editor-title")
            yield CommandText(self._start, self._table, self._key)
            yield Static("", markup=False, id="editor-flag")
            yield VerdictLine()
        yield CompletionList()
        yield Footer(compact=True, show_command_palette=False)

    def _title(self) -> Content:
        release = self._table.release
        known = f"flags of SGLang {release}" if release else "flags of every known release"
        note = f"; {self._table.note}" if self._table.note else ""
        return Content.assemble(("Edit the command", "bold"), (f"  {known}{note}", "$text-muted"))

    def on_mount(self) -> None:
        area = self.query_one(CommandText)
        area.go_to(len(area.text.rstrip()))
        area.focus()
        self._timer = self.set_timer(0.01, self._check)

    # -- while it is typed -----------------------------------------------------------------------------
    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._timer.stop()
        self._timer = self.set_timer(PAUSE, self._check)
        then, self._then = self._then, None
        if then is False:
            self._hide()
        else:
            self._offer(asked=then is True)

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        area = self.query_one(CommandText)
        if self._completion is not None and not (
            self._completion.start <= area.cursor_index <= self._completion.end
        ):
            self._hide()
        self._explain()

    def _explain(self) -> None:
        """What the flag at the cursor means; else what is wrong anywhere."""
        area = self.query_one(CommandText)
        spec = flag_at(area.text, area.cursor_index, self._table)
        lines = [Content.styled(m.why, "$text-error") for m in area.wrong[:MOST_MARKS]]
        if spec is not None:
            head, *rest = explain(spec)
            lines = [Content.styled(head, "bold"), *map(Content, rest), *lines]
        self.query_one("#editor-flag", Static).update(Content("\n").join(lines))

    @on(CompletionList.Looked)
    def _looked(self, message: CompletionList.Looked) -> None:
        spec = self._table.resolve(message.item.text) if message.item.flag else None
        if spec is not None:
            head, *rest = explain(spec)
            self.query_one("#editor-flag", Static).update(
                Content("\n").join([Content.styled(head, "bold"), *map(Content, rest)])
            )

    def _offer(self, asked: bool) -> None:
        """Show what may stand at the cursor, when asked for or when a flag or one of its values is begun."""
        area = self.query_one(CommandText)
        found = complete(area.text, area.cursor_index, self._table)
        typed = area.text[found.start : area.cursor_index] if found else ""
        begun = len(typed) >= (3 if typed.startswith("-") else 1)
        done = found is not None and any(item.text == typed for item in found.items[:1])
        if found is None or (not asked and (not begun or done)):
            self._hide()
            return
        self._completion = found
        at = area.cursor_screen_offset - Offset(len(typed), 0)
        self.query_one(CompletionList).open(found.items, at, self.size)

    def _hide(self) -> None:
        self._completion = None
        self.query_one(CompletionList).display = False

    def _key(self, key: str) -> bool:
        """While the list is open the keys that move in it and take from it are the list's."""
        completions = self.query_one(CompletionList)
        actions = {
            "up": completions.action_cursor_up,
            "down": completions.action_cursor_down,
            "pageup": completions.action_page_up,
            "pagedown": completions.action_page_down,
            "tab": completions.action_select,
            "enter": completions.action_select,
            "escape": self._hide,
        }
        if not completions.display or key not in actions:
            return False
        actions[key]()
        return True

    @on(CompletionList.Taken)
    def _taken(self, message: CompletionList.Taken) -> None:
        found, area = self._completion, self.query_one(CommandText)
        self._hide()
        if found is None:
            return
        spec = self._table.resolve(message.item.text) if message.item.flag else None
        more = " " if spec is not None and spec.arity != "switch" and found.end >= len(area.text) else ""
        self._then = bool(more)
        area.put(found.start, found.end, message.item.text + more)
        area.focus()

    # -- the check -------------------------------------------------------------------------------------
    def _check(self) -> None:
        if not self.checking:
            return
        text = self.query_one(CommandText).text
        self.query_one(VerdictLine).set_verdict(Verdict("busy", "Checking ..."))
        self._explain()
        self.run_worker(lambda: self._checked(text), thread=True, exclusive=True, group="try")

    def _checked(self, text: str) -> None:
        verdict = self._trying.verdict(self._hidden.revealed(text))

        def tell() -> None:
            if self.is_mounted and self.query_one(CommandText).text == text:
                self.query_one(VerdictLine).set_verdict(verdict)

        if self.is_running:
            self.app.call_from_thread(tell)

    # -- leaving ---------------------------------------------------------------------------------------
    def action_complete(self) -> None:
        self._offer(asked=True)

    def action_use(self) -> None:
        text = self.query_one(CommandText).text
        self.dismiss(None if text == self._start else self._hidden.revealed(text))

    def action_leave(self) -> None:
        self.dismiss(None)


def editable_text(session: Session) -> str:
    """The chosen command as it is edited: a shell command with one flag a line, a file as it stands."""
    document = session.chosen.document or session.base
    if document is None or session.chosen.problem:
        return session.chosen.command or ""
    if document.form is Form.SHELL and "\n" not in document.text.strip():
        return command_line(document.command, multiline=True, written=document.written)
    return document.text


def _release(session: Session) -> Release | None:
    """The release whose flags count; None: the union of all."""
    report, check = session.report, session.chosen.check or session.check
    named = session.given.release or (report.sglang_version if report else None)
    named = named or (check.sglang_version if check else None)
    if named is None and session.host is not None:
        named = session.host.packages.get("sglang")
    return release_or_none(named) if named else None
