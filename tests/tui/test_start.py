"""What is found on a machine, and how it is offered."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from still import SAMPLES, app_of, screen_text, settled, until
from textual import events
from textual.widgets import Input, OptionList
from waiting import LONG

from mtpdoctor.errors import UserError
from mtpdoctor.tui.start import found
from mtpdoctor.tui.start.docker_log import fetch_container_log
from mtpdoctor.tui.start.found import (
    Found,
    Places,
    age_in_words,
    containers_of,
    find,
    is_server,
    newest,
    size_in_words,
)
from mtpdoctor.tui.start.region import paths_of
from mtpdoctor.tui.start.suggest import completed


def test_the_newest_logs_come_first_and_empty_ones_not_at_all(tmp_path: Path) -> None:
    for i, name in enumerate(("old.log", "new.log.gz", "notes.txt", "empty.log")):
        (tmp_path / name).write_text("" if "empty" in name else "x" * (i + 1))
        os.utime(tmp_path / name, (1000 + i, 1000 + i))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.log").write_text("x")
    os.utime(tmp_path / "sub" / "deep.log", (5000, 5000))
    here = newest(tmp_path, "here", 1060.0)
    assert [f.title for f in here] == ["new.log.gz", "old.log"]
    assert here[0].detail == "2 B, just now" and here[0].paths == (str(tmp_path / "new.log.gz"),)
    assert next(f.title for f in newest(tmp_path, "run", None, deep=True)) == os.path.join("sub", "deep.log")
    assert newest(tmp_path / "nowhere", "here", None) == []


def test_what_is_newer_comes_first_and_how_much_is_left_out_is_known(tmp_path: Path) -> None:
    runs, here = tmp_path / "runs", tmp_path / "here"
    for folder, count, at in ((runs, 2, 1000), (here, 11, 2000)):
        folder.mkdir()
        for i in range(count):
            (folder / f"{i}.log").write_text("x")
            os.utime(folder / f"{i}.log", (at + i, at + i))
    kinds = [f.kind for f in find(Places(runs, here, None, None, None))]
    assert kinds == ["here"] * 8 + ["run"] * 2
    assert {f.of for f in newest(here, "here", None)} == {11}
    assert {f.of for f in newest(runs, "run", None)} == {0}
    os.utime(runs / "0.log", (5000, 5000))
    assert find(Places(runs, here, None, None, None))[0].kind == "run"


def test_servers_are_known_by_how_they_are_started() -> None:
    assert is_server(["python3", "-m", "sglang.launch_server", "--model-path", "m"])
    assert is_server(["/usr/bin/python", "/opt/bin/sglang", "serve", "m"])
    assert not is_server(["vim", "sglang.launch_server"])
    assert not is_server(["sglang", "--help"])
    assert not is_server([])


def test_running_servers_and_where_their_output_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "launch_server.py").write_text("import time; print('up', flush=True); time.sleep(60)")
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "sglang.launch_server", "--model-path", "/models/mine"],
            cwd=tmp_path,
            stdout=out,
            stderr=out,
        )
    try:
        monkeypatch.setattr(found, "_MOST", 10**6)  # those of other tests, and of whoever works here, too
        mine = [f for f in found.running_servers() if f"pid {child.pid}" in f.detail]
        assert mine and mine[0].title == "/models/mine"
        if os.path.isdir("/proc"):
            assert mine[0].paths == (str(log),)
    finally:
        child.kill()
        child.wait()


def test_containers_are_read_off_docker_ps() -> None:
    text = (
        "web\tnginx:1\tUp 2 hours\tnginx\n"
        "sgl\tlmsysorg/sglang:v0.5.13\tExited (1) 3 minutes ago\tpython3 -m sglang.launch_server\n"
        "odd line\n"
    )
    assert [(f.title, f.kind) for f in containers_of(text)] == [("sgl", "container")]


def _docker(folder: Path, body: str) -> None:
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def test_docker_is_asked_with_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(found, "_DOCKER_LIMIT", LONG)
    _docker(tmp_path, r"printf 'sgl\tsglang:x\tUp\tserve\n'")
    assert [f.title for f in found.containers()] == ["sgl"]
    _docker(tmp_path, "exec sleep 30")
    monkeypatch.setattr(found, "_DOCKER_LIMIT", 0.2)
    assert found.containers() == []
    monkeypatch.setattr(found, "_DOCKER_LIMIT", LONG)
    _docker(tmp_path, "echo no daemon >&2; exit 1")
    assert found.containers() == []
    monkeypatch.setenv("PATH", "/nowhere")
    assert found.containers() == []


def test_a_containers_log_is_fetched_into_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _docker(tmp_path, 'echo "log of $2"; echo err >&2')
    path = Path(fetch_container_log("sgl-1"))
    assert sorted(path.read_text().splitlines()) == ["err", "log of sgl-1"]
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for bad in ("-v", "a b", "$(x)", ""):
        with pytest.raises(UserError):
            fetch_container_log(bad)
    _docker(tmp_path, "exit 3")
    with pytest.raises(UserError, match="exit code 3"):
        fetch_container_log("sgl-1")


def test_words_for_sizes_and_ages() -> None:
    assert [size_in_words(n) for n in (5, 2048, 5 << 20, 3 << 30, 2 << 40)] == [
        "5 B",
        "2.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
        "2.0 TiB",
    ]
    assert [age_in_words(s) for s in (5, 300, 7200, 86400 * 12)] == [
        "just now",
        "5 min ago",
        "2 h ago",
        "12 days ago",
    ]


def test_typed_paths_are_read_as_in_a_shell_and_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "a b.log").write_text("x")
    (tmp_path / "rank0.log").write_text("x")
    (tmp_path / "rank1.log").write_text("x")
    assert paths_of(f"{tmp_path}/a b.log") == ((f"{tmp_path}/a b.log",), None)
    assert paths_of(f"'{tmp_path}/a b.log'") == ((f"{tmp_path}/a b.log",), None)
    assert paths_of(f"{tmp_path}/rank*.log")[0] == (f"{tmp_path}/rank0.log", f"{tmp_path}/rank1.log")
    assert paths_of(f"{tmp_path}/none.log $(touch {tmp_path}/x)")[1] == f"{tmp_path}/none.log"
    assert not (tmp_path / "x").exists()
    assert paths_of("") == ((), None)


async def test_everything_found_is_offered_by_kind(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text((SAMPLES / "port_in_use.log").read_text())
    (tmp_path / "[bold]odd.log").write_text("x\n")
    places = Places(
        None,
        tmp_path,
        SAMPLES,
        lambda: [Found("process", "/models/x", "pid 1", (), "its output goes to a terminal")],
        lambda: [Found("container", "sgl", "sglang:x, Up")],
    )
    assert [f.kind for f in find(places)][:2] == ["here", "here"]
    app = app_of(places=places)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = screen_text(app)
        for words in ("Logs in this folder", "server.log", "[bold]odd.log", "running now", "pid 1", "Docker"):
            assert words in text
        await pilot.press("slash")
        app.query_one(Input).value = str(tmp_path / "server.log")
        await pilot.press("enter")
        await settled(pilot)
        assert app.session.logs == (str(tmp_path / "server.log"),)
        assert app.session.report is not None
        await pilot.press("1", "slash", *"/none.log", "enter")
        await pilot.pause()
        assert isinstance(app.focused, Input)
        assert any("no such file" in n.message for n in app._notifications)


def test_a_typed_path_is_completed(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("x")
    (tmp_path / ".server").write_text("x")
    (tmp_path / "logs").mkdir()
    assert completed(f"{tmp_path}/ser") == f"{tmp_path}/server.log"
    assert completed(f"a.log {tmp_path}/lo") == f"a.log {tmp_path}/logs/"
    assert completed(f"{tmp_path}/server.log") is None
    assert completed(f"{tmp_path}/") is None and completed("/nowhere/x") is None


async def test_a_container_is_opened_by_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _docker(tmp_path, f"cat '{SAMPLES / 'port_in_use.log'}'")
    places = Places(None, None, None, None, lambda: [Found("container", "sgl", "sglang:x, Up")])
    app = app_of(places=places)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.session.report is not None and app.session.report.diagnoses[0].rule == "MTP0510"


async def test_escape_leaves_the_path_and_its_mistakes_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for i in range(9):
        (tmp_path / f"{i}.log").write_text("x")
    app = app_of(places=Places(None, tmp_path, SAMPLES, None, None))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "the newest 8 of 9" in screen_text(app)
        await pilot.press("slash")
        app.post_message(events.Paste("."))
        await pilot.press("enter")
        await until(
            pilot,
            lambda: any("is a folder" in n.message for n in app._notifications),
            "the word about a folder",
        )
        await pilot.press("escape")
        assert isinstance(app.focused, OptionList)
        await pilot.press("3")
        assert app.region == "log", "keys are keys again"
