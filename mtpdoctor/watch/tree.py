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


def descendants(root: int) -> tuple[int, ...]:
    """Living processes below ``root``, which is not among them; zombies do not count."""
    if not _LINUX:
        return _by_psutil(root)
    stats = _stats()
    return tuple(pid for pid in _below(root, stats) if stats[pid].state not in "ZX")


def members(root: int, mark: str, session: int = 0) -> tuple[int, ...]:
    """Living processes of a launch: below ``root``, of the ``session``, or with ``MARK=mark`` in their environment.

    The caller is never among them. Others' processes have environments that cannot be read, and are none.
    """
    if not _LINUX:
        return _by_psutil(root)
    stats = _stats()
    found = set(_below(root, stats))
    wanted = f"{MARK}={mark}".encode()
    for pid, stat in stats.items():
        if pid not in found and pid != root and (stat.session == session != 0 or _has(pid, wanted)):
            found.add(pid)
    return tuple(sorted(p for p in found if stats[p].state not in "ZX" and p != os.getpid()))


def kill_all(
    root: int,
    mark: str,
    *,
    session: int = 0,
    patience: float = 10.0,
    reap: Callable[[], object] = lambda: None,
) -> tuple[int, ...]:
    """SIGKILL every member until none is left (forks may race) or ``patience`` seconds are over.

    Returns the pids that were killed. ``reap`` waits for children of the caller's that have ended, where it has
    any. A process in an uninterruptible wait dies when that ends."""
    killed: dict[int, None] = {}
    until = time.monotonic() + patience
    pause = 0.005
    while pids := members(root, mark, session):
        for pid in pids:
            killed[pid] = None
            send(pid, signal.SIGKILL)
        reap()
        if time.monotonic() > until:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.2)
    return tuple(killed)


def send(pid: int, number: int) -> bool:
    """False where there is no such process (any more)."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


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
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):  # ended meanwhile
            continue
        out[int(name)] = _Stat(int(parent), state.decode("ascii", "replace"), int(session))
    return out


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
