"""The guard: a small process between the doctor and the server that it launched.

It starts the server in a session of its own, writes its output into the log (secrets masked), adopts whatever
loses its parent (a "child subreaper"), and holds one end of a socket. When the other end closes, however the doctor
ended, it kills every process of the launch; unless the launch is to be left running.

The guard has a keeper, its parent, that does nothing but wait. When the guard itself is killed, the kernel kills the
server (``PR_SET_PDEATHSIG``), the keeper adopts what is left of the launch, and kills it; when the keeper is killed,
the guard ends with everything. Needs no privileges.

Over the socket go lines of JSON. In: the configuration, then ``{"do": "int" | "term" | "kill" | "detach"}``.
Out: ``{"started": pid, "guard": pid}`` or ``{"failed": why}``; ``{"unwritten": why}`` when the log cannot be written;
then ``{"exit": code, "left": [pids]}``.

Run as a program of its own with as little as possible imported: it stays beside the server for its whole life.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from mtpdoctor.watch import tree
from mtpdoctor.watch.masking import StreamMasker

_READ = 1 << 20  # bytes taken from the server at once: the largest pipe an ordinary user may ask for
_UNFINISHED = 0.5  # seconds after which a line without an end is written all the same
_GRACE = 3.0  # seconds that what the server leaves behind may take to end by itself
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _F_SETPIPE_SZ = 1, 36, 1031
_SIGNALS = {"int": signal.SIGINT, "term": signal.SIGTERM}


def main(control_fd: int, mark: str) -> None:
    """Guard one launch, from the configuration that comes over the socket to the server's end."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        keeper = os.getpid()
        if guard := os.fork():
            os.close(control_fd)
            _keep(guard, mark)
            return
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != keeper:  # it was killed before that
            return
    control = socket.socket(fileno=control_fd)
    lines = _Lines(control)
    config = lines.wait()
    if config is not None:
        _Guard(control, lines, config).run()


def _keep(guard: int, mark: str) -> None:
    """Until the guard has ended, and nothing of the launch lives."""
    signal.signal(signal.SIGTERM, lambda *_: tree.send(guard, signal.SIGTERM))
    while os.waitpid(-1, 0)[0] != guard:  # nobody else is its child before
        pass
    tree.kill_all(os.getpid(), mark, reap=tree.reap)


class _Lines:
    """JSON objects, one a line, from a socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._rest = control, b""
        self.closed = False

    def take(self) -> list[dict[str, Any]]:
        """What has come. ``closed`` is set when nothing more will."""
        try:
            data = self._control.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in whole if line]

    def wait(self) -> dict[str, Any] | None:
        while not self.closed:
            for message in self.take():
                return message
        return None


class _Guard:
    def __init__(self, control: socket.socket, lines: _Lines, config: dict[str, Any]) -> None:
        self._control, self._lines = control, lines
        self._mark = str(config["mark"])
        self._detach = bool(config["detach"])
        self._log = os.open(config["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._exit_file: str | None = config.get("exit_file")
        self._masker = StreamMasker(config["secrets"])
        self._config = config
        self._server = 0
        self._since: int | None = None
        self._code: int | None = None
        self._output = -1
        self._fed = 0.0  # when output came last
        self._unwritten = 0  # bytes that the log had no room for
        self._asked = False  # it was ended through its guard
        self._orphaned = False  # the doctor went first, and took the launch with it

    def run(self) -> None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        wake, self._wake = os.pipe()
        for fd in (wake, self._wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)
        self._control.setblocking(False)
        try:
            self._start()
        except OSError as error:
            self._say({"failed": error.strerror or str(error), "program": self._config["argv"][0]})
            return
        self._say({"started": self._server, "guard": os.getpid()})
        try:
            self._attend(wake)
            left = self._clear()
        except BaseException:
            self._kill()
            raise
        self._write(self._masker.flush())
        self._record()
        self._say({"exit": self._code, "left": left})

    def _terminated(self, *_: object) -> None:
        """Somebody ends the guard: the launch goes with it."""
        self._asked = True
        self._kill()

    def _kill(self) -> list[int]:
        session = (self._server, self._since) if self._since is not None else None
        return list(tree.kill_all(os.getpid(), self._mark, session=session, reap=self._reap))

    def _reap(self) -> None:
        for pid, status in tree.reap().items():
            if pid == self._server:
                self._code = os.waitstatus_to_exitcode(status)

    def _start(self) -> None:
        read, write = _terminal() if self._config["pty"] else _pipe()
        detach = self._detach

        def first() -> None:  # in the child, before the program; the guard has one thread only
            if not detach:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)

        try:
            process = subprocess.Popen(
                self._config["argv"],
                env={**self._config["env"], tree.MARK: self._mark},
                cwd=self._config["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=write,
                stderr=write,
                start_new_session=True,
                preexec_fn=first,
            )
        finally:
            os.close(write)
        self._server, self._since = process.pid, tree.started(process.pid)
        process.returncode = 0  # waited for here, by hand, among the orphans
        self._output = read

    # -- while it runs -----------------------------------------------------------------------------------
    def _attend(self, wake: int) -> None:
        """Until the server has ended."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        poll.register(self._output, select.POLLIN)
        while self._code is None:
            unfinished = self._masker.waiting
            for fd, _ in poll.poll(_UNFINISHED * 1000 if unfinished else None):
                if fd == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                elif fd == self._output and not self._pump():
                    poll.unregister(self._output)
                elif fd == self._control.fileno() and not self._obey():
                    poll.unregister(self._control)
            if unfinished and time.monotonic() - self._fed > _UNFINISHED:
                self._write(self._masker.flush())
            self._reap()

    def _pump(self) -> bool:
        """Output on its way to the log; False when there is no more."""
        data = _read(self._output, _READ)
        if data is None:
            return False
        if data:
            self._fed = time.monotonic()
            self._write(self._masker.feed(data))
        return True

    def _write(self, data: bytes) -> None:
        if self._unwritten and data:
            gap = f"\n... {self._unwritten} bytes of output are missing here: the log could not be written\n"
            try:
                os.write(self._log, gap.encode())
            except OSError:
                self._unwritten += len(data)
                return
            self._unwritten = 0
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._log, view) :]
            except OSError as error:  # the disk is full: the server must go on all the same
                if not self._unwritten:
                    self._say({"unwritten": error.strerror or str(error)})
                self._unwritten += len(view)
                return

    def _obey(self) -> bool:
        """What the doctor asks; False when it is gone and the launch is to go on without it."""
        for message in self._lines.take():
            do = message.get("do")
            if do in _SIGNALS:
                tree.send(self._server, _SIGNALS[do])
            elif do == "kill":
                self._kill()
            elif do == "detach":
                self._detach = True
        if not self._lines.closed:
            return True
        if not self._detach:
            self._orphaned = True
            self._kill()
        return False

    # -- after its end -----------------------------------------------------------------------------------
    def _clear(self) -> list[int]:
        """What the server left behind ends now; its last output is kept. The pids that had to be killed."""
        me = os.getpid()
        patience = float(self._config.get("grace", _GRACE))
        until = time.monotonic() + patience
        while tree.descendants(me) and time.monotonic() < until:
            ready = [self._output, *([] if self._lines.closed else [self._control.fileno()])]
            for fd in select.select(ready, [], [], 0.05)[0]:
                if fd != self._output:
                    self._obey()
                    until = 0.0 if self._lines.closed else until
                elif not self._pump():
                    time.sleep(0.05)
            self._reap()
        left = self._kill()
        while self._pump():  # whatever is still in the pipe: nobody writes any more
            if not select.select([self._output], [], [], 0)[0]:
                break
        return left

    def _record(self) -> None:
        """How it ended, for a doctor that is not there any more."""
        if self._exit_file is None:
            return
        whole = self._exit_file + ".new"  # whoever finds the file finds all of it
        with contextlib.suppress(OSError):
            fd = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "w") as file:
                how = {"orphaned": self._orphaned, "asked": self._asked}
                json.dump({"code": self._code, "at": time.time(), **how}, file)
            os.replace(whole, self._exit_file)

    def _say(self, message: dict[str, Any]) -> None:
        if self._lines.closed:
            return
        with contextlib.suppress(OSError):
            self._control.setblocking(True)
            self._control.sendall(json.dumps(message).encode() + b"\n")
            self._control.setblocking(False)


def _read(fd: int, size: int) -> bytes | None:
    """What is there, up to ``size`` bytes; None at the end (a terminal says EIO when all writers are gone)."""
    pieces: list[bytes] = []
    while size > 0:
        try:
            data = os.read(fd, size)
        except (BlockingIOError, InterruptedError):
            break
        except OSError:
            data = b""
        if not data:
            return b"".join(pieces) if pieces else None
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        fcntl.fcntl(write, _F_SETPIPE_SZ, _READ)
    return read, write


def _terminal() -> tuple[int, int]:
    """Both ends of a terminal that passes its output on as it is (no ``\\r`` put before ``\\n``)."""
    import fcntl
    import struct
    import termios

    read, write = os.openpty()
    attributes = termios.tcgetattr(write)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(write, termios.TCSANOW, attributes)
    with contextlib.suppress(OSError):
        fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    os.set_blocking(read, False)
    return read, write


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc_prctl()(option, value, 0, 0, 0)


_loaded: list[Callable[..., int]] = []


def _libc_prctl() -> Callable[..., int]:
    if not _loaded:
        import ctypes

        _loaded.append(ctypes.CDLL(None, use_errno=True).prctl)
    return _loaded[0]
