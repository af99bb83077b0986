"""The application held still for tests: a fixed host, nothing looked for on this machine, waiting for its work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from waiting import LONG

from mtpdoctor.diagnose.given import Given
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.host.types import HostFacts
from mtpdoctor.launch.document import read_launch
from mtpdoctor.tui.app import DoctorApp
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.start.found import Places
from mtpdoctor.tui.workers import Doctor

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"
NOWHERE = Places(None, None, None, None, None)
EMPTY_MACHINE = Places(None, None, SAMPLES, list, list)
FAILED = str(SAMPLES / "spec_no_buffer_with_radix.log")
HEALTHY = str(SAMPLES / "ready_mtp_accept_len_1.log")


class Still(Doctor):
    """One H200, whatever machine this is."""

    def probe(self, session: Session) -> HostFacts | None:
        return parse_gpu_spec("1xsm90@140")


def app_of(
    *logs: str, command: str | None = None, places: Places = NOWHERE, theme: str = "dark"
) -> DoctorApp:
    given = Given()
    if command is not None:
        given = Given(
            document=read_launch(command), command_where="command", host=parse_gpu_spec("1xsm90@140")
        )
    return DoctorApp(Session(given, logs=logs), Still(), places=places, theme=theme)


async def until(pilot: Pilot[Any], what: Callable[[], Any], why: str) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end, f"{why} did not come about"
        await pilot.pause(0.02)


async def settled(pilot: Pilot[Any]) -> None:
    """Until nothing is at work any more and the screen shows it."""
    app: Any = pilot.app
    await until(pilot, lambda: app.work.idle and app.query_one(LogRegion).idle, "the end of all work")
    await pilot.pause()
    await pilot.pause()


def screen_text(app: Any) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
