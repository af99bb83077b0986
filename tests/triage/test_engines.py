"""Workers that hang, are killed or are interrupted; and Ray, which gives the same answer."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import LONG, until, with_more_time

from mtpdoctor.triage.gather import EACH_FILE, Item, gather
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.pool import Task, over_processes
from mtpdoctor.triage.types import Member

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests" / "data" / "real_logs"
SPEC = REAL / "spec_no_buffer_with_radix.log"
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def tasks(*paths: Path) -> list[Task]:
    return [Task(launch, {}) for launch in gather([Item(str(p)) for p in paths], {}, mode=EACH_FILE)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@needs_pipes
def test_a_launch_over_its_time_is_given_up_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hangs.log")

    def examined(seconds: float) -> dict[str, Member]:
        members = over_processes(tasks(tmp_path / "hangs.log", SPEC), Limits(seconds=seconds), 2)
        return {Path(m.launch.name).name: m for m in members}

    said, limit = with_more_time(examined, lambda s: s[SPEC.name].outcome == "failed")
    assert said[SPEC.name].outcome == "failed"
    assert said["hangs.log"].outcome == "unreadable"
    assert f"longer than {limit:g} seconds" in (said["hangs.log"].error or "")


def test_what_was_done_in_time_counts_however_late_it_is_taken(tmp_path: Path) -> None:
    """Whoever takes the members may be slow, or the machine: the answers lie in the pipes meanwhile."""
    done = [tmp_path / f"{name}.log" for name in "abc"]
    for log in done:
        shutil.copy(SPEC, log)

    def outcomes(seconds: float) -> list[str]:
        members = over_processes(tasks(*done), Limits(seconds=seconds), 2)
        first = next(members).outcome
        time.sleep(seconds)
        return [first, *(m.outcome for m in members)]

    found, _ = with_more_time(outcomes, lambda found: found == ["failed"] * 3)
    assert found == ["failed"] * 3


@needs_pipes
def test_a_killed_worker_takes_only_its_launch_with_it(tmp_path: Path) -> None:
    pipe = tmp_path / "greedy.log"
    os.mkfifo(pipe)
    ours = {p.pid for p in psutil.Process().children(recursive=True)}
    done = threading.Event()

    def kill() -> None:
        """As the kernel does it: whoever reads the greedy one."""
        while not done.is_set():
            try:
                writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads it yet
                time.sleep(0.05)
                continue
            readers: list[psutil.Process] = []
            while not readers and not done.is_set():  # one that is just opening it does not show yet
                readers = [
                    p
                    for p in psutil.Process().children(recursive=True)
                    if p.pid not in ours and _reads(p, pipe)
                ]
            for process in readers:
                process.kill()  # not waited for here: that would take its end from the pool
            while any(_reads(p, pipe) for p in readers):  # before it dies it must find nothing to read
                time.sleep(0.01)
            os.close(writer)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        members = list(over_processes(tasks(pipe, SPEC, REAL / "port_in_use.log"), Limits(seconds=LONG), 1))
    finally:
        done.set()
        killer.join()
    said = {Path(m.launch.name).name: m for m in members}
    assert said[SPEC.name].outcome == said["port_in_use.log"].outcome == "failed"
    assert "killed by signal 9" in (said["greedy.log"].error or "")


def _reads(process: psutil.Process, pipe: Path) -> bool:
    try:
        folder = Path(f"/proc/{process.pid}/fd")
        return any(os.path.realpath(fd) == str(pipe.resolve()) for fd in folder.iterdir())
    except OSError:
        return False


@needs_pipes
def test_interrupted_it_reports_what_it_has(tmp_path: Path) -> None:
    shutil.copy(SPEC, tmp_path / "a.log")
    for name in ("b.log", "c.log"):
        os.mkfifo(tmp_path / name)
    command = [sys.executable, "-m", "mtpdoctor", "triage", "--json", "--jobs", "1"]
    command += [str(tmp_path / n) for n in ("a.log", "b.log", "c.log")]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, start_new_session=True
    )

    def is_read() -> bool:
        try:
            os.close(os.open(tmp_path / "b.log", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    until(is_read, "the second log's turn")
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=LONG)
    document = json.loads(out)
    assert process.returncode == 130
    assert [g["rule"] for g in document["groups"]] == ["MTP0200"]
    assert document["interrupted"] >= 1


def answer(*arguments: str, **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "mtpdoctor", "triage", "--json", *arguments],
        cwd=ROOT,
        env={**environment(), **more},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode in (0, 1, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_process_or_several_say_the_same() -> None:
    few = [str(p) for p in sorted(REAL.glob("[f-m]*.log"))]
    assert answer("--jobs", "0", *few) == answer("--jobs", "3", *few)


CLUSTER = """
import sys, ray
ray.init(num_cpus=3, include_dashboard=False, logging_level="error", log_to_driver=False,
         object_store_memory=80 * 2**20)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray (extra: ray) is not installed")
def test_ray_says_the_same_as_the_local_engine(tmp_path: Path) -> None:
    import tarfile

    logs = sorted(REAL.glob("[l-s]*.log"))
    for path in logs[:-2]:
        shutil.copy(path, tmp_path)
    with tarfile.open(tmp_path / "more.tar.gz", "w:gz") as archive:
        for path in logs[-2:]:
            archive.add(path, path.name)
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(24)}
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env={**environment(), **token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        assert address, "the cluster did not start"
        there = answer("--engine", "ray", str(tmp_path), RAY_ADDRESS=address, **token)
    finally:
        cluster.communicate("")
    assert there == answer("--jobs", "0", str(tmp_path))
    assert there["failed"] >= 8


def test_an_engine_that_cannot_be_used_is_told_in_one_line() -> None:
    arguments = ["--engine", "ray", "--ray-address", "127.0.0.1:9", str(SPEC)]
    done = subprocess.run(
        [sys.executable, "-m", "mtpdoctor", "triage", *arguments],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "Ray" in done.stderr
