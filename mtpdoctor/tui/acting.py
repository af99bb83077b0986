"""What the application does: work off the screen's thread, and what the regions' messages ask for.

The regions never act themselves; how they are laid out is the application's (app.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import App

from mtpdoctor.tui import clipboard, export, messages
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.launch.starting import after_launch
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.session import Chosen, Session
from mtpdoctor.tui.shown import shown_text
from mtpdoctor.tui.start.docker_log import fetch_container_log
from mtpdoctor.tui.work import Work
from mtpdoctor.tui.workers import Doctor

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.kb.load import Knowledge


class Acting(App[None]):
    """``session`` is what is known; ``doctor`` does the work (workers.py)."""

    def __init__(self, session: Session, doctor: Doctor | None) -> None:
        super().__init__()
        self.session = session
        self.doctor = doctor or Doctor()
        self.work = Work(self, self.show_busy)
        self._warned_of: object = self  # the launch whose end by quitting was warned of

    if TYPE_CHECKING:  # what the layout (app.py) does

        @property
        def region(self) -> str:
            """The region that is looked at."""

        def update(self, session: Session) -> None:
            """Take over a new session and show it."""

        def action_region(self, name: str) -> None:
            """Turn to a region."""

        def show_busy(self, busy: tuple[str, ...]) -> None:
            """Say what is at work."""

    def notify(self, message: str, *, title: str = "", markup: bool = False, **how: Any) -> None:
        """As Textual's, but what is told may come from a log or be the name of a file: it is text, without
        escapes, and secrets in it are masked."""
        super().notify(shown_text(message), title=shown_text(title), markup=False, **how)

    # -- work ------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """What was asked for on the command line."""
        self.probe()
        if self.session.logs:
            self.open_logs(self.session.logs)
            return
        if self.session.given.document is not None:
            self.action_region("diagnosis")
            self.check_base()
        else:
            self.action_region("start")
            self.work.start("knowledge", "reading the rules", self.doctor.knowledge, self._knows)

    def probe(self) -> None:
        given = self.session.given.host
        if given is not None:
            self.update(replace(self.session, host=given))
            return
        self.work.start("probe", "asking the host", partial(self.doctor.probe, self.session), self._probed)

    def check_base(self) -> None:
        """The given command, where there is no log."""
        work = partial(self.doctor.check_base, self.session)
        self.work.start("check base", "checking the command", work, self._base_checked)

    def _probed(self, host: HostFacts | None) -> None:
        self.update(replace(self.session, host=host))
        if not self.session.logs and self.session.given.document is not None:
            self.check_base()  # the command is for this machine: its GPUs and packages count

    def _knows(self, knowledge: Knowledge) -> None:
        self.update(replace(self.session, knowledge=knowledge))

    def _base_checked(self, found: Session) -> None:
        self.update(
            replace(
                self.session,
                knowledge=found.knowledge,
                base=found.base,
                check=found.check,
                model=found.model,
                memory=found.memory,
            )
        )

    def open_logs(self, paths: tuple[str, ...], *, stay: bool = False) -> None:
        """Show the end of the logs at once, and read them beside. ``stay``: in the region that is looked at."""
        gone = Chosen()
        self.update(
            replace(
                self.session,
                logs=paths,
                reading=None,
                report=None,
                check=None,
                diagnosis=0,
                chosen=gone,
                errors=(),
            )
        )
        self.query_one(LogRegion).open(paths, moved=stay)
        if not stay:
            self.action_region("log")
        names = ", ".join(Path(p).name for p in paths)
        work = partial(self.doctor.diagnose, self.session)
        self.work.start("read", f"reading {names}", work, self._diagnosed, self._unread)

    def _diagnosed(self, found: Session) -> None:
        stay = self.region != "log" or self.query_one(LogRegion).moved
        now = self.session
        self.update(replace(found, host=now.host, history=now.history, launched=now.launched))
        if not stay:
            self.action_region("diagnosis")

    def _unread(self, said: str) -> None:
        self.update(replace(self.session, errors=(said,)))
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

    @on(messages.OpenContainer)
    def _open_container(self, message: messages.OpenContainer) -> None:
        work = partial(fetch_container_log, message.name)
        self.work.start("find", f"asking docker for {message.name}", work, self._fetched)

    def _fetched(self, path: str) -> None:
        self.open_logs((path,))

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

    @on(messages.ProbeAgain)
    def _probe_again(self, _: messages.ProbeAgain) -> None:
        self.probe()

    @on(messages.LaunchCommand)
    def _launch(self, message: messages.LaunchCommand) -> None:
        self.action_region("launch")
        self.query_one(LaunchRegion).launch(self.session, message.command)

    @on(messages.EndLaunch)
    def _end_launch(self, message: messages.EndLaunch) -> None:
        self.query_one(LaunchRegion).end_launch(message.hard)

    @on(messages.LaunchEnded)
    def _launch_ended(self, message: messages.LaunchEnded) -> None:
        from mtpdoctor.watch.types import End

        self.update(after_launch(self.session, message.record, message.document))
        if message.ended.how is End.DIED:
            self.open_logs((message.record.log,))

    # -- actions ---------------------------------------------------------------------------------------
    def action_read_again(self) -> None:
        self.probe()
        if self.session.logs:
            self.open_logs(self.session.logs, stay=self.region in ("log", "diagnosis"))
        elif self.session.given.document is not None:
            self.check_base()

    def action_end_work(self) -> None:
        self.work.cancel()
        self.query_one(LogRegion).end_work()

    def action_export(self, form: str) -> None:
        self.notify(export.export_report(self.session, form), markup=False)

    def heed_signals(self) -> None:
        """Whoever ends the application from outside, or whose connection breaks, ends it as ``q`` does: the
        launch with it, the terminal put right. A second signal ends it at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
                loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(each)
        self.exit(return_code=128 + number, message=f"mtpdoctor: ended by {number.name}")

    def action_help_quit(self) -> None:
        """Ctrl+C, where it ends nothing."""
        self.notify("q quits, Ctrl+Q from everywhere. Ctrl+C in Launch ends a launch.")

    async def action_quit(self) -> None:
        """A launch from here ends with the application: that takes a second ``q``."""
        launch = self.query_one(LaunchRegion)
        if launch.running and self._warned_of is not launch.state.launched:
            self._warned_of = launch.state.launched
            self.notify(
                "A launch is under way and would end too: q again ends it; b in Launch leaves it running.",
                severity="warning",
                markup=False,
            )
            return
        self.exit()
