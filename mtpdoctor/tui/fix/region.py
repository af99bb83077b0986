"""The Fix region: remedies above, the command they make below, and whether it would start."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.launch.types import Edit
from mtpdoctor.text import one_line
from mtpdoctor.tui.fix.command_view import CommandView, in_a_file, to_copy
from mtpdoctor.tui.fix.offers import Offer, Row, first_choice, offers_of, with_offer
from mtpdoctor.tui.fix.remedies import RemedyList
from mtpdoctor.tui.fix.verdict import VerdictLine
from mtpdoctor.tui.fix.wording import empty_words, verdict_of, why_of
from mtpdoctor.tui.messages import ChooseEdits, CopyText, EditCommand, LaunchCommand
from mtpdoctor.tui.session import Chosen, Session
from mtpdoctor.tui.shown import cleaner_of
from mtpdoctor.tui.styles import beside

WIDE = 110  # columns from which the two halves stand side by side


class FixRegion(Vertical):
    """Posts ChooseEdits, EditCommand, CopyText and LaunchCommand."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "diff", "Diff", tooltip="The diff, or the command"),
        Binding("i", "edit", "Edit", tooltip="Edit the command by hand"),
        Binding("c", "copy", "Copy", tooltip="Copy the command, or the diff of a file"),
        Binding("l", "launch", "Launch", tooltip="Launch the command, after a yes"),
        Binding("r", "reset", "Switch all edits off", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._offers: tuple[Offer, ...] = ()
        self._begun: tuple[object, ...] = ()  # the report or check whose first choice has been made

    def compose(self) -> ComposeResult:
        with Container(id="fix-halves"):
            with Vertical(id="fix-remedies"):
                yield Static("", markup=False, id="fix-about")
                yield Static("", markup=False, id="fix-empty")
                yield RemedyList()
                with VerticalScroll(id="fix-why", can_focus=False):
                    yield Static("", markup=False)
            with Vertical(id="fix-command"):
                yield Static("", markup=False, id="fix-form")
                yield CommandView()
                yield VerdictLine()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-wide")

    # -- data down -------------------------------------------------------------------------------------
    def show(self, session: Session) -> None:
        self._session = session
        clean = cleaner_of(session)
        self._offers = offers_of(session)
        remedies = self.query_one(RemedyList)
        remedies.set_offers(self._offers, session.chosen.edits, clean)
        remedies.display = bool(self._offers)
        about, empty = self.query_one("#fix-about", Static), self.query_one("#fix-empty", Static)
        about.display, empty.display = bool(self._offers), not self._offers
        if self._offers:
            about.update(_about(self._offers, clean.line))
        else:
            empty.update(Content(empty_words(session)))
        self.query_one("#fix-why").display = bool(self._offers)
        self._look(self._looked_at())
        self.query_one("#fix-command").display = session.base is not None or bool(session.chosen.command)
        self.query_one(CommandView).show(session)
        self.query_one("#fix-form", Static).update(_form(session, self.query_one(CommandView).as_diff))
        self.query_one(VerdictLine).set_verdict(verdict_of(session))
        self._begin(session)

    def _begin(self, session: Session) -> None:
        """Switch on what is safe, once for every problem that is looked at."""
        what = (session.report, session.check, session.diagnosis)
        same = len(self._begun) == len(what) and all(a is b for a, b in zip(self._begun, what, strict=True))
        if same or not self._offers or session.base is None:
            return
        self._begun = what
        if session.chosen == Chosen() and (edits := first_choice(self._offers)):
            self.post_message(ChooseEdits(edits))

    def _looked_at(self) -> int:
        remedies = self.query_one(RemedyList)
        row = remedies.highlighted
        return remedies.row_at(row).offer if row is not None and self._offers else 0

    @on(RemedyList.Looked)
    def _looked(self, message: RemedyList.Looked) -> None:
        message.stop()
        self._look(message.offer)

    def _look(self, index: int) -> None:
        if self._session is None or index >= len(self._offers):
            return
        clean = cleaner_of(self._session)
        parts = [
            Content.assemble((f"{label}  ", "bold $text-muted"), clean.line(text))
            for label, text in why_of(self._offers[index])
        ]
        self.query_one("#fix-why > Static", Static).update(Content("\n").join(parts))

    # -- messages up -----------------------------------------------------------------------------------
    @on(RemedyList.Switched)
    def _switched(self, message: RemedyList.Switched) -> None:
        message.stop()
        session, row = self._session, message.row
        if session is None:
            return
        edits = self._after(row, session.chosen.edits)
        if row.run is not None:
            self.post_message(CopyText(row.run, "the command"))
        elif edits != session.chosen.edits:
            self.post_message(ChooseEdits(edits))

    def _after(self, row: Row, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        from mtpdoctor.diagnose.trial import switched

        if row.edit is not None:
            return switched(edits, row.edit, row.edit not in edits)
        return with_offer(self._offers, row.offer, edits)

    def action_diff(self) -> None:
        view = self.query_one(CommandView)
        view.toggle_diff()
        if self._session is not None:
            self.query_one("#fix-form", Static).update(_form(self._session, view.as_diff))

    def action_reset(self) -> None:
        self.post_message(ChooseEdits(()))

    def action_copy(self) -> None:
        session = self._session
        copied = to_copy(session, self.query_one(CommandView).as_diff) if session is not None else None
        if session is None or copied is None:
            self.notify("there is no command to copy", severity="warning", markup=False)
            return
        text, what = copied
        hidden = cleaner_of(session).text(text) != text
        self.post_message(CopyText(text, f"{what}, with its secrets," if hidden else what))

    def action_edit(self) -> None:
        session = self._session
        if session is None or session.base is None:
            self.notify("there is no command to edit", severity="warning", markup=False)
            return
        from mtpdoctor.tui.fix.editor import CommandEditor

        def done(text: str | None) -> None:
            if text is not None:
                self.post_message(EditCommand(text))

        self.app.push_screen(CommandEditor(session), done)

    def action_launch(self) -> None:
        session = self._session
        copied = to_copy(session, False) if session is not None else None
        if session is None or copied is None:
            self.notify("there is no command to launch", severity="warning", markup=False)
            return
        command = copied[0]
        if session.chosen.problem:
            self.notify(session.chosen.problem, severity="error", markup=False)
            return
        from mtpdoctor.tui.fix.confirm import LaunchConfirm

        def done(yes: bool | None) -> None:
            if yes:
                self.post_message(LaunchCommand(command))

        self.app.push_screen(LaunchConfirm(session, command), done)


def _about(offers: tuple[Offer, ...], clean: Callable[[str], str]) -> Content:
    problems = list(dict.fromkeys((o.about, o.title) for o in offers))
    about, title = problems[0]
    head = clean(title if about == title else f"{about}  {title}")
    more = f"  and {len(problems) - 1} more" if len(problems) > 1 else ""
    return Content.assemble((head, "bold"), (more, "$text-muted"))


def _form(session: Session, as_diff: bool) -> Content:
    chosen = session.chosen
    what = "Diff" if as_diff else "Command"
    if chosen.by_hand:
        how = "edited by hand"
    elif chosen.edits:
        how = f"with {len(chosen.edits)} edit{'s' if len(chosen.edits) > 1 else ''}"
    else:
        how = "as it is"
    where = f" in {one_line(session.base.name)}" if as_diff and session.base and in_a_file(session) else ""
    return Content.assemble((f"{what} ", "bold"), (f"{how}{where}", "$text-muted"))
