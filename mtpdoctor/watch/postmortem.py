"""The diagnosis of a watched launch that ended, and what the system says about its end."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.given import Given
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Report

_TROUBLE = (
    "Traceback (most recent call last)",
    "Received sigquit",
    ": error: ",
    "Killed",
    "exit code",
    "exited with code",
    "Error: ",
    "ERROR:    [Errno",
    "Fatal Python error",
    "terminate called",
    "Segmentation fault",
)
_EVENTS = "/sys/fs/cgroup/memory.events"


def is_trouble(text: str) -> bool:
    """May the line be of a server that goes down? What follows decides."""
    return any(sign in text for sign in _TROUBLE)


def report_on(paths: Sequence[str], given: Given, notes: Sequence[str] = ()) -> Report:
    """The diagnosis of the log(s) as they are now. Raises UserError when they cannot be read."""
    from mtpdoctor.diagnose.engine import diagnose
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.log.reading import read_logs

    knowledge = load_knowledge()
    report = diagnose(read_logs(list(paths), knowledge.literals), knowledge, given)
    return replace(report, notes=(*report.notes, *notes)) if notes else report


def oom_kills() -> int | None:
    """How many processes of this control group the kernel has killed for memory; None: it does not tell."""
    try:
        with open(_EVENTS, encoding="ascii") as file:
            for line in file:
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    except (OSError, ValueError):
        pass
    return None


def killed(code: int | None, before: int | None) -> tuple[str, ...]:
    """What the end itself says, where the log may say nothing."""
    out = []
    if code is not None and code < 0:
        out.append(f"the launched program was killed by {signal_name(-code)}")
    after = oom_kills()
    if before is not None and after is not None and after > before:
        out.append("meanwhile the kernel killed a process of this control group because it was out of memory")
    return tuple(out)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
