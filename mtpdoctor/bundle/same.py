"""Does the redacted log get the diagnosis that the log itself got? What differs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.log.types import Line

Mapped = Callable[[str], str]


def differences(original: Report, redacted: Report, mapped: Mapped) -> tuple[str, ...]:
    """None where rule, lines, confidence and remedies are the same but for placeholders (``mapped`` puts them into
    a text)."""
    out = []
    for (name, a), (_, b) in zip(_said(original, mapped), _said(redacted, mapped), strict=False):
        if a != b:
            out.append(f"{name}: {_short(a)}; of the redacted log: {_short(b)}")
    if len(original.diagnoses) != len(redacted.diagnoses):
        out.insert(0, f"diagnoses: {len(original.diagnoses)}; of the redacted log: {len(redacted.diagnoses)}")
    return tuple(out)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _said(report: Report, mapped: Mapped) -> Iterator[tuple[str, Any]]:
    yield "outcome", report.outcome
    yield "stage", report.stage
    yield "release", (report.sglang_version, report.release_range)
    yield "findings", [(f.rule, f.line.number, [_fix(x, mapped) for x in f.fixes]) for f in report.findings]
    for i, diagnosis in enumerate(report.diagnoses, 1):
        for name, value in _diagnosis(diagnosis, mapped):
            yield f"diagnosis {i}, {name}", value


def _diagnosis(d: Diagnosis, mapped: Mapped) -> Iterator[tuple[str, Any]]:
    yield "rule", d.rule
    yield "title", mapped(d.title)
    yield "cause", mapped(d.cause)
    yield "root line", _at(d.root)
    yield "confidence", d.confidence
    yield "ranks", [mapped(r) for r in d.ranks]
    yield "evidence", [_at(x) for x in d.evidence]
    yield "chain", [_at(x) for x in d.chain]
    yield "consequences", [_at(x) for x in d.consequences]
    yield "fixes", [_fix(x, mapped) for x in d.fixes]


def _at(line: Line) -> tuple[int, int]:
    return line.file, line.number


def _fix(fix: Fix, mapped: Mapped) -> tuple[Any, ...]:
    edits = [(e.op.value, e.name, mapped(e.value or "")) for e in fix.edits]
    return mapped(fix.title), fix.safety, edits, fix.verified
