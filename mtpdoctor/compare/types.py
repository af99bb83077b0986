"""What a comparison of two launches is. Field names follow the published JSON (docs/json.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# From this weight on a difference can be the reason that one launch works and the other does not.
MATTERS = 20


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two launches."""

    name: str
    outcome: str  # failed | ready | unfinished | empty
    stage: str
    release: str | None
    rule: str | None  # of the root cause
    title: str | None
    root: tuple[int, str] | None  # line and text of the root


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``good`` and ``bad``: the values as they would be typed or read, None: absent."""

    area: str  # arguments environment release packages host model memory stages messages
    name: str  # "--mem-fraction-static", "NCCL_SOCKET_IFNAME", "host.gpu.name", a message
    good: Any
    bad: Any
    kind: str  # changed | added (only in the bad launch) | removed (only in the good one)
    weight: int  # 0 to 100
    why: str | None = None  # what speaks for it: "the remedy of MTP0007 changes it"
    note: str | None = None  # "SGLang chose it", "called --x in 0.5.9"
    where: tuple[str, str] = ("", "")  # where it is told, good and bad

    @property
    def matters(self) -> bool:
        return self.weight >= MATTERS


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds from the first line with a time to the stage's first line; None: not reached, or no times."""

    stage: str
    good: float | None
    bad: float | None
    good_reached: bool
    bad_reached: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences, likeliest reason first."""

    good: Side
    bad: Side
    differences: tuple[Difference, ...]
    stages: tuple[StageTimes, ...]
    notes: tuple[str, ...] = ()

    @property
    def matters(self) -> bool:
        return any(d.matters for d in self.differences)
