"""Launching: what is started, where its output goes, and that nothing stays behind however the end comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import LONG, until

from mtpdoctor.errors import UserError
from mtpdoctor.watch import tree
from mtpdoctor.watch.spawn import Child, spawn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard's full service is Linux's")

# A server with a scheduler as stubborn as can be: a session of its own, its parent gone, no SIGTERM or SIGINT heard.
FAMILY = """
import os, signal, sys, time
ready = sys.argv[1]
between = os.fork()
if between == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    open(ready, "w").write(str(os.getpid()))
    time.sleep(100)
os.waitpid(between, 0)
while not os.path.exists(ready) or not open(ready).read():
    time.sleep(0.01)
print("up", flush=True)
{then}
"""


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


class Family:
    """A launched family, and the pids in it."""

    def __init__(self, folder: Path, then: str, **options: object) -> None:
        self.log, ready = folder / "server.log", folder / "ready"
        self.child: Child = spawn(
            python(FAMILY.replace("{then}", then), str(ready)),
            os.environ,
            log=str(self.log),
            **options,  # type: ignore[arg-type]
        )
        until(lambda: self.log.exists() and "up" in self.log.read_text())
        self.scheduler = int(ready.read_text())
        self.pids = (self.child.pid, self.scheduler)


@pytest.mark.parametrize("pty", [False, True])
def test_the_output_goes_to_the_log_as_it_is(tmp_path: Path, pty: bool) -> None:
    log = tmp_path / "server.log"
    code = "import os; print('a\\u00e9', os.isatty(1)); os.write(2, b'x\\r 50%|#\\r100%|##\\nend')"
    child = spawn(
        python(code), {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}, log=str(log), pty=pty
    )
    ended = child.wait(LONG)
    child.close()
    assert ended is not None and ended.code == 0 and ended.left == ()
    assert log.read_bytes() == f"a\u00e9 {pty}\nx\r 50%|#\r100%|##\nend".encode()
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_the_exit_code_is_told(tmp_path: Path, code: str, expected: int) -> None:
    child = spawn(python(code), os.environ, log=str(tmp_path / "log"))
    ended = child.wait(LONG)
    child.close()
    assert ended is not None and ended.code == expected


def test_arguments_and_environment_reach_the_program_untouched(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ["$(touch /tmp/no)", "a b", "; rm -rf x", "'\"", "*"]
    env = {"PATH": os.environ["PATH"], "ODD": "`x`;$Y"}
    child = spawn(
        python("import os, sys; print(sys.argv[1:], os.environ['ODD'], 'HOME' in os.environ)", *words),
        env,
        log=str(log),
    )
    child.wait(LONG)
    child.close()
    assert log.read_text().strip() == f"{words} `x`;$Y False"


def test_secrets_do_not_reach_the_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys, time\n"
        "print(\"server_args=ServerArgs(api_key='s3cr3t-key-123', hf='hf_abcdefghijklmnop1234')\")\n"
        "print('bare OTHERWISE-UNKNOWN-77')\n"
        "sys.stdout.write('--api-key s3cr3'); sys.stdout.flush(); time.sleep(0.05); print('t-in-two-parts')\n"
        "print('x' * 70 + ' token=plain_words #new-token: 12\\n' * 6000)\n"
        "print('HF_TOKEN=hf_abcdefghijklmnop1234')"
    )
    child = spawn(python(code), os.environ, log=str(log), pty=False, hidden=["OTHERWISE-UNKNOWN-77"])
    child.wait(LONG)
    child.close()
    text = log.read_text()
    assert "s3cr3" not in text and "hf_abc" not in text and "OTHERWISE" not in text
    assert text.count("<hidden>") >= 5 and text.count("#new-token: 12") == 6000


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot start no-such-program: No such file"):
        spawn(["no-such-program"], os.environ, log=str(tmp_path / "log"))
    with pytest.raises(UserError, match="cannot start"):
        spawn(python("pass"), os.environ, log=str(tmp_path / "log"), cwd=str(tmp_path / "none"))


def test_a_gentle_end_is_a_sigint_to_the_program(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import time\ntry:\n    print('up', flush=True); time.sleep(100)\nexcept KeyboardInterrupt:\n    raise SystemExit(5)"
    child = spawn(python(code), os.environ, log=str(log))
    until(lambda: "up" in log.read_text())
    child.end("int")
    ended = child.wait(LONG)
    child.close()
    assert ended is not None and ended.code == 5


def test_what_the_program_leaves_behind_is_killed_and_named(tmp_path: Path) -> None:
    family = Family(tmp_path, "os._exit(3)", grace=0.1)
    ended = family.child.wait(LONG)
    family.child.close()
    assert ended is not None and ended.code == 3 and ended.left == (family.scheduler,)
    assert all(map(gone, family.pids))


def test_a_hard_end_takes_everything(tmp_path: Path) -> None:
    family = Family(tmp_path, "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(100)")
    assert set(family.child.processes()) == set(family.pids)
    family.child.end("kill")
    ended = family.child.wait(LONG)
    family.child.close()
    assert ended is not None and ended.code == -9
    assert all(map(gone, family.pids))


def test_letting_go_takes_everything(tmp_path: Path) -> None:
    family = Family(tmp_path, "time.sleep(100)")
    family.child.close()
    until(lambda: all(map(gone, family.pids)))


# Writes over argv and environ, as setproctitle does, so that no mark is left: three ways of leaving the family.
UNKNOWN = """
import ctypes, os, signal, sys, time
def scheduler(away, twice):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        if away:
            os.setsid()
        if twice and os.fork():
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        places = open("/proc/self/stat").read().rpartition(")")[2].split()
        begin, end = int(places[45]), int(places[48])
        ctypes.memmove(begin, b"sglang::scheduler".ljust(end - begin, bytes(1)), end - begin)
        os.write(write, str(os.getpid()).encode())
        time.sleep(100)
        os._exit(0)
    os.close(write)
    pid = os.read(read, 20).decode()
    if twice:
        os.waitpid(child, 0)  # the one between is gone for certain
    return pid
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
print(scheduler(False, False), scheduler(True, False), scheduler(True, True), "up", flush=True)
time.sleep(100)
"""
DOCTOR = """
import os, sys, time
from mtpdoctor.watch.spawn import spawn
family, log, detach = sys.argv[1:]
child = spawn([sys.executable, "-c", family], os.environ, log=log, detach=detach == "yes")
while "up" not in open(log).read():
    time.sleep(0.01)
child.processes()
print(child.pid, child.guard, child._keeper.pid, flush=True)
ended = child.wait(100)
print(ended.left, flush=True)
time.sleep(100)
"""


def doctor(tmp_path: Path, detach: str = "no") -> tuple[subprocess.Popen[str], dict[str, int], list[int]]:
    """A doctor, its guard and keeper by their letters, and the processes of its launch."""
    log = tmp_path / "log"
    process = subprocess.Popen(
        python(DOCTOR, UNKNOWN, str(log), detach),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert process.stdout is not None
    server, guard, keeper = map(int, process.stdout.readline().split())
    family = [server, *map(int, log.read_text().split()[:3])]
    assert not any(map(gone, family))
    assert not tree._has(family[1], tree.MARK.encode())
    return process, {"d": process.pid, "g": guard, "k": keeper}, family


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("killed", ["d", "g", "k", "dg", "dk", "gk"])
def test_whoever_is_killed_nothing_stays(tmp_path: Path, killed: str, number: int) -> None:
    process, pids, family = doctor(tmp_path)
    for letter in killed:
        os.kill(pids[letter], number)
    until(lambda: all(map(gone, family)))
    until(lambda: gone(pids["g"]) and gone(pids["k"]))
    if killed == "g" and number == signal.SIGKILL:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{tuple(sorted(family[1:]))}\n"
    process.kill()
    process.communicate()


def test_the_guard_does_not_go_by_the_doctors_name(tmp_path: Path) -> None:
    family = Family(tmp_path, "time.sleep(100)")
    for pid in (family.child.guard, family.child._keeper.pid):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:]
        assert not any(b"mtpdoctor" in word for word in words)
    family.child.kill()
    assert all(map(gone, family.pids))


def test_launches_side_by_side_do_not_touch_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (Family(tmp_path / name, "time.sleep(100)") for name in ("one", "two"))
    os.kill(one.child.guard, signal.SIGKILL)
    until(lambda: all(map(gone, one.pids)))
    one.child.kill()
    assert not any(map(gone, (*two.pids, two.child.guard)))
    two.child.kill()
    assert all(map(gone, two.pids))


def test_a_process_with_the_pid_of_another_is_not_hit() -> None:
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        since = tree.started(process.pid)
        assert since is not None
        assert tree.members(0, "none", (process.pid, since - 1)) == {}
        assert tree.members(0, "none", (process.pid, since)) == {process.pid: since}
        assert not tree.send(process.pid, signal.SIGKILL, since - 1) and process.poll() is None
        assert tree.send(process.pid, signal.SIGKILL, since) and process.wait() == -9
        assert not tree.send(process.pid, signal.SIGKILL, since)
    finally:
        process.kill()
        process.wait()


def test_when_it_was_to_be_left_running_it_runs_on(tmp_path: Path) -> None:
    process, pids, family = doctor(tmp_path, "yes")
    process.kill()
    process.communicate()
    try:
        time.sleep(0.2)
        assert not any(map(gone, [*family, pids["g"], pids["k"]]))
    finally:
        os.kill(pids["g"], signal.SIGTERM)  # the way to end it with everything
    until(lambda: all(map(gone, [*family, pids["g"], pids["k"]])))


def test_output_at_full_speed_is_neither_lost_nor_held_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import os\n"
        "block = (b'x' * 99 + b'\\n') * 10000\n"
        "for _ in range(100):\n"
        "    view = memoryview(block)\n"
        "    while view:\n"
        "        view = view[os.write(1, view):]\n"
    )
    child = spawn(python(code), os.environ, log=str(log), pty=False)
    peak = 0
    while child.wait(0.01) is None:
        status = Path(f"/proc/{child.guard}/status")
        if status.exists() and "VmHWM" in (text := status.read_text()):
            peak = max(peak, int(text.partition("VmHWM:")[2].split()[0]))
    child.close()
    assert log.stat().st_size == 100_000_000
    assert 0 < peak < 150_000  # KiB: it does not grow with what is written


def test_members_are_found_by_their_mark_alone(tmp_path: Path) -> None:
    mark = "test-mark-1"
    process = subprocess.Popen(["sleep", "100"], env={**os.environ, tree.MARK: mark}, start_new_session=True)
    try:
        until(lambda: process.pid in tree.members(0, mark))
        assert tree.members(0, mark + "0") == {}
        assert tree.kill_all(0, mark, reap=process.poll) == (process.pid,)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("away", [False, True])
def test_without_guard_and_mark_they_are_known_by_session_or_from_before(tmp_path: Path, away: bool) -> None:
    """SGLang's schedulers write over their environment; the program starts one without the mark."""
    code = (
        "import os, subprocess, sys, time\n"
        "env = {k: v for k, v in os.environ.items() if k != 'MTPDOCTOR_RUN'}\n"
        f"child = subprocess.Popen(['sleep', '100'], env=env, start_new_session={away})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(100)"
    )
    log = tmp_path / "log"
    child = spawn(python(code), os.environ, log=str(log))
    until(lambda: log.read_text().endswith("\n"))
    scheduler = int(log.read_text())
    assert scheduler in child.processes()
    os.kill(child.guard, signal.SIGKILL)
    ended = child.wait(LONG)
    child.close()
    assert ended is not None and scheduler in ended.left
    until(lambda: gone(scheduler))
