"""What people do to it: streams that are closed, nohup, full disks, output of every kind, wrong names."""

from __future__ import annotations

import json
import os
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
from mtpdoctor.diagnose.given import Given
from mtpdoctor.watch import postmortem
from mtpdoctor.watch.plan import LaunchPlan
from mtpdoctor.watch.session import LaunchSession
from mtpdoctor.watch.types import Ended, Output

REAL = REPO / "tests" / "data" / "real_logs"
READY = {"log": str(REAL / "ready_dense.log"), "speed": 0}


def server(options: str = "") -> list[str]:
    words = f"-m sglang.launch_server --model-path M --port {free_port()} {options}".split()
    return [sys.executable, *words]


def environ(play: dict[str, Any]) -> dict[str, str]:
    return {**os.environ, **environment(play), "PYTHONPATH": f"{SITE}{os.pathsep}{REPO}"}


def typed(line: str, play: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """A shell line; $D is the doctor, $S a server's command."""
    variables = {"D": f"{sys.executable} -m mtpdoctor", "S": " ".join(server())}
    return subprocess.run(
        ["sh", "-c", line],
        env={**environ(play or READY), **variables},
        capture_output=True,
        text=True,
        timeout=LONG,
    )


# -- streams and signals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_without_one_of_the_standard_streams(closed: str) -> None:
    done = typed(f"$D run --no-check --until-ready -- $S {closed}")
    assert done.returncode == 0 and "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_goes_away_does_not_end_the_launch(reader: str) -> None:
    done = typed(f'($D run --no-check --until-ready -- $S; echo "code $?" >&2) | {reader}')
    assert "READY, it generates" in done.stderr and "code 0" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_signal_that_was_to_be_ignored_is_ignored() -> None:
    """nohup."""
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "mtpdoctor", "run", "--no-check", "--events", "--", *server()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ(READY),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "generated":
            break
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=LONG)
    assert process.returncode == 0


# -- what is asked for -----------------------------------------------------------------------------------


def test_without_a_proof_it_is_taken_at_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    done = typed("$D run --no-check --no-prove --until-ready -q -- $S", {**READY, "answers": "error"})
    assert done.returncode == 0 and "it was not asked for tokens" in done.stderr


@pytest.mark.parametrize("form", ["--json", "--events"])
def test_a_refusal_is_told_in_the_form_that_was_asked_for(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    unfit = ["--sglang", "0.5.13.post1", "--gpu", "1xsm90@140"]
    assert main(["run", form, *unfit, "--", *server("--no-such-flag 1")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["how"] == "refused" and told["check"]["verdict"] == "reject"


@pytest.mark.parametrize(
    "command", [["run", "--no-check", "--", *server()], ["watch", str(REAL / "port_in_use.log")]]
)
def test_broken_knowledge_is_said_before_anything_is_launched(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "x.yaml").write_text("rules: [")
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path / "knowledge"))
    assert main(command) == 2
    assert "x.yaml" in capsys.readouterr().err and not (tmp_path / "state").exists()


def test_knowledge_that_broke_since_ends_the_watch_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from mtpdoctor.errors import UserError

    def broken(*_: object) -> None:
        raise UserError("1 error in the knowledge")

    monkeypatch.setattr(postmortem, "report_on", broken)
    seen = watched("raise SystemExit(3)")
    last = seen[-1]
    assert isinstance(last, Ended) and last.code == 3 and last.report is None
    assert "cannot be diagnosed: 1 error" in shown(seen)


# -- what is watched -------------------------------------------------------------------------------------


def test_what_cannot_be_followed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gzip

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "old.log").write_bytes(gzip.compress(b"x"))
    for path, says in (
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "it is a pipe"),
        ("-", "it is a pipe"),
        (tmp_path / "old.log", "compressed"),
        (tmp_path / "none.log", "--wait"),
    ):
        assert main(["watch", str(path)]) == 2
        assert says in capsys.readouterr().err


def test_a_program_that_fails_is_no_server_that_died(capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('Error: No such container: x', file=sys.stderr); sys.exit(1)"
    assert main(["watch", "--", sys.executable, "-c", code]) == 2
    said = capsys.readouterr().err
    assert "failed with exit code 1" in said and "No such container: x" in said.splitlines()[-1]


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "late.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "mtpdoctor", "watch", "--wait", "-q", str(log)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    assert process.stderr is not None and "waiting for" in process.stderr.readline()
    log.write_bytes((REAL / "port_in_use.log").read_bytes())
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == 1 and "MTP0510" in said


# -- output of every kind --------------------------------------------------------------------------------


def watched(code: str, **options: Any) -> list[Any]:
    plan = LaunchPlan(
        argv=(sys.executable, "-c", code), env=dict(os.environ), given=Given(), prove=False, **options
    )
    return list(LaunchSession(plan, gpus=False, watchdog=False).events())


def shown(seen: list[Any]) -> str:
    return "\n".join(line for event in seen if isinstance(event, Output) for line in event.lines)


@pytest.mark.parametrize("pty", [False, True])
def test_no_output_harms_the_terminal(pty: bool) -> None:
    code = (
        "import os\n"
        "for text in (b'\\x1b]0;title\\x07', b'\\x1b[2J\\x1b[?1049h', b'\\x9b31m', b'\\x1bP1$q\\x1b\\\\', b'\\x1b]52;c;QQ==\\x07',"
        " b'\\xff\\xfe\\x00', b'\\xe2\\x80\\xae', b'\\x08\\x08', b'\\x1b'):\n"
        "    os.write(1, b'before ' + text + b' after\\n')\n"
        "os.write(1, bytes(range(256)) * 4)"
    )
    text = shown(watched(code, pty=pty))
    assert text.count("before") == 9 and text.count("after") >= 8
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in text)
    assert "\u202e" not in text


def test_a_line_without_an_end_is_kept_whole_and_shown_short(tmp_path: Path) -> None:
    size = 20 << 20
    code = f"import os\nview = memoryview(b'x' * {size} + b'\\ndone\\n')\nwhile view: view = view[os.write(1, view):]"
    plan = LaunchPlan(
        argv=(sys.executable, "-c", code), env=dict(os.environ), given=Given(), prove=False, pty=False
    )
    session = LaunchSession(plan, gpus=False, watchdog=False)
    text = shown(list(session.events()))
    assert os.path.getsize(session.log) == size + 6
    assert "done" in text and "a line of" in text and len(text) < 20_000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said_and_does_not_stop_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtpdoctor.watch.spawn import spawn

    done = tmp_path / "done"
    code = f"print('x' * 300000, flush=True); open({str(done)!r}, 'w').close(); import time; time.sleep(0.3)"
    child = spawn([sys.executable, "-c", code], os.environ, log="/dev/full", pty=False)
    ended = child.wait(LONG)
    child.close()
    assert ended is not None and ended.code == 0 and done.exists()
    assert child.unwritten == "No space left on device"
