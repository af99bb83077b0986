"""A watched launch or log, as events; with small programs that print what recorded servers printed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sessions import ended, plan, playing, stages, text, until
from standing import answering
from waiting import LONG
from waiting import until as wait_until

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.types import Stage
from mtpdoctor.watch import ending
from mtpdoctor.watch import session as session_module
from mtpdoctor.watch.plan import LaunchPlan
from mtpdoctor.watch.session import LaunchSession
from mtpdoctor.watch.spawn import Child
from mtpdoctor.watch.types import (
    End,
    Ended,
    Generated,
    Launched,
    Output,
    Ready,
    WatchEvent,
)


def test_a_launch_that_dies_is_diagnosed_at_once() -> None:
    session = playing("scheduler_killed_sigkill.log", "sys.exit(1)")
    seen = until(session, Ended)
    end = ended(seen)
    assert stages(seen)[0] is Stage.IMPORT and stages(seen)[-1] is Stage.GRAPH_CAPTURE
    assert (end.how, end.code, end.stage) == (End.DIED, 1, Stage.GRAPH_CAPTURE)
    assert end.report is not None and end.report.diagnoses[0].rule == "MTP0030"
    assert "Rank 0 scheduler died" in text(seen) and Path(session.log).read_text().count("\n") > 80
    run = session.run
    assert run is not None and (run.how, run.code, run.stage, run.rule) == (
        "died",
        1,
        "graph_capture",
        "MTP0030",
    )
    assert json.loads((Path(session.log).parent / "run.json").read_text())["cause"] == run.cause


def test_a_launch_that_is_killed_without_a_word_says_by_what() -> None:
    end = ended(until(playing("ready_dense.log", "os.kill(os.getpid(), signal.SIGKILL)"), Ended))
    assert (end.how, end.code) == (End.DIED, -9) and end.report is not None
    assert any("killed by SIGKILL" in note for note in end.report.notes)


def test_ready_is_told_and_the_watch_goes_on_until_the_person_ends_it() -> None:
    session = playing("ready_dense.log", "time.sleep(100)")
    seen = until(session, Ready, session.end)
    end = ended(seen)
    assert end.how is End.STOPPED and end.report is None and end.stage is Stage.SERVING
    ready = next(e for e in seen if isinstance(e, Ready))
    assert ready.url.startswith("http://127.0.0.1:")


def test_a_server_that_hears_no_signal_is_killed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "INT_PATIENCE", 0.1)
    monkeypatch.setattr(ending, "TERM_PATIENCE", 0.1)
    deaf = "[signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print('deaf', flush=True); time.sleep(100)"
    code = f"import signal, time\n{deaf}"
    session = LaunchSession(plan(code), gpus=False, watchdog=False)
    end = ended(until(session, Output, session.end))
    assert (end.how, end.code) == (End.STOPPED, -9)


def test_a_hard_end_comes_at_once() -> None:
    code = "import signal, time\nsignal.signal(2, signal.SIG_IGN); print('up', flush=True); time.sleep(100)"
    session = LaunchSession(plan(code), gpus=False, watchdog=False)
    end = ended(until(session, Output, lambda: (session.end(), session.end(hard=True))))
    assert (end.how, end.code) == (End.STOPPED, -9)


def test_leaving_the_events_ends_the_launch() -> None:
    session = LaunchSession(
        plan("import time; print('up', flush=True); time.sleep(100)"), gpus=False, watchdog=False
    )
    events: Iterator[WatchEvent] = session.events()
    pid = next(e.pid for e in events if isinstance(e, Launched))
    assert pid is not None and Path(f"/proc/{pid}").exists()
    events.close()  # type: ignore[attr-defined]
    assert not Path(f"/proc/{pid}").exists()
    assert session.run is not None and session.run.how == "stopped"


def test_detached_it_runs_on_and_its_output_is_kept(tmp_path: Path) -> None:
    go, log = tmp_path / "go", ""
    code = (
        f"import os, time\nprint('up', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "print('later', flush=True)"
    )
    session = LaunchSession(plan(code, detach=True), gpus=False, watchdog=False)
    end = ended(until(session, Output, session.detach))
    assert end.how is End.DETACHED
    log = session.log
    go.touch()
    wait_until((Path(log).parent / "exit.json").exists, "its end")
    assert Path(log).read_text() == "up\nlater\n"
    assert json.loads((Path(log).parent / "exit.json").read_text())["code"] == 0


HANGS = "import time; print('up', flush=True); time.sleep(100)"


def runs_on(session: LaunchSession) -> bool:
    """Whether the launch lives a moment after its doctor let go of it. It is ended here."""
    assert session.run is not None and session.run.pid
    pid = session.run.pid
    try:
        time.sleep(0.3)  # the guard kills at once what it takes for orphaned
        return Path(f"/proc/{pid}").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_it_is_let_go_of_only_after_its_guard_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """``detach`` comes from another thread: what drives the launch may see it before the guard has."""
    tell = Child.detach

    def late(child: Child) -> None:
        time.sleep(0.5)
        tell(child)

    monkeypatch.setattr(Child, "detach", late)
    session = LaunchSession(plan(HANGS), gpus=False, watchdog=False)
    end = ended(until(session, Output, lambda: threading.Thread(target=session.detach).start()))
    assert end.how is End.DETACHED
    assert runs_on(session)


def test_detached_while_it_was_starting_it_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    start = session_module.spawn

    def spawn(*args: Any, **options: Any) -> Child:
        session.detach()
        return start(*args, **options)

    monkeypatch.setattr(session_module, "spawn", spawn)
    session = LaunchSession(plan(HANGS), gpus=False, watchdog=False)
    assert ended(list(session.events())).how is End.DETACHED
    assert runs_on(session)


DEAF = "import signal, time; signal.signal(2, signal.SIG_IGN); print('up', flush=True); time.sleep(100)"


def test_ended_hard_while_it_was_starting_it_is_ended_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    start = session_module.spawn

    def spawn(*args: Any, **options: Any) -> Child:
        session.end()
        session.end(hard=True)
        child = start(*args, **options)
        wait_until(lambda: "up" in Path(session.log).read_text(), "its start")
        return child

    monkeypatch.setattr(session_module, "spawn", spawn)
    session = LaunchSession(plan(DEAF), gpus=False, watchdog=False)
    end = ended(list(session.events()))
    assert (end.how, end.code) == (End.STOPPED, -9)


@pytest.mark.parametrize("hard", [False, True])
def test_what_was_detached_is_not_ended(hard: bool) -> None:
    """Whoever quits right after: the end is asked for while the last events are on their way."""
    session = LaunchSession(plan(HANGS), gpus=False, watchdog=False)
    events = []
    for event in session.events():
        events.append(event)
        if isinstance(event, Output):
            session.detach()
        if isinstance(event, Ended):
            session.end(hard)
    assert ended(events).how is End.DETACHED
    assert runs_on(session)


def test_not_ready_in_time_counts_as_failed() -> None:
    session = LaunchSession(
        plan("import time; time.sleep(100)", ready_timeout=0.2), gpus=False, watchdog=False
    )
    end = ended(until(session, Ended))
    assert end.how is End.DIED and end.report is not None
    assert any("not ready after 0.2 s" in note for note in end.report.notes)


def test_a_program_that_cannot_be_started_is_an_error_for_people() -> None:
    session = LaunchSession(LaunchPlan(argv=("no-such-program",), env={}), gpus=False, watchdog=False)
    with pytest.raises(UserError, match="cannot start no-such-program"):
        list(session.events())
    assert session.run is not None and session.run.how == "refused"


def test_secrets_of_the_command_are_shown_nowhere() -> None:
    document = read_launch("python -m sglang.launch_server --model-path M --api-key Open-Sesame-1")
    code = "print('the key is Open-Sesame-1', flush=True)"
    session = LaunchSession(
        plan(
            code,
            "--api-key",
            "Open-Sesame-1",
            given=Given(document=document),
            sets=("API_KEY=Open-Sesame-1",),
        ),
        gpus=False,
        watchdog=False,
    )
    seen = until(session, Ended)
    kept = "".join(p.read_text() for p in Path(session.log).parent.iterdir())
    assert "Sesame" not in kept and "Sesame" not in repr([e for e in seen if not isinstance(e, Ended)])
    assert "the key is <hidden>" in text(seen)


def test_ready_is_proven_by_a_real_request() -> None:
    with answering() as target:
        document = read_launch(f"python -m sglang.launch_server --model-path M --port {target.port}")
        lines = (
            f"print('INFO:     Uvicorn running on http://127.0.0.1:{target.port} (Press CTRL+C to quit)')\n"
        )
        ready = "print('The server is fired up and ready to roll!', flush=True); import time; time.sleep(100)"
        session = LaunchSession(
            plan(lines + ready, given=Given(document=document), prove=True, prove_timeout=LONG),
            gpus=False,
            watchdog=False,
        )
        seen = until(session, Generated, session.end)
    proof = next(e for e in seen if isinstance(e, Generated))
    assert proof.ok and proof.tokens > 0
    assert session.run is not None and session.run.ready_after is not None


def test_a_server_told_not_to_log_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_ASK_EVERY", 0.05)
    with answering() as target:
        document = read_launch(
            f"python -m sglang.launch_server --model-path M --log-level error --port {target.port}"
        )
        session = LaunchSession(
            plan("import time; time.sleep(100)", given=Given(document=document), prove=True),
            gpus=False,
            watchdog=False,
        )
        seen = until(session, Generated, session.end)
    assert any(isinstance(e, Ready) for e in seen) and next(e for e in seen if isinstance(e, Generated)).ok


def test_a_flood_is_neither_lost_nor_shown_whole(tmp_path: Path) -> None:
    code = (
        "import os\nblock = (b'x' * 99 + b'\\n') * 10000\n"
        "for _ in range(30):\n    view = memoryview(block)\n    while view: view = view[os.write(1, view):]\n"
        "print('[2026-11-29 15:20:22] Load weight begin. avail mem=1 GB', flush=True)\n"
        "for _ in range(30):\n    view = memoryview(block)\n    while view: view = view[os.write(1, view):]\n"
    )
    session = LaunchSession(plan(code), gpus=False, watchdog=False)
    seen = until(session, Ended)
    assert Path(session.log).stat().st_size > 60_000_000
    assert Stage.WEIGHTS in stages(seen)
    assert max(len(e.lines) for e in seen if isinstance(e, Output)) < 2000
