"""Processes and stages of launches that stand still, for the tests of the watchdog."""

from __future__ import annotations

from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.log.types import Stage
from mtpdoctor.watch.stuck import Watchdog
from mtpdoctor.watch.types import Process, StageReached, Stuck

HANGS = load_hangs()
QUIET = HANGS.quiet_s


def process(**about: object) -> Process:
    known = {
        "pid": 100,
        "name": "sglang::scheduler",
        "rank": None,
        "state": "sleeping",
        "cpu_percent": 0.0,
        "read_bytes_per_s": 0.0,
        "gpu_percent": 0,
    }
    return Process(**{**known, **about})  # type: ignore[arg-type]


def judged(dog: Watchdog, at: float, *processes: Process, found: tuple[str, ...] = ()) -> Stuck:
    stuck = dog.judge(at, processes, found)
    assert stuck is not None
    return stuck


def in_stage(stage: Stage, rank: str | None = None, **about: object) -> Watchdog:
    dog = Watchdog(HANGS, **about)  # type: ignore[arg-type]
    dog.saw(StageReached(0.0, stage, rank, None, None))
    return dog
