"""The processes of a launch: found by descent, by their session and by a mark in their environment, ended for certain.

The mark alone would not do: SGLang's schedulers name themselves, and that writes over their environment.

Linux only by /proc; elsewhere psutil sees descendants, and what has left the tree stays unseen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

MARK = "MTPDOCTOR_RUN"  # environment variable that every process of a launch inherits
_LINUX = sys.platform == "linux"


class _Stat(NamedTuple):
    parent: int
    state: str
    session: int
    since: int  # ticks since boot


def descendants(root: int) -> tuple[int, ...]:
    """Living processes below ``root``, which is not among them; zombies do not count."""
    if not _LINUX:
        return _by_psutil(root)
    stats = _stats()
    return tuple(pid for pid in _below(root, stats) if stats[pid].state not in "ZX")


def members(root: int, mark: str, session: tuple[int, int] | None = None) -> dict[int, int | None]:
    """Living processes of a launch, and when each began: below ``root`` (0: there is none), of the ``session``, or
    with ``MARK=mark`` in their environment. The session is named by its leader's pid and beginning.

    The caller is never among them. Others' processes have environments that cannot be read, and are none.
    """
    if not _LINUX:
        return {pid: started(pid) for pid in _by_psutil(root)} if root else {}
    stats = _stats()
    found = set(_below(root, stats)) if root else set()
    found |= _of_session(session, stats)
    wanted = f"{MARK}={mark}".encode()
    found |= {pid for pid in stats if pid not in found and pid != root and _has(pid, wanted)}
    me = os.getpid()
    return {p: stats[p].since for p in sorted(found) if stats[p].state not in "ZX" and p != me}


def kill_all(
    root: int,
    mark: str,
    *,
    session: tuple[int, int] | None = None,
    patience: float = 10.0,
    reap: Callable[[], object] = lambda: None,
) -> tuple[int, ...]:
    """SIGKILL every member until none is left (forks may race) or ``patience`` seconds are over.

    Returns the pids that were killed. ``reap`` waits for children of the caller's that have ended, where it has
    any. A process in an uninterruptible wait dies when that ends."""
    killed: dict[int, None] = {}
    until = time.monotonic() + patience
    pause = 0.005
    while found := members(root, mark, session):
        for pid, since in found.items():
            killed[pid] = None
            send(pid, signal.SIGKILL, since)
        reap()
        if time.monotonic() > until:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.2)
    return tuple(killed)


def send(pid: int, number: int, since: int | None = None) -> bool:
    """False where there is no such process (any more): with ``since``, none that began then, so that one that got
    the pid of another is never hit."""
    try:
        if since is None:
            os.kill(pid, number)
            return True
        if not hasattr(os, "pidfd_open"):
            if started(pid) == since:
                os.kill(pid, number)
                return True
            return False
        fd = os.pidfd_open(pid)
        try:
            if started(pid) != since:
                return False
            signal.pidfd_send_signal(fd, number)
            return True
        finally:
            os.close(fd)
    except (ProcessLookupError, PermissionError):
        return False
    except OSError:  # a kernel before 5.3, or a sandbox without pidfds
        if started(pid) != since:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            return True
        return False


def reap() -> dict[int, int]:
    """Wait statuses of children that have ended, by pid."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def started(pid: int) -> int | None:
    """When a process began (ticks since boot; seconds elsewhere than on Linux); None: there is none. Tells pids that
    are used again apart."""
    if not _LINUX:
        import psutil

        try:
            return int(psutil.Process(pid).create_time())
        except psutil.Error:
            return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _stats() -> dict[int, _Stat]:
    out: dict[int, _Stat] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                state, parent, _, session = fields[:4]
                since = int(fields[19])
        except (OSError, ValueError, IndexError):  # ended meanwhile
            continue
        out[int(name)] = _Stat(int(parent), state.decode("ascii", "replace"), int(session), since)
    return out


def _of_session(session: tuple[int, int] | None, stats: dict[int, _Stat]) -> set[int]:
    """Processes of the session; none where its number is that of another one by now.

    A number is not given out again while one process of its session lives; a new leader is told by its beginning."""
    if session is None:
        return set()
    number, since = session
    leader = stats.get(number)
    if leader is not None and leader.since != since:
        return set()
    return {pid for pid, stat in stats.items() if stat.session == number and stat.since >= since}


def _below(root: int, stats: dict[int, _Stat]) -> Iterable[int]:
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    found: list[int] = []
    todo = list(children.get(root, ()))
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, ())
    return sorted(found)


def _has(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return wanted in file.read().split(b"\0")
    except OSError:
        return False


def _by_psutil(root: int) -> tuple[int, ...]:
    import psutil

    try:
        found = psutil.Process(root).children(recursive=True)
        return tuple(sorted(p.pid for p in found if p.status() != psutil.STATUS_ZOMBIE))
    except psutil.Error:
        return ()
