"""Starting a launch under its guard, and talking to the guard. No shell has a part in it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtpdoctor.children import SAFE_PATH
from mtpdoctor.errors import UserError
from mtpdoctor.watch import tree

# Its program comes by standard input, so that whoever ends the doctor by its name (pkill -f) does not end its guard too.
_READ = "import sys; exec(sys.stdin.read())"
_GUARD = "sys.path.append({!r}); from mtpdoctor.watch.guard import main; main({}, {!r})"
_PACKAGE = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True)
class Exit:
    """How the launched program ended. ``left``: pids of its processes that had to be killed after it."""

    code: int | None  # negative: killed by that signal; None: the guard was killed, so nobody knows
    left: tuple[int, ...]


class Child:
    """A launched program. ``end``, ``detach`` may be called from any thread, ``wait`` from one."""

    def __init__(self, keeper: subprocess.Popen[bytes], control: socket.socket, mark: str) -> None:
        self._keeper, self._control = keeper, control
        self._mark = mark
        self.pid = 0  # of the program
        self.guard = 0  # every process of the launch is below it; the keeper is its parent
        self.unwritten: str | None = None  # why its output cannot be kept
        self._since: dict[int, int | None] = {}  # when guard and program began
        self._rest = b""
        self._exit: Exit | None = None
        self._seen: dict[int, int] = {}  # processes of the launch that were seen, and when they began
        self._lock = threading.RLock()  # a signal handler of the driving thread may come in between

    def began(self, pid: int, guard: int) -> None:
        self.pid, self.guard = pid, guard
        self._since = {p: tree.started(p) for p in (pid, guard)}

    def processes(self) -> tuple[int, ...]:
        found = tree.descendants(self.guard)
        known = self._seen
        self._seen = {p: since for p in found if (since := known.get(p) or tree.started(p)) is not None}
        return found

    def end(self, how: str) -> None:
        """``int``, ``term``: that signal to the program; ``kill``: SIGKILL to every process of the launch."""
        self._ask(how)
        if how == "kill" and self._keeper.poll() is not None:
            self._kill_rest()

    def wait(self, seconds: float) -> Exit | None:
        """How it ended, as soon as it has; None after ``seconds`` while it runs."""
        if self._exit is not None:
            return self._exit
        until = time.monotonic() + seconds
        while self._exit is None and (left := until - time.monotonic()) > 0:
            self._control.settimeout(max(left, 0.001))
            try:
                message = _receive(self)
            except TimeoutError:
                break
            if message is None:  # the guard was killed; the kernel kills the program, the keeper the rest
                self._end_keeper()
                over = {*self._seen, *self._kill_rest()} - {self.pid}
                self._exit = Exit(None, tuple(sorted(over)))
            elif "exit" in message:
                self._end_keeper()
                self._exit = Exit(message["exit"], tuple(message["left"]))
            elif "unwritten" in message:
                self.unwritten = str(message["unwritten"])
        return self._exit

    def detach(self) -> None:
        """Leave it running, under its guard, which goes on keeping the log."""
        self._ask("detach")

    def close(self) -> None:
        """Let go. What runs and was not detached is killed, before this returns."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()

    def kill(self) -> None:
        """End every process of the launch and the guard, for certain."""
        if self._exit is None and self._keeper.poll() is None:
            self._ask("kill")
            with contextlib.suppress(OSError):
                self.wait(15.0)
        self.close()
        self._end_keeper(0.0 if self._exit is None else 5.0)
        if self._exit is None:
            self._exit = Exit(None, self._kill_rest())

    def _end_keeper(self, patience: float = 15.0) -> None:
        """It ends by itself once nothing is left to keep; hard where it does not."""
        try:
            self._keeper.wait(patience)
        except subprocess.TimeoutExpired:
            guard = self._since.get(self.guard)
            if guard is not None:
                tree.send(self.guard, signal.SIGKILL, guard)
            try:
                self._keeper.wait(5.0)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()

    def _kill_rest(self) -> tuple[int, ...]:
        """Without guard and keeper nobody has adopted the orphans: known by session, mark, and from before."""
        since = self._since.get(self.pid)
        session = (self.pid, since) if since is not None else None
        killed = set(tree.kill_all(0, self._mark, session=session))
        for pid, began in self._seen.items():
            if pid not in killed and tree.send(pid, signal.SIGKILL, began):
                killed.add(pid)
        return tuple(sorted(killed))

    def _ask(self, do: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(json.dumps({"do": do}).encode() + b"\n")


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    log: str,
    cwd: str | None = None,
    pty: bool = True,
    detach: bool = False,
    hidden: Sequence[str] = (),
    exit_file: str | None = None,
    grace: float = 3.0,
    mark: str | None = None,
) -> Child:
    """Start ``argv`` with exactly ``env``; its output goes to the end of ``log``, secrets and ``hidden`` masked.

    ``grace``: seconds that children of the program may outlive it. Raises UserError when it cannot be started.
    """
    here, there = socket.socketpair()
    mark = mark or secrets.token_hex(8)
    with there:
        keeper = subprocess.Popen(
            [sys.executable, *SAFE_PATH, "-c", _READ, "guard-of-launch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(there.fileno(),),
            start_new_session=True,
            env={
                k: v
                for k, v in os.environ.items()
                if k == "PYTHONHOME" or not k.startswith(("PYTHON", tree.MARK))
            },
        )
        assert keeper.stdin is not None
        with contextlib.suppress(OSError), keeper.stdin:
            keeper.stdin.write(_GUARD.format(_PACKAGE, there.fileno(), mark).encode())
    config: dict[str, Any] = {
        "argv": list(argv),
        "env": dict(env),
        "cwd": cwd,
        "pty": pty,
        "log": log,
        "detach": detach,
        "secrets": list(hidden),
        "mark": mark,
        "exit_file": exit_file,
        "grace": grace,
    }
    child = Child(keeper, here, mark)
    try:
        here.settimeout(30.0)
        here.sendall(json.dumps(config).encode() + b"\n")
        said = _receive(child)
    except OSError as error:
        child.kill()
        raise UserError(f"the launch could not be guarded: {error}") from None
    if said is None or "started" not in said:
        child.kill()
        why = said["failed"] if said else "its guard ended at once"
        there_is = os.path.exists(argv[0]) and os.sep in argv[0]
        hint = "it is no program that may be executed" if there_is else "is it installed, and on the PATH?"
        raise UserError(f"cannot start {argv[0]}: {why}", hint=hint)
    child.began(said["started"], said["guard"])
    return child


def _receive(child: Child) -> dict[str, Any] | None:
    """The guard's next message; None when it is gone. Raises TimeoutError."""
    while b"\n" not in child._rest:
        try:
            data = child._control.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            return None
        child._rest += data
    line, child._rest = child._rest.split(b"\n", 1)
    message: dict[str, Any] = json.loads(line)
    return message
