"""Which lines of a log mean something: the root cause, its evidence, what follows from it, stages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.types import EventKind, Line, LogReading, Stage


class Kind(IntEnum):
    """A line that is several of them counts as the first."""

    ROOT = 0
    EVIDENCE = 1
    FINDING = 2
    CONSEQUENCE = 3
    READY = 4
    STAGE = 5
    ERROR = 6


GLYPHS = {
    Kind.ROOT: "●",
    Kind.EVIDENCE: "◆",
    Kind.FINDING: "◇",
    Kind.CONSEQUENCE: "┆",
    Kind.READY: "✓",
    Kind.STAGE: "▸",
    Kind.ERROR: "!",
}
WORDS = {
    Kind.ROOT: "root cause",
    Kind.EVIDENCE: "evidence",
    Kind.FINDING: "works, but not as wanted",
    Kind.CONSEQUENCE: "follows from the cause",
    Kind.READY: "the server is ready",
    Kind.STAGE: "stage",
    Kind.ERROR: "error",
}


@dataclass(frozen=True, slots=True)
class Mark:
    kind: Kind
    label: str = ""  # the stage
    words: tuple[str, ...] = ()  # decisive words of the line


Marks = dict[int, dict[int, Mark]]  # file -> line number -> mark


def marks_of(report: Report | None, reading: LogReading | None, diagnosis: int = 0) -> Marks:
    """The marks for one of the report's diagnoses."""
    marks: Marks = {}

    def put(line: Line, mark: Mark) -> None:
        lines = marks.setdefault(line.file, {})
        known = lines.get(line.number)
        if known is None or mark.kind < known.kind:
            lines[line.number] = mark

    if report is not None and report.outcome == "failed" and report.diagnoses:
        chosen = report.diagnoses[min(diagnosis, len(report.diagnoses) - 1)]
        put(chosen.root, Mark(Kind.ROOT, words=chosen.marks))
        for line in (*chosen.evidence, *chosen.chain):
            put(line, Mark(Kind.EVIDENCE))
        for each in report.diagnoses:
            for line in each.consequences:
                put(line, Mark(Kind.CONSEQUENCE))
    for finding in report.findings if report is not None else ():
        put(finding.line, Mark(Kind.FINDING, words=finding.marks))
    for attempt in reading.attempts if reading is not None else ():
        seen: set[tuple[Stage, str | None]] = set()
        for stage in attempt.marks:
            if (stage.stage, None) not in seen:
                put(stage.line, Mark(Kind.STAGE, stage.stage.value))
            seen.add((stage.stage, None))
        if attempt.ready is not None:
            put(attempt.ready, Mark(Kind.READY))
        for event in attempt.events:
            if event.kind is not EventKind.SHUTDOWN and event.fatal:
                put(event.line, Mark(Kind.ERROR))
    return marks


def stage_at(marks: dict[int, Mark], number: int) -> str | None:
    """The stage that the launch was in at a line, by the marks above it."""
    best = max((n for n, m in marks.items() if m.kind is Kind.STAGE and n <= number), default=None)
    return marks[best].label if best is not None else None


def next_mark(marks: dict[int, Mark], number: int, step: int, kinds: tuple[Kind, ...]) -> int | None:
    """The line of the nearest mark of these kinds after line ``number``, or before it for a negative ``step``."""
    numbers = [n for n, mark in marks.items() if mark.kind in kinds]
    if step > 0:
        return min((n for n in numbers if n > number), default=None)
    return max((n for n in numbers if n < number), default=None)


def ranks_of(reading: LogReading | None) -> tuple[str, ...]:
    """The ranks that the log speaks of, in their natural order."""
    import re

    found: set[str] = set()
    for attempt in reading.attempts if reading is not None else ():
        found.update(m.rank for m in attempt.marks if m.rank)
        found.update(e.rank for e in attempt.events if e.rank)
        found.update(o.line.rank for o in attempt.observations if o.line.rank)
    return tuple(sorted(found, key=lambda r: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", r)]))
