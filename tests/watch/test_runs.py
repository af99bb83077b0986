"""What is kept of a run, for how long, and what is known of it later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mtpdoctor.errors import UserError
from mtpdoctor.watch import runs, tree


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MTPDOCTOR_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "mtpdoctor" / "runs"


def made(started: float, size: int = 10, **changes: object) -> runs.Run:
    folder, run = runs.new_run("python -m sglang.launch_server", "org/Model", now=started)
    run = replace(run, **{"how": "died", **changes})  # type: ignore[arg-type]
    Path(run.log).write_bytes(b"x" * size)
    runs.save(folder, run)
    return run


def test_a_run_has_a_folder_of_its_own_that_nobody_else_reads(state: Path) -> None:
    first, second = made(1_700_000_000.0), made(1_700_000_000.0)
    assert first.id == "20231114T221320Z-Model" and second.id == "20231114T221320Z-Model-2"
    assert (state / first.id).stat().st_mode & 0o077 == 0
    assert (state / first.id / "run.json").stat().st_mode & 0o077 == 0
    assert runs.all_runs() == (second, first)


def test_the_name_of_a_model_is_no_path(state: Path) -> None:
    folder, _ = runs.new_run("x", "../../etc/../pass wd$(x)\n", now=0.0)
    assert folder.parent == state and folder.name == "19700101T000000Z-pass_wd_x"
    assert runs.new_run("x", "", now=0.0)[0].name == "19700101T000000Z-server"


def test_old_runs_go_but_never_one_that_runs() -> None:
    day = 86400.0
    living = made(1.0, how="running", guard=os.getpid(), guard_started=tree.started(os.getpid()))
    old, young = made(10 * day), made(11 * day)
    assert runs.prune(now=41 * day, seconds=30.5 * day) == (old.id,)
    assert {r.id for r in runs.all_runs()} == {living.id, young.id}


def test_no_more_than_so_many_runs() -> None:
    kept = [made(float(i)) for i in range(5)]
    assert set(runs.prune(now=10.0, keep=2)) == {r.id for r in kept[:3]}


def test_no_more_than_so_many_bytes() -> None:
    kept = [made(float(i), size=100_000) for i in range(4)]
    assert set(runs.prune(now=10.0, size=250_000)) == {r.id for r in kept[:2]}


def test_a_new_run_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    old = made(0.0)
    made(runs.KEEP_SECONDS + 10.0)
    assert old.id not in {r.id for r in runs.all_runs()}


def test_how_it_went_is_found_out_later(state: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    run = made(1.0, how="running", guard=process.pid, guard_started=tree.started(process.pid))
    assert runs.all_runs()[0].how == "running"
    process.communicate(b"\n")
    assert runs.all_runs()[0].how == "lost"
    (state / run.id / "exit.json").write_text(json.dumps({"code": 3, "at": 61.0, "orphaned": False}))
    found = runs.all_runs()[0]
    assert (found.how, found.code, found.seconds) == ("died", 3, 60.0)
    (state / run.id / "exit.json").write_text(json.dumps({"code": -9, "at": 61.0, "orphaned": True}))
    assert runs.all_runs()[0].how == "lost"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"id": 1}', '{"id": "x", "started": "y", "command": "", "log": ""}']
)
def test_what_cannot_be_read_is_left_out(state: Path, text: str) -> None:
    folder, _ = runs.new_run("x", "m", now=1.0)
    (folder / "run.json").write_text(text)
    assert runs.all_runs() == ()


def test_a_state_folder_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MTPDOCTOR_STATE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot keep the run under"):
        runs.new_run("x", "m")


def test_nothing_is_launched_where_no_log_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LEAST_BYTES", 1 << 62)
    with pytest.raises(UserError, match="MiB are free there") as caught:
        runs.new_run("c", "m")
    assert "MTPDOCTOR_STATE" in (caught.value.hint or "")
