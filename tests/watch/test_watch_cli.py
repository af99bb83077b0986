"""``mtpdoctor run``, ``watch`` and ``runs`` as they are typed, on the stand-in server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from standing import REPO
from typing_at import FAILS, HYBRID, READY, REAL, SEED, UNFIT, events_of, server, stand_in
from waiting import LONG

from mtpdoctor.cli.main import main
from mtpdoctor.cli.watch import is_command
from mtpdoctor.errors import UserError

# -- before ----------------------------------------------------------------------------------------------


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
