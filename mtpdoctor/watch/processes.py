"""What the processes of a launch are doing right now. Linux's /proc, NVML and py-spy where they are there."""

from __future__ import annotations

from collections.abc import Iterable

from mtpdoctor.watch.types import Process


def look(pids: Iterable[int], *, sample_s: float = 0.5, stacks: bool = True) -> tuple[Process, ...]:
    """Every process of ``pids`` and all their children. Takes ``sample_s`` and, with stacks, some seconds more."""
    raise NotImplementedError


def signs(pids: Iterable[int]) -> tuple[str, ...]:
    """What the host tells about a launch that stands still: stale locks, weights on network storage ..."""
    raise NotImplementedError
