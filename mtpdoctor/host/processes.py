"""Who a process is: its command line, owner, start and parent, through psutil."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mtpdoctor.host.machine import Machine
from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line

MAX_COMMAND = 2000  # characters kept of a command line


@dataclass(frozen=True, slots=True)
class Who:
    command: str = ""  # "" where it is not visible
    user: str | None = None
    started: float | None = None  # seconds since the epoch
    parent: int | None = None  # pid


def who(machine: Machine, pid: int) -> Who:
    """What can be seen of process ``pid``; an empty answer where nothing can."""
    try:
        psutil = machine.process_library()
    except ImportError:
        return Who()
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            words = _ask(psutil, process.cmdline) or []
            name = _ask(psutil, process.name) or ""
            return Who(
                _command(words) or one_line(name),
                _ask(psutil, process.username),
                _ask(psutil, process.create_time),
                _ask(psutil, process.ppid),
            )
    except (psutil.Error, OSError, ValueError):
        return Who()


def _ask(psutil, ask):  # type: ignore[no-untyped-def]  # psutil is whatever module was put in
    try:
        return ask()
    except (psutil.Error, OSError, KeyError):
        return None


def _command(words: list[str]) -> str:
    import shlex

    # A process that names itself (setproctitle) leaves one long word, often padded with spaces.
    words = [w for w in words if w.strip()]
    text = words[0].strip() if len(words) == 1 else shlex.join(words)
    return mask_secrets(one_line(text))[:MAX_COMMAND]


def uses_device(machine: Machine, pid: int, *prefixes: str) -> bool | None:
    """Whether the process holds a device file open whose path begins so; None when that may not be seen."""
    folder = machine.path(f"/proc/{pid}/fd")
    try:
        names = os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(folder / name).startswith(prefixes):
                return True
        except OSError:
            continue
    return False
