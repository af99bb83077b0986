"""What live processes show of a launch that stands still, in the words of the knowledge of hangs (``kb/hangs.py``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.facts import Facts
from mtpdoctor.kb.hangs import Scene
from mtpdoctor.log.stacks import Stack
from mtpdoctor.log.types import Line
from mtpdoctor.watch.types import Process

if TYPE_CHECKING:
    from mtpdoctor.diagnose.given import Given

BUSY_CPU = 50.0  # percent of one processor
IDLE_CPU = 8.0
BUSY_GPU = 90
READING = 256 * 1024  # bytes per second


def scene_of(
    processes: Sequence[Process],
    *,
    compilers: Collection[str],
    lines: Sequence[Line] = (),
    found: Sequence[str] = (),
    behind: Sequence[str] = (),
    ranks: int | None = None,
    nodes: int | None = None,
    facts: Facts | None = None,
) -> Scene:
    """``compilers``: names of processes that compile; ``found``: ``host_signs.signs()``, what else the host shows."""
    return Scene(
        lines=tuple(lines),
        stacks=tuple(Stack(_named(p), p.stack, _busy(p)) for p in processes if p.stack),
        found=tuple(found),
        states=tuple((_named(p), p.state) for p in processes),
        compilers=tuple(f"{p.name} (pid {p.pid})" for p in processes if p.name in compilers and _works(p)),
        cpu=_cpu(processes),
        gpu=_gpu(processes),
        io=_io(processes),
        behind=tuple(behind),
        ranks=ranks,
        nodes=nodes,
        facts=facts,
    )


def facts_of(given: Given) -> Facts | None:
    """What the launch command, the host and the release make known of a launch; None where no command is known."""
    if given.document is None:
        return None
    from mtpdoctor.case import build_case

    case = build_case(
        document=given.document,
        command_where=given.command_where,
        host=given.host,
        model=given.model,
        release=given.release,
    )
    return case.facts


def _named(process: Process) -> str:
    return process.rank or f"{process.name} (pid {process.pid})"


def _works(process: Process) -> bool:
    """Running now, or a compiler's driver that waits for the one that works."""
    return process.state not in ("zombie", "stopped")


def _busy(process: Process) -> bool | None:
    return None if process.cpu_percent is None else process.cpu_percent >= BUSY_CPU


def _cpu(processes: Sequence[Process]) -> str | None:
    known = [p.cpu_percent for p in processes if p.cpu_percent is not None]
    if not known:
        return None
    return "busy" if max(known) >= BUSY_CPU else "idle" if max(known) <= IDLE_CPU else "some"


def _gpu(processes: Sequence[Process]) -> str | None:
    known = [p.gpu_percent for p in processes if p.gpu_percent is not None]
    if not known:
        return None
    return "busy" if max(known) >= BUSY_GPU else "idle" if max(known) <= 2 else "some"


def _io(processes: Sequence[Process]) -> str | None:
    known = [p.read_bytes_per_s for p in processes if p.read_bytes_per_s is not None]
    if not known:
        return None
    return "reading" if sum(known) >= READING else "still" if sum(known) < 1 else "some"
