"""The interactive doctor: composes the regions, holds the one ``Session``, acts on their messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Footer

from mtpdoctor.tui import clipboard, export, messages
from mtpdoctor.tui.actions.commands import DoctorCommands
from mtpdoctor.tui.crash import record_crash
from mtpdoctor.tui.diagnosis import DiagnosisRegion
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.help import HelpScreen
from mtpdoctor.tui.host import HostRegion
from mtpdoctor.tui.knowledge import KnowledgeRegion
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.launch.starting import after_launch
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.model import ModelRegion
from mtpdoctor.tui.session import Chosen, Session
from mtpdoctor.tui.start import StartRegion
from mtpdoctor.tui.tabs import REGIONS, RegionTabs
from mtpdoctor.tui.themes import THEMES
from mtpdoctor.tui.title import TitleLine
from mtpdoctor.tui.work import Work
from mtpdoctor.tui.workers import Doctor
from mtpdoctor.watch.types import End

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts

_CLASSES = {
    "start": StartRegion,
    "diagnosis": DiagnosisRegion,
    "log": LogRegion,
    "fix": FixRegion,
    "launch": LaunchRegion,
    "host": HostRegion,
    "model": ModelRegion,
    "knowledge": KnowledgeRegion,
}


class DoctorApp(App[None]):
    """``session`` says what is opened; ``doctor`` does the work (workers.py), off the screen's thread."""

    TITLE = "mtpdoctor"
    CSS_PATH = "app.tcss"
    COMMANDS = App.COMMANDS | {DoctorCommands}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(n), f"region('{name}')", title, show=False)
            for n, (name, title) in enumerate(REGIONS, 1)
        ),
        Binding("o", "region('start')", "Open", show=False),
        Binding("e", "export('text')", "Export report", show=False),
        Binding("E", "export('json')", "Export report as JSON", show=False),
        Binding("t", "next_theme", "Theme", show=False),
        Binding("f5", "read_again", "Read and probe again", show=False),
        Binding("escape", "end_work", "End what is being worked on", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, session: Session, doctor: Doctor | None = None, *, theme: str = "dark") -> None:
        super().__init__()
        self.session = session
        self.doctor = doctor or Doctor()
        self.work = Work(self, self._busy)
        self._theme_name = theme
        self._stale: set[str] = set()

    # -- the screen ------------------------------------------------------------------------------------
    def compose(self) -> ComposeResult:
        yield TitleLine()
        yield RegionTabs()
        with ContentSwitcher(initial="start", id="regions"):
            for name, region in _CLASSES.items():
                yield region(id=name)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = THEMES[self._theme_name].name
        self.update(self.session)
        self.query_one(StartRegion).discover()
        self.probe()
        if self.session.logs:
            self.open_logs(self.session.logs)
        elif self.session.given.document is not None:
            self.action_region("fix")
            self.work.start(
                "check", "checking the command", partial(self.doctor.check_base, self.session), self.update
            )
        else:
            self.action_region("start")

    @property
    def region(self) -> str:
        return self.query_one(ContentSwitcher).current or "start"

    def update(self, session: Session) -> None:
        """A new session: shown at once where it is looked at, elsewhere when it is turned to."""
        self.session = session
        self.query_one(TitleLine).session = session
        self._stale = {name for name, _ in REGIONS}
        self._show(self.region)

    def _show(self, name: str) -> None:
        if name in self._stale:
            self._stale.discard(name)
            region: Any = self.query_one(f"#{name}")
            region.show(self.session)

    def _busy(self, busy: tuple[str, ...]) -> None:
        if self.is_running and self.screen_stack:
            for line in self.query(TitleLine):
                line.busy = busy

    # -- work ------------------------------------------------------------------------------------------
    def probe(self) -> None:
        if self.session.given.host is not None:
            self.update(replace(self.session, host=self.session.given.host))
            return
        self.work.start("probe", "asking the host", self.doctor.probe, self._probed)

    def _probed(self, host: HostFacts | None) -> None:
        self.update(replace(self.session, host=host))

    def open_logs(self, paths: tuple[str, ...]) -> None:
        self.update(
            replace(
                self.session, logs=paths, reading=None, report=None, diagnosis=0, chosen=Chosen(), errors=()
            )
        )
        self.query_one(LogRegion).open(paths)
        self.action_region("log")
        names = ", ".join(Path(p).name for p in paths)
        self.work.start(
            "read", f"reading {names}", partial(self.doctor.diagnose, self.session), self._diagnosed
        )

    def _diagnosed(self, found: Session) -> None:
        untouched = self.region == "log" and not self.query_one(LogRegion).moved
        self.update(replace(found, host=self.session.host or found.host))
        self._show("log")
        if untouched:
            self.action_region("diagnosis")

    def choose(self, chosen: Chosen) -> None:
        """Another command is chosen: shown at once, then with its check."""
        self.update(replace(self.session, chosen=chosen))
        if chosen.document is not None:
            work = partial(self.doctor.check, self.session, chosen)
            self.work.start("check", "checking the command", work, self._checked)

    def _checked(self, chosen: Chosen) -> None:
        if chosen.command == self.session.chosen.command:
            self.update(replace(self.session, chosen=chosen))

    # -- messages from the regions ---------------------------------------------------------------------
    @on(messages.OpenLog)
    def _open_log(self, message: messages.OpenLog) -> None:
        self.open_logs(message.paths)

    @on(messages.ShowLine)
    def _show_line(self, message: messages.ShowLine) -> None:
        self.action_region("log")
        self.query_one(LogRegion).go_to(message.file, message.number)

    @on(messages.ShowRegion)
    def _show_region(self, message: messages.ShowRegion) -> None:
        self.action_region(message.region)

    @on(messages.ShowRule)
    def _show_rule(self, message: messages.ShowRule) -> None:
        self.update(replace(self.session, rule=message.rule))
        self.action_region("knowledge")

    @on(messages.ChooseDiagnosis)
    def _choose_diagnosis(self, message: messages.ChooseDiagnosis) -> None:
        self.update(replace(self.session, diagnosis=message.index, chosen=Chosen()))

    @on(messages.ChooseEdits)
    def _choose_edits(self, message: messages.ChooseEdits) -> None:
        self.choose(self.doctor.with_edits(self.session, message.edits))

    @on(messages.EditCommand)
    def _edit_command(self, message: messages.EditCommand) -> None:
        self.choose(self.doctor.with_text(self.session, message.command))

    @on(messages.CopyText)
    def _copy_text(self, message: messages.CopyText) -> None:
        self.notify(clipboard.copy(self, message.text, message.what), markup=False)

    @on(messages.LaunchCommand)
    def _launch(self, message: messages.LaunchCommand) -> None:
        self.action_region("launch")
        self.query_one(LaunchRegion).launch(self.session, message.command)

    @on(messages.EndLaunch)
    def _end_launch(self, message: messages.EndLaunch) -> None:
        self.query_one(LaunchRegion).end_launch(message.hard)

    @on(messages.LaunchEnded)
    def _launch_ended(self, message: messages.LaunchEnded) -> None:
        self.update(after_launch(self.session, message.record, message.document))
        if message.ended.how is End.DIED:
            self.open_logs((message.record.log,))

    @on(messages.ProbeAgain)
    def _probe_again(self, _: messages.ProbeAgain) -> None:
        self.probe()

    @on(RegionTabs.Chosen)
    def _tab(self, message: RegionTabs.Chosen) -> None:
        self.action_region(message.region)

    # -- actions ---------------------------------------------------------------------------------------
    def action_region(self, name: str) -> None:
        self.query_one(RegionTabs).active = name
        self.query_one(ContentSwitcher).current = name
        self._show(name)
        first = next(self._focusable(self.query_one(f"#{name}")), None)
        self.screen.set_focus(first)

    def _focusable(self, region: Widget) -> Iterator[Widget]:
        for widget in (region, *region.query("*")):
            if widget.focusable and widget.display:
                yield widget

    def action_read_again(self) -> None:
        self.probe()
        if self.session.logs:
            self.open_logs(self.session.logs)

    def action_end_work(self) -> None:
        self.work.cancel()

    def action_help(self) -> None:
        self.push_screen(HelpScreen(self.region))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES.values()]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]

    def action_export(self, form: str) -> None:
        self.notify(export.export_report(self.session, form), markup=False)

    # -- crashes ---------------------------------------------------------------------------------------
    def _fatal_error(self) -> None:
        """In place of Textual's: the traceback goes to a file, one line to the person."""
        self._exit_renderables.append(record_crash(self._exception))
        self._close_messages_no_wait()
