"""Somebody else's log or program, watched; and a launch that has failed and does not end."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from sessions import PLAY, REAL, ended, plan, stages, text, until

from mtpdoctor.diagnose.given import Given
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.types import Stage
from mtpdoctor.report.watch_text import WatchText
from mtpdoctor.watch import trouble
from mtpdoctor.watch.session import LaunchSession, watch_command, watch_log
from mtpdoctor.watch.types import (
    End,
    Ended,
    Generated,
    Launched,
    Lingers,
    Ready,
    Resumed,
    StageReached,
    Stuck,
)

# -- somebody else's -------------------------------------------------------------------------------------


def test_a_log_that_stands_there_tells_its_stages_and_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "QUIET", 0.0)
    session = watch_log([str(REAL / "scheduler_killed_sigkill.log")], prove=False)
    seen = until(session, Ended)
    end = ended(seen)
    assert (end.how, end.code) == (End.DIED, None) and end.report is not None
    assert end.report.diagnoses[0].rule == "MTP0030"
    assert Stage.GRAPH_CAPTURE in stages(seen)
    assert len(text(seen).splitlines()) == 10  # only the end of what stood there


def test_a_growing_log_is_followed_through_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "QUIET", 1e9)  # until all is written: a busy machine may stop in between
    log = tmp_path / "server.log"
    lines = (REAL / "port_in_use.log").read_text().splitlines(keepends=True)
    log.write_text("")
    session = watch_log([str(log)], prove=False)

    def write() -> None:
        half = len(lines) // 2
        with log.open("a") as file:
            file.writelines(lines[:half])
        log.rename(tmp_path / "server.log.1")
        log.write_text("".join(lines[half:]))
        monkeypatch.setattr(trouble, "QUIET", 0.2)

    writer = threading.Thread(target=write)
    seen = until(session, Launched, writer.start)
    writer.join()
    assert ended(seen).how is End.DIED
    shown = text(seen)
    assert lines[1].strip()[:60] in shown and "address already in use" in shown.lower()


def test_watching_a_log_no_longer_ends_nothing(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-11-29 15:20:22] Load weight begin. avail mem=1 GB\n")
    session = watch_log([str(log)], prove=False)
    end = ended(until(session, StageReached, session.end))
    assert (end.how, end.stage, end.code) == (End.STOPPED, Stage.WEIGHTS, None)


def test_a_program_that_shows_a_log_is_followed_and_ended(tmp_path: Path) -> None:
    code = PLAY.replace("{then}", "[signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; time.sleep(100)")
    session = watch_command([sys.executable, "-c", code, str(REAL / "ready_dense.log")], prove=False)
    seen = until(session, Ready, session.end)
    assert ended(seen).how is End.STOPPED
    launched = seen[0]
    assert isinstance(launched, Launched) and launched.pid is None and sys.executable in launched.command
    assert session.run is not None and not Path(f"/proc/{session.run.pid}").exists()


def test_a_container_that_died_is_diagnosed_when_its_log_ends() -> None:
    code = PLAY.replace("{then}", "")
    session = watch_command([sys.executable, "-c", code, str(REAL / "port_in_use.log")], prove=False)
    end = ended(until(session, Ended))
    assert end.how is End.DIED and end.report is not None and end.report.outcome == "failed"


def test_a_log_in_which_nothing_moves_is_said_to_stand_still(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-11-29 15:20:22 TP0] Load weight begin. avail mem=1 GB\n")
    session = watch_log([str(log)], prove=False, patience=0.001)
    seen = until(session, Stuck, session.end)
    stuck = next(e for e in seen if isinstance(e, Stuck))
    assert stuck.stage is Stage.WEIGHTS and stuck.processes == () and ended(seen).how is End.STOPPED


def test_a_node_other_than_the_first_is_up_when_its_ranks_are() -> None:
    document = read_launch("python -m sglang.launch_server --model-path M --nnodes 2 --node-rank 1")
    code = "print('Dummy health check server started in background thread at 0.0.0.0:30000', flush=True); import time; time.sleep(100)"
    session = LaunchSession(
        plan(code, given=Given(document=document), prove=True), gpus=False, watchdog=False
    )
    seen = until(session, Generated, session.end)
    up = next(e for e in seen if isinstance(e, Generated))
    assert up.ok and up.tokens == 0 and "node 0 answers" in up.said


TAKEN = (
    "[2026-11-30 00:05:49] INFO:     Application startup complete.\n"
    "[2026-11-30 00:05:49] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31300): "
    "address already in use\n[2026-11-30 00:05:49] INFO:     Waiting for application shutdown."
)


def test_a_launch_that_has_failed_and_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded: SGLang goes on for two minutes after its port could not be bound."""
    monkeypatch.setattr(trouble, "LINGERS", 0.3)
    session = LaunchSession(plan(f"import time; print({TAKEN!r}, flush=True); time.sleep(100)"), gpus=False)
    seen = until(session, Lingers, session.end)
    told = [e for e in seen if isinstance(e, Lingers)]
    assert [e.rule for e in told] == ["MTP0510"] and "address already in use" in told[0].root
    assert ended(seen).how is End.STOPPED
    lines = [line for e in seen for line in WatchText().lines(e)]
    assert any("HAS FAILED, and does not end: " in line for line in lines)


def test_one_that_nobody_sits_before_is_ended_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "LINGERS", 0.3)
    monkeypatch.setattr(trouble, "OVERDUE", 0.6)
    code = f"import time; print({TAKEN!r}, flush=True); time.sleep(100)"
    seen = until(LaunchSession(plan(code, ready_timeout=3600.0), gpus=False), Ended)
    end = ended(seen)
    assert end.how is End.DIED and end.report is not None and end.report.diagnoses[0].rule == "MTP0510"
    assert any("had failed, and had not ended by itself" in note for note in end.report.notes)


def test_trouble_that_it_gets_over_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "LINGERS", 0.2)
    code = "import time; print('Traceback (most recent call last)', flush=True); time.sleep(2); print('Load weight begin')"
    seen = until(LaunchSession(plan(code), gpus=False), Ended)
    assert not any(isinstance(e, Lingers) for e in seen)


def test_one_that_was_said_to_have_failed_and_goes_on_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "LINGERS", 0.3)
    code = f"import time; print({TAKEN!r}, flush=True); time.sleep(1.5); print('Load weight begin. avail mem=1 GB')"
    seen = until(LaunchSession(plan(code), gpus=False, watchdog=False), Ended)
    kinds = [type(e) for e in seen if isinstance(e, (Lingers, Resumed))]
    assert kinds == [Lingers, Resumed]
