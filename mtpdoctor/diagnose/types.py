"""What a diagnosis is. Field names follow the published JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpdoctor.records import dataclass

if TYPE_CHECKING:
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import Edit
    from mtpdoctor.log.types import Line, Traceback
    from mtpdoctor.memory.types import MemorySum


@dataclass(frozen=True, slots=True)
class Fix:
    """One remedy, applied. ``verified`` tells how far the proof went: none < parsed < rules < sglang."""

    title: str
    safety: str
    why: str
    risk: str | None
    edits: tuple[Edit, ...]
    run: tuple[str, ...]  # what a person would type, outside the launch command
    command: str | None
    verified: str
    notes: tuple[str, ...] = ()  # renames translated, conditions unknown ("if ...")
    diff: str | None = None  # of the launch file, where the command was read from one
    document: LaunchDocument | None = None  # the fixed launch, as a whole and unmasked


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause. ``ranks`` names every rank that said the same, the first first."""

    rule: str | None
    title: str
    confidence: float
    cause: str
    misleading: str | None
    root: Line
    ranks: tuple[str, ...]
    evidence: tuple[Line, ...]
    consequences: tuple[Line, ...]
    references: tuple[str, ...]
    fixes: tuple[Fix, ...]
    chain: tuple[Line, ...] = ()  # exception lines of the chain, innermost first
    next_steps: tuple[str, ...] = ()  # what to look at when no rule knows it
    marks: tuple[str, ...] = ()  # decisive words of the root line
    captures: tuple[tuple[str, str], ...] = ()  # what the rule's pattern caught, by name
    raised: Traceback | None = None  # the traceback that ends in the root line


@dataclass(frozen=True, slots=True)
class Finding:
    """Works, but not as wanted."""

    rule: str
    title: str
    line: Line
    cause: str
    fixes: tuple[Fix, ...] = ()
    marks: tuple[str, ...] = ()  # decisive words of the line


@dataclass(frozen=True, slots=True)
class Late:
    """A rank that has not come as far as others. ``stage`` and ``last`` are None where it has written nothing."""

    rank: str
    stage: str | None
    last: Line | None


@dataclass(frozen=True, slots=True)
class Clue:
    """What speaks for a cause of a stop; ``line`` is where the log shows it."""

    text: str
    line: Line | None = None


@dataclass(frozen=True, slots=True)
class StopCause:
    """What may hold the launch up, if it stands still. Never a root cause: the log does not prove it."""

    id: str  # mtpdoctor explain ID
    title: str
    clues: tuple[Clue, ...]
    tell: str  # what to look at now
    do: str
    references: tuple[str, ...]
    open: tuple[str, ...]  # what is not known and would decide


@dataclass(frozen=True, slots=True)
class SilentBy:
    """How long it had been quiet, in seconds, and the line that tells it."""

    seconds: float
    line: Line


@dataclass(frozen=True, slots=True)
class Stop:
    """A log that just stops: where it stands, and what to look at if the launch does not go on.

    Seconds are by the log's own clock, None where it does not tell. The log's end is not the launch's: how long it
    has been quiet is known only where later lines that are no progress (health checks, Ctrl-C, a date that was typed) show it.
    """

    stage: str
    last: Line | None  # the last sign of life
    progress: str | None  # "62 of 100 shards"
    entered: Line | None  # the first line of the stage
    before: str | None  # the stage before it
    before_s: float | None  # how long that took
    stage_s: float | None  # from the stage's first line to the last sign of life
    quiet_s: float  # how long the stage may be quiet
    quiet_why: str
    silent_s: float | None  # from the last sign of life to the last line of the log
    silent_until: Line | None
    late: tuple[Late, ...]
    ranks: int  # that have written, or are late
    ended: Line | None  # a person ended it
    answers: Line | None  # it has answered a request: it serves, though it did not say so
    causes: tuple[StopCause, ...]

    @property
    def overdue(self) -> bool | None:
        """Quiet for longer than the stage may be; None: the log does not tell."""
        return None if self.silent_s is None else self.silent_s > self.quiet_s


@dataclass(frozen=True, slots=True)
class Ended:
    """How a launch that had not failed came to its end: somebody or something stopped it, or it just ended."""

    line: Line  # the first sign of it
    sign: str | None  # "SIGTERM", "Ctrl-C", ... as far as the log tells; None: only the end itself is told
    sure: bool  # False: a Ctrl-C that may have ended the showing of the log only
    code: int | None  # the exit status, or the signal as a negative number
    code_line: Line | None
    ready: Line | None  # it had been ready before

    @property
    def in_order(self) -> bool | None:
        """Whether it ended by itself after it was asked to; None: the log does not tell."""
        return None if self.code is None else self.code not in (-9, 137, 9)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer for one launch."""

    outcome: str  # failed | ready | unfinished | empty
    stage: str
    sglang_version: str | None
    version_source: str | None
    command: str | None
    diagnoses: tuple[Diagnosis, ...]
    findings: tuple[Finding, ...]
    attempts: int
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    memory: MemorySum | None = None  # where the root cause is one of memory
    release_range: str | None = None  # "0.5.13 to 0.5.13.post1", where the log only narrows it down
    stop: Stop | None = None  # of an unfinished launch
    ended: Ended | None = None  # of a ready or unfinished launch that is known to have come to its end
