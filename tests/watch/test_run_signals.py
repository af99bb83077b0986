"""``mtpdoctor run`` that is signalled, detached or answered in a terminal, on the stand-in server."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from standing import REPO, SITE, environment
from typing_at import HYBRID, READY, REAL, SEED, UNFIT, events_of, server
from waiting import LONG

from mtpdoctor.cli.main import main

# -- signals ---------------------------------------------------------------------------------------------


def started(tmp_path: Path, play: dict[str, Any], *options: str) -> subprocess.Popen[str]:
    """The doctor as a process of its own, once its server generates."""
    env = {**os.environ, **environment(play), "PYTHONPATH": f"{SITE}{os.pathsep}{REPO}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mtpdoctor", "run", "--no-check", "--events", *options, *server()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "generated":
            return process
    raise AssertionError(process.stderr and process.stderr.read())


def launched_by(state: Path) -> list[int]:
    """Processes that carry the mark of a run of this test's state folder."""
    wanted = f"MTPDOCTOR_STATE={state.parent}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            living = (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            if (
                living
                and wanted in (folder / "environ").read_bytes().split(b"\0")
                and int(folder.name) != os.getpid()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def nothing_left(state: Path) -> bool:
    limit = time.monotonic() + LONG
    while launched_by(state):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_doctor_killed_takes_everything_along(tmp_path: Path, state: Path) -> None:
    process = started(tmp_path, {**READY, "children": True, "ignore_sigterm": True})
    assert len(launched_by(state)) >= 4  # the doctor, its guard, the server and its children
    process.kill()
    process.communicate()
    assert nothing_left(state)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_it_gently_with_its_own_code(tmp_path: Path, state: Path, number: int) -> None:
    process = started(tmp_path, {**READY, "children": True})
    process.send_signal(number)
    out, _ = process.communicate(timeout=LONG)
    last = events_of(out)[-1]
    assert (last["event"], last["how"], last["code"]) == ("ended", "stopped", process.returncode)
    assert nothing_left(state)


def test_the_second_signal_ends_it_at_once(tmp_path: Path, state: Path) -> None:
    process = started(tmp_path, {**READY, "children": True, "ignore_sigterm": True})
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    assert "Ctrl-C again" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LONG)
    assert events_of(out)[-1]["how"] == "stopped"
    assert nothing_left(state)


def test_left_running_where_asked_for(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = started(tmp_path, {**READY, "children": True}, "--detach", "--until-ready")
    process.communicate(timeout=LONG)
    assert process.returncode == 0
    (folder,) = state.iterdir()
    run = json.loads((folder / "run.json").read_text())
    try:
        assert run["how"] == "detached" and run["pid"] in launched_by(state)
        main(["runs"])
        assert "left running" in capsys.readouterr().out
    finally:
        os.kill(run["guard"], signal.SIGTERM)
    assert nothing_left(state)
    main(["runs"])
    assert "ended as asked" in capsys.readouterr().out


# -- a terminal ------------------------------------------------------------------------------------------


def typed(args: list[str], keys: bytes, play: dict[str, Any], width: int = 100) -> tuple[int, str]:
    """The doctor in a terminal, with ``keys`` typed when it asks."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(
            environment(play), PYTHONPATH=f"{SITE}{os.pathsep}{REPO}", TERM="xterm", COLUMNS=str(width)
        )
        os.execv(sys.executable, [sys.executable, "-m", "mtpdoctor", *args])
    out = b""
    sent = False
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
        if not sent and b"? " in out[-4:]:
            os.write(terminal, keys)
            sent = True
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), out.decode()


def test_in_a_terminal_the_person_chooses(state: Path) -> None:
    code, out = typed(["run", *UNFIT, *server("--no-such-flag 1")], b"q\n", READY)
    assert code == 1 and "WOULD NOT START" in out and "[q]uit?" in out and not state.exists()
    assert "[f]ix" not in out


def test_the_fix_is_launched_where_the_person_says_so() -> None:
    code, out = typed(
        ["run", *HYBRID, "--until-ready", *server(SEED)], b"f\n", {**READY, "when": "extra_buffer"}
    )
    assert code == 0 and "[f]ix and launch" in out and "READY, it generates" in out


def test_as_it_is_and_one_line_shows_the_present(state: Path) -> None:
    play = {"log": str(REAL / "ready_dense.log"), "speed": 100}
    code, out = typed(["run", *UNFIT, "--until-ready", *server("--no-such-flag 1")], b"a\n", play)
    assert code == 0 and "READY, it generates" in out
    assert "\r\x1b[K" in out  # the line that is written over
