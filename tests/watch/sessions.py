"""Watched launches of small programs that print what recorded servers printed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from waiting import LONG

from mtpdoctor.log.types import Stage
from mtpdoctor.watch.plan import LaunchPlan
from mtpdoctor.watch.session import LaunchSession
from mtpdoctor.watch.types import (
    Ended,
    Launched,
    Output,
    StageReached,
    WatchEvent,
)

REAL = Path(__file__).resolve().parents[1] / "data" / "real_logs"
PLAY = """
import os, signal, sys, time
print(open(sys.argv[1]).read().partition("\\n")[2], flush=True)
{then}
"""


def plan(code: str, *args: str, **options: object) -> LaunchPlan:
    base: dict[str, object] = {"env": dict(os.environ), "model": "some/Model-1", "pty": False, "prove": False}
    return LaunchPlan(argv=(sys.executable, "-c", code, *args), **{**base, **options})  # type: ignore[arg-type]


def playing(log: str, then: str, **options: object) -> LaunchSession:
    return LaunchSession(
        plan(PLAY.replace("{then}", then), str(REAL / log), **options), gpus=False, watchdog=False
    )


def until(session: LaunchSession, kind: type, act: object = None) -> list[WatchEvent]:
    """All events; ``act`` is called once when the first of ``kind`` came."""
    seen: list[WatchEvent] = []
    began = time.monotonic()
    events = session.events()
    for event in events:
        assert time.monotonic() - began < LONG, seen[-5:]
        first = isinstance(event, kind) and not any(isinstance(e, kind) for e in seen)
        seen.append(event)
        if first and callable(act):
            act()
    return seen


def ended(seen: list[WatchEvent]) -> Ended:
    assert isinstance(seen[0], Launched) and isinstance(seen[-1], Ended), seen
    return seen[-1]


def stages(seen: list[WatchEvent]) -> list[Stage]:
    return [e.stage for e in seen if isinstance(e, StageReached)]


def text(seen: list[WatchEvent]) -> str:
    return "\n".join(line for e in seen if isinstance(e, Output) for line in e.lines)
