"""``mtpdoctor run``, ``watch`` and ``runs`` as they are typed, on the stand-in server."""

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
from standing import REPO, SITE, environment, free_port
from waiting import LONG

from mtpdoctor.cli.main import main
from mtpdoctor.cli.watch import is_command
from mtpdoctor.errors import UserError

REAL = REPO / "tests" / "data" / "real_logs"
READY = {"log": str(REAL / "ready_dense.log"), "speed": 0}
SEED = "--speculative-algorithm NEXTN --attention-backend triton"
FAILS = {
    "log": str(REAL / "spec_no_buffer_with_radix.log"),
    "speed": 0,
    "then": "exit",
    "code": 1,
    "unless": "extra_buffer",
}


@pytest.fixture
def state(own_state: Path) -> Path:
    return own_state / "runs"


def stand_in(monkeypatch: pytest.MonkeyPatch, *plays: dict[str, Any]) -> None:
    for name, value in environment(*plays).items():
        monkeypatch.setenv(name, value)


def server(options: str = "") -> list[str]:
    words = f"-m sglang.launch_server --model-path M --port {free_port()} {options}".split()
    return ["--", sys.executable, *words]


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# -- before ----------------------------------------------------------------------------------------------
UNFIT = ["--sglang", "0.5.13.post1", "--gpu", "1xsm90@140"]


def test_what_would_not_start_is_not_launched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    stand_in(monkeypatch, READY)
    assert main(["run", *UNFIT, *server("--no-such-flag 1")]) == 1
    said = capsys.readouterr()
    assert "WOULD NOT START" in said.err and "not launched" in said.err and said.out == ""
    assert not state.exists()


def test_without_the_check_it_is_launched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, READY)
    assert main(["run", *UNFIT, "--no-check", "--until-ready", *server("--no-such-flag 1")]) == 0
    said = capsys.readouterr()
    assert "READY, it generates" in said.err and "fired up" in said.out and "WOULD NOT START" not in said.err


HYBRID = [*UNFIT, "--model", str(REPO / "tests" / "data" / "models" / "Qwen3.5-27B")]


def test_safe_fixes_are_applied_where_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, FAILS, READY)
    assert main(["run", *HYBRID, *server(SEED)]) == 1
    assert "--yes-safe applies the safe fixes" in capsys.readouterr().err
    assert main(["run", *HYBRID, "--yes-safe", "--until-ready", *server(SEED)]) == 0
    said = capsys.readouterr().err
    assert "MTP0200" in said and "READY, it generates" in said


def test_what_no_safe_fix_takes_away_is_not_launched(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    assert main(["run", *UNFIT, "--yes-safe", *server("--no-such-flag 1")]) == 1
    assert "no safe fix takes all of this away" in capsys.readouterr().err
    assert not state.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "docker run --gpus all lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path M",
            "docker logs -f",
        ),
        ("python -m sglang.launch_server --model-path $NO_SUCH_VARIABLE_1", "NO_SUCH_VARIABLE_1"),
        ("python -m sglang.launch_server --model-path `cat x`", "substitution"),
    ],
)
def test_what_cannot_be_launched_here_is_said(
    text: str, says: str, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    assert main(["run", "--no-check", "--command", text]) == 2
    assert says in capsys.readouterr().err
    assert not state.exists()


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["run", "--no-check", "--", "/no/such/python", "-m", "sglang.launch_server", "--model-path", "M"]
        )
        == 2
    )
    assert "cannot start /no/such/python: No such file or directory" in capsys.readouterr().err


# -- the launch ------------------------------------------------------------------------------------------


def test_until_it_generates(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(monkeypatch, {**READY, "children": True})
    assert main(["run", "--no-check", "--until-ready", "--json", *server("--api-key Open-Sesame-1")]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["generated"]["ok"] and document["generated"]["tokens"] > 0
    assert (document["how"], document["exit_code"], document["diagnosis"]) == ("stopped", 0, None)
    assert "Sesame" not in said.out + said.err + Path(document["log"]).read_text()
    assert "loading the weights" in said.err and "usually" in said.err


def test_one_that_dies_is_diagnosed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, FAILS)
    assert main(["run", "--no-check", "-q", *server(SEED)]) == 1
    said = capsys.readouterr()
    assert "DIED" in said.err and "MTP0200" in said.err and "extra_buffer" in said.err and said.out == ""


def test_retried_with_the_safe_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, FAILS, READY)
    assert main(["run", "--no-check", "--retry", "2", "--until-ready", "--events", *server(SEED)]) == 0
    seen = events_of(capsys.readouterr().out)
    ends = [e for e in seen if e["event"] == "ended"]
    assert [e["how"] for e in ends] == ["died", "stopped"]
    assert ends[0]["report"]["diagnoses"][0]["rule"] == "MTP0200"
    assert any(e["event"] == "generated" and e["ok"] for e in seen)
    assert main(["runs", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [r["attempt"] for r in runs] == [2, 1] and runs[0]["after"] == runs[1]["id"]
    assert runs[0]["edits"] == ["set --mamba-scheduler-strategy extra_buffer"]


def test_each_attempt_is_shown_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, FAILS, READY)
    assert main(["run", "--no-check", "--retry", "2", "--until-ready", "-q", *server(SEED)]) == 0
    said = capsys.readouterr().err
    assert said.count("importing SGLang, usually") == 2 and "this command works" in said


def test_no_retry_where_nothing_safe_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(
        monkeypatch,
        {"lines": ["Traceback (most recent call last):", "KeyError: 'x'"], "then": "exit", "code": 1},
    )
    assert main(["run", "--no-check", "--retry", "3", *server()]) == 3
    assert "not launched again" in capsys.readouterr().err


def test_one_that_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, {"lines": ["hello"], "then": "exit", "code": 4})
    assert main(["run", "--no-check", *server()]) == 3
    assert "exit code 4" in capsys.readouterr().err


def test_measured_with_and_without_speculation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"log": str(REAL / "ready_mtp_accept_len_1.log"), "speed": 0, "when": "speculative", "accept": 2.5}
    stand_in(monkeypatch, spec, READY)
    assert main(["run", "--no-check", "--bench", "-q", "--json", *server(SEED)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accept_length"] > 2 and [c["concurrency"] for c in found["concurrencies"]] == [1, 4]
    assert found["concurrencies"][0]["with"]["per_request"]["median"] > 0
    assert main(["run", "--no-check", "--bench", *server()]) == 2
    assert "asks for no speculation" in capsys.readouterr().err


def test_nothing_is_measured_where_it_dies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, FAILS)
    assert main(["run", "--no-check", "--bench", "-q", *server(SEED)]) == 1
    said = capsys.readouterr().err
    assert "MTP0200" in said and "nothing was measured" in said


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


# -- others' ---------------------------------------------------------------------------------------------


def test_a_log_or_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "server.log"
    log.write_text("")
    assert not is_command([str(log)]) and not is_command([str(log), str(log)])
    assert not is_command([str(tmp_path / "none.log")])
    assert is_command([sys.executable, "-c", "pass"]) and is_command(["sh", "-c", "x"])
    with pytest.raises(UserError, match="no-such-docker is neither"):
        is_command(["no-such-docker", "logs", "-f", "x"])


def test_watching_a_log_of_a_server_that_died(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--json", str(REAL / "port_in_use.log")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["how"] == "died" and document["diagnosis"]["diagnoses"][0]["rule"]


def test_watching_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "-q", "--", "cat", str(REAL / "port_in_use.log")]) == 1
    assert "DIED" in capsys.readouterr().err


def test_how_long_it_may_be_quiet_can_be_said() -> None:
    code = "import time; print('[2026-01-01 00:00:00 TP0] Init torch distributed begin.', flush=True); time.sleep(100)"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "mtpdoctor",
            "watch",
            "--events",
            "--patience",
            "0.01",
            "--",
            sys.executable,
            "-c",
            code,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    assert process.stdout is not None
    stuck = next(e for e in map(json.loads, process.stdout) if e["event"] == "stuck")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONG)
    assert stuck["stage"] == "dist_init" and stuck["quiet_s"] >= 1.2


@pytest.mark.parametrize("factor", ["0", "-1", "1e9", "nan", "long"])
def test_a_patience_that_is_no_factor_is_said(factor: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["watch", "--patience", factor, "x.log"], ["run", "--patience", factor, *server()]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "--patience" in said and "is no factor from 0.01 to 1000" in said and "Traceback" not in said


def test_watching_what_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["watch", str(tmp_path / "none.log")]) == 2
    assert "cannot read" in capsys.readouterr().err


# -- runs ------------------------------------------------------------------------------------------------


def test_runs_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0 and "Nothing was launched yet" in capsys.readouterr().out
    assert main(["runs", "--log"]) == 2
    stand_in(monkeypatch, FAILS)
    main(["run", "--no-check", "-q", *server(f"{SEED} --api-key Open-Sesame-1")])
    capsys.readouterr()
    assert main(["runs"]) == 0
    listed = capsys.readouterr().out
    assert "died at server_args" in listed and "MTP0200" in listed and "Sesame" not in listed
    assert main(["runs", "--log"]) == 0
    log = capsys.readouterr().out.strip()
    assert main(["diagnose", log]) == 1
    capsys.readouterr()
    assert main(["runs", Path(log).parent.name]) == 0
    assert "--speculative-algorithm NEXTN" in capsys.readouterr().out
    assert main(["runs", "none"]) == 2
