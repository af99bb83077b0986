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
