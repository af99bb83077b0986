"""The Launch region: the fixed command runs, and what it does is seen as it happens."""

from __future__ import annotations

import asyncio
from time import monotonic as clock
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.text import one_line
from mtpdoctor.tui.launch.gpus import GpuGraphs
from mtpdoctor.tui.launch.history import AttemptHistory
from mtpdoctor.tui.launch.stages import StageList
from mtpdoctor.tui.launch.state import LaunchState, advance, record_of
from mtpdoctor.tui.launch.tail import OutputTail
from mtpdoctor.tui.launch.wording import headline, notes_of, stage_rows
from mtpdoctor.tui.launch.worker import Launcher, Watched
from mtpdoctor.tui.messages import LaunchEnded, OpenLog
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.shown import cleaner_of
from mtpdoctor.tui.styles import beside
from mtpdoctor.watch.types import Output

EVERY = 0.1  # seconds between two looks at what has happened
EMPTY = (
    "Nothing has been launched yet.\n\nChoose a remedy in Fix (4), then press l there: the command is shown once "
    "more, and runs only after a yes."
)
_STYLES = {
    "busy": "bold $text-primary",
    "good": "bold $text-success",
    "bad": "bold $text-error",
    "doubtful": "bold $text-warning",
    "idle": "$text-muted",
    "muted": "$text-muted",
}


class LaunchRegion(Vertical):
    """Posts LaunchEnded when a launch is over, OpenLog for one of the history."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,x", "end", "End", key_display="^c", tooltip="End the launch: gently, again hard"),
        Binding("b", "detach", "Leave running", tooltip="Watch no longer; the server runs on"),
        Binding("h", "history", "History", tooltip="The attempts so far, or the output"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._launcher: Launcher | None = None
        self._document: LaunchDocument | None = None
        self._edits: tuple[str, ...] = ()
        self._state = LaunchState()
        self._began = 0.0
        self._ticks: Timer | None = None
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, id="launch-head")
        yield Static(Content(EMPTY), markup=False, id="launch-empty")
        with Vertical(id="launch-body"):
            with Horizontal(id="launch-top"):
                yield StageList()
                yield GpuGraphs()
            with VerticalScroll(id="launch-notes", can_focus=False):
                yield Static("", markup=False)
            with ContentSwitcher(initial="launch-tail", id="launch-below"):
                with Vertical(id="launch-tail"):
                    yield OutputTail()
                with Vertical(id="launch-history"):
                    yield AttemptHistory()

    def on_mount(self) -> None:
        self._ticks = self.set_interval(EVERY, self._tick, pause=True)
        self._draw()

    # -- data down -------------------------------------------------------------------------------------
    def show(self, session: Session) -> None:
        self._session = session
        self.query_one(AttemptHistory).set_records(session.history, cleaner_of(session))
        self._draw()

    @property
    def state(self) -> LaunchState:
        """What is known of the launch under way, else of the last one."""
        return self._state

    @property
    def running(self) -> bool:
        """A launch is under way: quitting would end it."""
        return self._launcher is not None and self._launcher.running

    def launch(self, session: Session, command: str) -> None:
        """Launch ``command`` on this machine and watch it. What keeps it from starting is shown here."""
        from mtpdoctor.records import replace
        from mtpdoctor.tui.launch.starting import launched_document
        from mtpdoctor.watch.plan import plan_of
        from mtpdoctor.watch.session import LaunchSession

        if self.running:
            self.notify("a launch is under way: end it first (ctrl+c)", severity="warning", markup=False)
            return
        try:
            document = launched_document(session, command)
            watched = LaunchSession(plan_of(replace(session.given, document=document)))
        except UserError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            self.notify(f"{error}{hint}", severity="error", timeout=15, markup=False)
            return
        self.drive(session, watched, document)

    def drive(self, session: Session, watched: Watched, document: LaunchDocument | None) -> None:
        """Watch what ``watched`` tells: a launch that was planned, or somebody else's."""
        self._session, self._document = session, document
        self._edits = tuple(str(e) for e in session.chosen.edits)
        if session.chosen.by_hand:
            self._edits = (*self._edits, "edited by hand")
        self._state = LaunchState()
        self.query_one(OutputTail).clear()
        self.query_one("#launch-below", ContentSwitcher).current = "launch-tail"
        self._launcher = Launcher(watched)
        self._began = clock()
        self._launcher.start()
        if self._ticks is not None:
            self._ticks.resume()
        self._draw()
        self.refresh_bindings()
        self.query_one(OutputTail).focus()

    # -- while it runs ---------------------------------------------------------------------------------
    def _tick(self) -> None:
        launcher = self._launcher
        if launcher is None:
            return
        running = launcher.running
        try:
            happened = launcher.drain()
        except UserError as error:
            self._over(f"{error}" + (f" ({error.hint})" if error.hint else ""))
            return
        lines = [line for e in happened if isinstance(e, Output) for line in e.lines]
        if lines:
            self.query_one(OutputTail).add(lines)
        for event in happened:
            self._state = advance(self._state, event)
        self._draw()
        if self._state.ended is not None or (not running and not happened):
            self._over()

    def _over(self, problem: str | None = None) -> None:
        """The launch has ended: tell the application."""
        launcher, self._launcher = self._launcher, None
        if self._ticks is not None:
            self._ticks.pause()
        self.refresh_bindings()
        if problem is not None:
            self.notify(problem, severity="error", timeout=15, markup=False)
        self._draw()
        if launcher is None or self._session is None or self._state.ended is None:
            return
        number = len(self._session.history) + 1
        log = launcher.session.log
        record = record_of(self._state, number, self._edits, log)
        self.post_message(LaunchEnded(record, self._state.ended, self._document))

    def _draw(self) -> None:
        begun = self._state.launched is not None or self._launcher is not None
        history = self._session is not None and bool(self._session.history)
        now = clock() - self._began if self.running else self._state.at
        head = headline(self._state, now)
        if self._launcher is not None and self._state.launched is None:
            head = ("busy", "Starting ...")
        shown = (begun, history, head, stage_rows(self._state, now), self._state.gpus, notes_of(self._state))
        if shown == self._shown:  # ten times a second: only what has changed is drawn
            return
        self._shown = shown
        _, _, (kind, text), rows, tracks, notes = shown
        self.query_one("#launch-empty").display = not begun and not history
        self.query_one("#launch-body").display = begun or history
        self.query_one("#launch-top").display = begun
        self.query_one("#launch-head", Static).update(Content.styled(self._clean(text), _STYLES[kind]))
        self.query_one(StageList).set_rows(rows)
        self.query_one(GpuGraphs).set_tracks(tracks)
        self.query_one("#launch-notes").display = bool(notes)
        self.query_one("#launch-notes > Static", Static).update(
            Content("\n").join(Content.styled(self._clean(t), _STYLES[k]) for k, t in notes)
        )

    def _clean(self, text: str) -> str:
        return cleaner_of(self._session).line(text) if self._session is not None else one_line(text)

    # -- what the person wants -------------------------------------------------------------------------
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("end", "detach"):
            return self.running
        return True

    def action_end(self) -> None:
        """The first time gently, again hard."""
        self.end_launch(hard=self._state.ending is not None)

    def end_launch(self, hard: bool = False) -> None:
        """End the launch: gently, or ``hard`` at once."""
        from dataclasses import replace

        if self._launcher is None:
            return
        self._launcher.end(hard)
        self._state = replace(self._state, ending="hard" if hard else "gently")
        self._draw()

    def action_detach(self) -> None:
        if self._launcher is not None:
            self._launcher.detach()

    def action_history(self) -> None:
        below = self.query_one("#launch-below", ContentSwitcher)
        below.current = "launch-tail" if below.current == "launch-history" else "launch-history"
        self.query_one(OutputTail if below.current == "launch-tail" else AttemptHistory).focus()

    @on(AttemptHistory.Chosen)
    def _open(self, message: AttemptHistory.Chosen) -> None:
        message.stop()
        self.post_message(OpenLog((message.record.log,)))

    async def on_unmount(self, _: events.Unmount) -> None:
        """Whoever quits ends the launch, as ``mtpdoctor run`` does; one that was detached is left alone."""
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            await asyncio.to_thread(launcher.close)
