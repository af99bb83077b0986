"""The whole path in the application: a log, its cause, a remedy, a launch (the stand-in), ready; or dead, and its cause."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "watch"))
from standing import RECORDED, SAMPLES, environment, free_port
from still import until

from mtpdoctor.diagnose.given import Given
from mtpdoctor.host.types import HostFacts
from mtpdoctor.launch.document import read_launch
from mtpdoctor.tui.app import DoctorApp
from mtpdoctor.tui.fix.command_view import CommandView
from mtpdoctor.tui.fix.confirm import LaunchConfirm
from mtpdoctor.tui.fix.editor import CommandEditor
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.workers import Doctor
from mtpdoctor.watch.types import End

LOG = "spec_no_buffer_with_radix.log"


class NoProbe(Doctor):
    """This machine is not looked at: the tests do not depend on it."""

    def probe(self, session: Session) -> HostFacts | None:
        return HostFacts(platform="none", gpus=())


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorded failure with a port that is free here."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    path = tmp_path / LOG
    path.write_text((SAMPLES / LOG).read_text().replace("31020", str(free_port())))
    return path


def plays(monkeypatch: pytest.MonkeyPatch, *which: dict[str, Any]) -> None:
    for name, value in environment(*which).items():
        monkeypatch.setenv(name, value)


def app_for(log: Path) -> DoctorApp:
    return DoctorApp(Session(Given(), logs=(str(log),)), NoProbe())


async def diagnosed(pilot: Pilot[None], app: DoctorApp) -> None:
    await until(pilot, lambda: app.session.report is not None, "the diagnosis")
    await pilot.press("4")
    await until(pilot, lambda: app.session.chosen.check is not None, "the check of the first choice")


def test_from_the_log_to_a_server_that_generates(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, {"log": str(RECORDED / "ready_mtp2.log"), "until": "fired up", "accept": 2.5})
    app = app_for(log)

    async def run() -> None:
        async with app.run_test(size=(100, 30)) as pilot:
            await diagnosed(pilot, app)
            assert "extra_buffer" in (app.session.chosen.command or "")
            await pilot.press("space")  # the remedy off again
            await until(pilot, lambda: not app.session.chosen.edits, "switching the remedy off")
            assert "no_buffer" in (app.session.chosen.command or "no_buffer")
            await pilot.press("down", "space")  # its one edit on
            await until(pilot, lambda: bool(app.session.chosen.edits), "switching the edit on")
            await until(pilot, lambda: app.session.chosen.check is not None, "the check")
            await pilot.press("c")
            await pilot.pause()
            assert "--mamba-scheduler-strategy extra_buffer" in app.clipboard
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.press("escape")
            await pilot.pause()
            region = app.query_one(LaunchRegion)
            assert not region.running, "no launch without a yes"
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.press("y")
            await until(pilot, lambda: region.state.generated is not None, "the proof that it generates")
            assert region.state.generated is not None and region.state.generated.ok
            assert region.state.ready is not None
            await pilot.press("ctrl+c")
            await until(pilot, lambda: bool(app.session.history), "its end")
            assert app.session.history[0].how is End.STOPPED
            assert app.session.history[0].edits == ("set --mamba-scheduler-strategy extra_buffer",)

    asyncio.run(run())


def test_a_launch_that_dies_is_diagnosed_anew(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(
        monkeypatch,
        {"log": str(SAMPLES / "port_in_use.log"), "then": "exit", "code": 1},
    )
    app = app_for(log)

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await diagnosed(pilot, app)
            first = app.session.report
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.press("y")
            await until(pilot, lambda: bool(app.session.history), "its death")
            assert app.session.history[0].how is End.DIED
            await until(
                pilot,
                lambda: app.session.report is not None and app.session.report is not first,
                "a new diagnosis",
            )
            assert app.session.report is not None
            assert app.session.report.diagnoses[0].rule == "MTP0510"
            assert "extra_buffer" in (app.session.base.text if app.session.base else ""), (
                "the launched command"
            )
            await pilot.press("4")
            await pilot.pause()
            assert app.query_one(CommandView).display

    asyncio.run(run())


def test_whoever_quits_ends_the_launch(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, {"lines": ["Load weight begin"], "then": "hang"})
    app = app_for(log)

    async def run() -> int | None:
        async with app.run_test(size=(80, 24)) as pilot:
            await diagnosed(pilot, app)
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.press("y")
            region = app.query_one(LaunchRegion)
            await until(pilot, lambda: region.state.launched is not None, "the launch")
            assert region.state.launched is not None
            return region.state.launched.pid

    pid = asyncio.run(run())
    assert pid is not None and not Path(f"/proc/{pid}").exists()


def test_one_that_is_left_running_outlives_the_doctor(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, {"lines": ["Load weight begin"], "then": "hang"})
    app = app_for(log)

    async def run() -> int | None:
        async with app.run_test(size=(80, 24)) as pilot:
            await diagnosed(pilot, app)
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.press("y")
            region = app.query_one(LaunchRegion)
            await until(pilot, lambda: region.state.launched is not None, "the launch")
            await pilot.press("b")
            await until(pilot, lambda: bool(app.session.history), "the end of watching")
            assert app.session.history[0].how is End.DETACHED
            assert region.state.launched is not None
            return region.state.launched.pid

    pid = asyncio.run(run())
    assert pid is not None and Path(f"/proc/{pid}").exists()
    os.kill(pid, signal.SIGKILL)


def test_a_command_alone_is_checked_and_its_remedies_are_offered(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "python -m sglang.launch_server --model-path some/model --tp-sizes 2 --port 1"
    document = read_launch(command)
    app = DoctorApp(Session(Given(document=document, command_where="command", release="0.5.13")), NoProbe())

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.session.check is not None, "the check")
            assert app.session.check is not None and app.session.check.verdict == "reject"
            await pilot.press("4")
            await until(pilot, lambda: app.session.chosen.check is not None, "the first choice and its check")
            assert "--tp-size 2" in (app.session.chosen.command or "")
            await pilot.press("r")
            await until(pilot, lambda: app.session.chosen.edits == (), "nothing switched on")
            await pilot.press("i")
            await until(pilot, lambda: isinstance(app.screen, CommandEditor), "the editor")
            await pilot.press("space", *"--enable-metrics", "ctrl+s")
            await until(pilot, lambda: app.session.chosen.by_hand, "the edited command")
            assert (app.session.chosen.command or "").endswith("--enable-metrics")
            await until(pilot, lambda: app.session.chosen.check is not None, "its check")

    asyncio.run(run())
