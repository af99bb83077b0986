"""The interactive doctor: composes the regions and shows the one ``Session`` to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Footer, Input

from mtpdoctor.tui.acting import Acting
from mtpdoctor.tui.actions.commands import DoctorCommands
from mtpdoctor.tui.crash import record_crash
from mtpdoctor.tui.diagnosis import DiagnosisRegion
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.help import HelpScreen
from mtpdoctor.tui.host import HostRegion
from mtpdoctor.tui.knowledge import KnowledgeRegion
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.model import ModelRegion
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.start import StartRegion
from mtpdoctor.tui.start.found import Places
from mtpdoctor.tui.tabs import REGIONS, RegionTabs
from mtpdoctor.tui.themes import THEMES
from mtpdoctor.tui.title import TitleLine
from mtpdoctor.tui.workers import Doctor

_CLASSES: dict[str, Any] = {
    "start": StartRegion,
    "diagnosis": DiagnosisRegion,
    "log": LogRegion,
    "fix": FixRegion,
    "launch": LaunchRegion,
    "host": HostRegion,
    "model": ModelRegion,
    "knowledge": KnowledgeRegion,
}


class DoctorApp(Acting):
    """``places`` says where logs are looked for, ``doctor`` does the work: tests give their own."""

    TITLE = "mtpdoctor"
    CSS_PATH = "app.tcss"
    COMMANDS = App.COMMANDS | {DoctorCommands}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(n), f"region('{name}')", title, show=False)
            for n, (name, title) in enumerate(REGIONS, 1)
        ),
        Binding("o", "region('start')", "Open another log", show=False),
        Binding("e", "export('text')", "Export the report as text", show=False),
        Binding("E", "export('json')", "Export the report as JSON", show=False),
        Binding("t", "next_theme", "Next theme: dark, light, high contrast", show=False),
        Binding("f5", "read_again", "Read the log and ask the host again", show=False),
        Binding("escape", "end_work", "End what is being worked on", show=False),
        Binding("ctrl+z", "suspend_process", "To the shell; fg comes back", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        session: Session,
        doctor: Doctor | None = None,
        *,
        theme: str = "dark",
        places: Places | None = None,
    ) -> None:
        super().__init__(session, doctor)
        self._places = places or Places.usual()
        self._theme_name = theme
        self._stale: set[str] = set()

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
        self.heed_signals()
        # back from the shell: the terminal is empty
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.update(self.session)
        self.query_one(StartRegion).discover(self.work, self._places)
        self.begin()

    # -- data down -------------------------------------------------------------------------------------
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

    def show_busy(self, busy: tuple[str, ...]) -> None:
        if self.is_running and self.screen_stack:
            for line in self.screen_stack[0].query(TitleLine):
                line.busy = busy

    def action_region(self, name: str) -> None:
        if len(self.screen_stack) > 1:  # a dialog stands before the regions
            return
        if name != self.region:
            self.clear_notifications()  # what was told of the region that is left stands before this one
        self.query_one(RegionTabs).active = name
        self.query_one(ContentSwitcher).current = name
        self._show(name)
        self.screen.set_focus(next(self._focusable(self.query_one(f"#{name}")), None))

    def _focusable(self, region: Widget) -> Iterator[Widget]:
        for widget in (region, *region.query("*")):
            if widget.focusable and widget.display and not isinstance(widget, Input):
                yield widget

    @on(RegionTabs.Chosen)
    def _tab(self, message: RegionTabs.Chosen) -> None:
        self.action_region(message.region)

    def get_system_commands(self, screen: Screen[Any]) -> Iterator[SystemCommand]:
        """Of Textual's own commands those that are not offered by better names."""
        for command in super().get_system_commands(screen):
            if command.title in ("Quit", "Screenshot"):
                yield command

    def push_screen(self, *args: Any, **how: Any) -> Any:
        """As Textual's; what was told before does not stand in front of a dialog."""
        self.clear_notifications()
        return super().push_screen(*args, **how)

    # -- the application's own keys --------------------------------------------------------------------
    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.region))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES.values()]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]

    # -- crashes ---------------------------------------------------------------------------------------
    def _fatal_error(self) -> None:
        """In place of Textual's: the traceback goes to a file, one line to the person."""
        self.panic(record_crash(self._exception))
