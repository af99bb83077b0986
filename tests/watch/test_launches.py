"""The whole path on the stand-in: a launch is watched, dies, is diagnosed, fixed, launched again, and generates."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from standing import RECORDED, SAMPLES, environment, free_port
from waiting import LONG

from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.log.types import Stage
from mtpdoctor.watch import stuck
from mtpdoctor.watch.bench import Plan, compare
from mtpdoctor.watch.plan import plan_of
from mtpdoctor.watch.retry import Step, Stop, next_attempt
from mtpdoctor.watch.session import LaunchSession
from mtpdoctor.watch.target import Target
from mtpdoctor.watch.types import (
    AttemptRecord,
    End,
    Ended,
    Generated,
    Output,
    Ready,
    Resumed,
    StageReached,
    Stuck,
    WatchEvent,
)

HANGS = load_hangs()
SEED_FAILS = {
    "unless": "extra_buffer",
    "log": str(SAMPLES / "spec_no_buffer_with_radix.log"),
    "then": "exit",
    "code": 1,
}
READY = {"log": str(RECORDED / "ready_mtp2.log"), "until": "fired up"}


def command(options: str = "", program: str = "-m sglang.launch_server") -> LaunchDocument:
    return read_launch(
        f"{shlex.quote(sys.executable)} {program} --model-path M --port {free_port()} {options}"
    )


def session_of(
    document: LaunchDocument, monkeypatch: pytest.MonkeyPatch, *plays: dict[str, Any]
) -> LaunchSession:
    for name, value in environment(*plays).items():
        monkeypatch.setenv(name, value)
    return LaunchSession(plan_of(Given(document=document), pty=False), gpus=False)


def watched(
    session: LaunchSession,
    until: type | tuple[type, ...] = Ended,
    at: type | None = None,
    make: Path | None = None,
) -> list[WatchEvent]:
    """Events up to one of a kind; the launch is ended afterwards. The file ``make`` is made when one of the kind
    ``at`` comes: the stand-in waits for it."""
    seen: list[WatchEvent] = []
    started = time.monotonic()
    events = session.events()
    try:
        for event in events:
            seen.append(event)
            if at is not None and make is not None and isinstance(event, at):
                make.touch()
            if isinstance(event, until) or time.monotonic() - started > LONG:
                break
    finally:
        events.close()  # type: ignore[attr-defined]
    return seen


def one(seen: list[WatchEvent], kind: type) -> Any:
    found = [event for event in seen if isinstance(event, kind)]
    assert found, f"no {kind.__name__} in {[type(e).__name__ for e in seen]}"
    return found[-1]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_failing_diagnosed_retried_ready_and_generating_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = command("--speculative-algorithm NEXTN --attention-backend triton --mem-fraction-static 0.1")
    plays = (SEED_FAILS, {**READY, "accept": 1.0, "children": True, "answers": "noise"})
    history: list[AttemptRecord] = []
    edits: tuple[str, ...] = ()
    for number in (1, 2):
        seen = watched(session_of(document, monkeypatch, *plays), (Ended, Generated))
        if isinstance(seen[-1], Generated):
            break
        ended = one(seen, Ended)
        cause = ended.report.diagnoses[0]
        history.append(
            AttemptRecord(number, edits, ended.stage, ended.how, cause.rule, cause.title, ended.at, "log")
        )
        step = next_attempt(ended.report, history, document, limit=2)
        assert isinstance(step, Step), step
        document, edits = step.document, tuple(map(str, step.edits))
    assert len(history) == 1 and history[0].stage is Stage.SERVER_ARGS
    assert "extra_buffer" in document.text and "NEXTN" in document.text
    proof = one(seen, Generated)
    assert proof.ok and proof.tokens > 100
    assert proof.accept_length == pytest.approx(1.0, abs=0.05)
    warnings = " | ".join(proof.warnings)
    assert "nothing that was drafted is accepted" in warnings and "weights are random" in warnings
    stages = [event.stage for event in seen if isinstance(event, StageReached)]
    assert stages == sorted(stages, key=lambda s: s.order) and Stage.GRAPH_CAPTURE in stages
    assert one(seen, Ready).url.endswith(document.command.value("port")[0])  # type: ignore[index]


def test_a_fix_that_does_not_help_ends_the_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    document = command("--speculative-algorithm NEXTN --mem-fraction-static 0.1")
    stubborn = {k: v for k, v in SEED_FAILS.items() if k != "unless"}
    history: list[AttemptRecord] = []
    for number in range(1, 6):
        ended = one(watched(session_of(document, monkeypatch, stubborn)), Ended)
        cause = ended.report.diagnoses[0]
        history.append(AttemptRecord(number, (), ended.stage, ended.how, cause.rule, cause.title, 1.0, "log"))
        step = next_attempt(ended.report, history, document, limit=5)
        if isinstance(step, Stop):
            break
        document = step.document
    assert len(history) == 2 and "same cause again" in step.reason


# A line after which each stage is quiet, in a recorded start.
HANGS_AT = {
    Stage.SERVER_ARGS: "server_args=",
    Stage.DIST_INIT: "Init torch distributed begin",
    Stage.WEIGHTS: "Load weight begin",
    Stage.MEMORY_POOL: "Memory pool end",
    Stage.GRAPH_CAPTURE: "Capture ",
    Stage.WARMUP: "Uvicorn running on",
}


def quick(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """This stage may be quiet for a second, every other one for ever: on a busy machine a start alone takes longer."""
    quiet = {each: 1.0 if each is stage else 1e9 for each in Stage}
    fast = replace(HANGS, quiet_s=quiet)
    monkeypatch.setattr(stuck, "load_hangs", lambda: fast)


@pytest.mark.parametrize("stage", HANGS_AT, ids=lambda s: s.value)
def test_a_hang_at_each_stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(stage, monkeypatch)
    play = {**READY, "until": HANGS_AT[stage], "then": "hang"}
    seen = watched(session_of(command(), monkeypatch, play), Stuck)
    found = one(seen, Stuck)
    assert found.stage is stage
    assert found.quiet_s >= 1.0 and found.likely and not found.compiling
    assert any("python" in p.name or "sglang" in p.name for p in found.processes)


def test_compiling_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(Stage.GRAPH_CAPTURE, monkeypatch)
    play = {**READY, "until": "Capture ", "then": "hang", "compiler": "cicc"}
    found = one(watched(session_of(command(), monkeypatch, play), Stuck), Stuck)
    assert found.compiling and "cicc" in found.likely[0]


def test_death_after_ready_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    die = tmp_path / "die"
    play = {**READY, "children": True, "die_when": str(die), "code": -9}
    session = session_of(command(), monkeypatch, play)
    seen = watched(session, at=Generated, make=die)
    ended = one(seen, Ended)
    assert one(seen, Generated).ok
    assert ended.how is End.DIED and ended.code == -9 and ended.stage is Stage.SERVING
    assert ended.left_over and not any(alive(pid) for pid in ended.left_over)


def test_a_child_that_ignores_sigterm_is_ended_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(command(), monkeypatch, {**READY, "children": True, "ignore_sigterm": True})
    pids: set[int] = set()
    events = session.events()
    for event in events:
        if isinstance(event, Generated):
            assert session._child is not None
            pids = set(session._child.processes())
            session.end(hard=True)
        if isinstance(event, Ended):
            assert event.how is End.STOPPED
    assert len(pids) >= 3 and not any(alive(pid) for pid in pids)


def test_key_and_base_path_reach_the_server_and_stay_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-very-secret-0123456789"
    document = command(f"--api-key {key} --fastapi-root-path /llm")
    seen = watched(session_of(document, monkeypatch, {**READY, "base_path": "/llm"}), (Generated, Ended))
    assert one(seen, Generated).ok
    assert key not in repr([e for e in seen if not isinstance(e, Ended)])


def test_a_flood_of_output_is_kept_and_does_not_hold_the_server_up(monkeypatch: pytest.MonkeyPatch) -> None:
    play = {**READY, "flood": 60_000_000, "then": "exit", "code": 3}
    session = session_of(command(), monkeypatch, play)
    ended = one(watched(session), Ended)
    assert ended.code == 3
    assert os.path.getsize(session.log) >= 60_000_000
    assert sum(
        len(e.lines)
        for e in watched(session_of(command(), monkeypatch, READY), Generated)
        if isinstance(e, Output)
    )


def test_quiet_and_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(Stage.DIST_INIT, monkeypatch)
    go = tmp_path / "go"
    begun = ("00:00:00] server_args=ServerArgs(model_path='M')", "00:00:01] Init torch distributed begin.")
    late = (
        "00:00:41] Load weight begin. avail mem=1 GB",
        "00:00:41] INFO:     Uvicorn running on http://127.0.0.1:1",
    )
    lines = [
        f"[2026-01-01 {text}"
        for text in (*begun, *late, "00:00:41] The server is fired up and ready to roll!")
    ]
    play = {"lines": lines, "pause_at": begun[-1], "go_on": str(go)}
    seen = watched(session_of(command(), monkeypatch, play), Generated, at=Stuck, make=go)
    assert one(seen, Stuck).quiet_s >= 1.0
    first = next(e for e in seen if isinstance(e, Stuck))
    assert next(e for e in seen if isinstance(e, Resumed)).at >= first.at
    assert one(seen, Generated).ok


def test_bench_launches_both_and_measures_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    @contextmanager
    def launcher(document: LaunchDocument) -> Iterator[Target]:
        session = session_of(document, monkeypatch, {**READY, "accept": 3.0, "step_s": 0.002})
        events = session.events()
        try:
            for event in events:
                if isinstance(event, Generated):
                    assert event.ok
                    break
            # the recorded log speaks of speculation in both arms; the command tells which is which
            on = document.command.value("speculative_algorithm") is not None
            yield session.target if on else replace(session.target, speculative=None)
        finally:
            events.close()  # type: ignore[attr-defined]

    plan = Plan(max_tokens=24, repetitions=2, concurrencies=(1,), timeout_s=LONG)
    found = compare(command("--speculative-algorithm NEXTN"), launcher, plan)
    # how much is gained is shown where the clock is the test's own (test_bench.py)
    assert all(arm.measured[0].per_request.least > 0 for arm in (found.speculating, found.plain))
    assert found.speculating.accept_length == pytest.approx(3.0, abs=0.4)
