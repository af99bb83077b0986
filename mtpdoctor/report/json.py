"""The ``diagnose --json`` document. Its schema is diagnose.schema.json, its description docs/json.md."""

from __future__ import annotations

from typing import Any

from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.log.types import Line
from mtpdoctor.report.clean import Cleaner

SCHEMA = 1


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values, every text safe and with secrets masked."""
    clean = Cleaner(report)
    files = [clean.line(name) for name in report.files]
    return {
        "schema": SCHEMA,
        "outcome": report.outcome,
        "stage": report.stage,
        "sglang_version": clean.maybe(report.sglang_version),
        "command": clean.maybe(report.command),
        "diagnoses": [_diagnosis(d, files, clean) for d in report.diagnoses],
        "findings": [_finding(f, files, clean) for f in report.findings],
        "attempts": report.attempts,
        "files": files,
        "notes": [clean.text(n) for n in report.notes],
        "memory": _memory(report),
        "stop": _stop(report, files, clean),
        "ended": _ended(report, files, clean),
    }


def _stop(report: Report, files: list[str], clean: Cleaner) -> dict[str, Any] | None:
    if report.stop is None:
        return None
    from mtpdoctor.report.stop_json import stop_to_json

    return stop_to_json(report.stop, clean, lambda line: line_to_json(line, files, clean))


def _ended(report: Report, files: list[str], clean: Cleaner) -> dict[str, Any] | None:
    ended = report.ended
    if ended is None:
        return None
    return line_to_json(ended.line, files, clean) | {
        "by": ended.sign,
        "sure": ended.sure,
        "exit_code": ended.code,
        "was_ready": report.outcome == "ready",
    }


def _memory(report: Report) -> dict[str, Any] | None:
    if report.memory is None:
        return None
    from mtpdoctor.report.memory_json import sum_to_json

    return sum_to_json(report.memory)


def _diagnosis(diagnosis: Diagnosis, files: list[str], clean: Cleaner) -> dict[str, Any]:
    rank = diagnosis.root.rank or (diagnosis.ranks[0] if diagnosis.ranks else None)
    return {
        "rule": diagnosis.rule,
        "title": clean.text(diagnosis.title),
        "confidence": diagnosis.confidence,
        "cause": clean.text(diagnosis.cause),
        "misleading": clean.maybe(diagnosis.misleading),
        "root": line_to_json(diagnosis.root, files, clean) | {"rank": clean.maybe(rank)},
        "ranks": [clean.line(r) for r in diagnosis.ranks],
        "evidence": [line_to_json(x, files, clean) for x in diagnosis.evidence],
        "chain": [line_to_json(x, files, clean) for x in diagnosis.chain],
        "consequences": [line_to_json(x, files, clean) for x in diagnosis.consequences],
        "references": [clean.line(r) for r in diagnosis.references],
        "fixes": [fix_to_json(f, clean) for f in diagnosis.fixes],
        "next_steps": [clean.text(s) for s in diagnosis.next_steps],
    }


def fix_to_json(fix: Fix, clean: Cleaner) -> dict[str, Any]:
    """One fix, as in ``diagnoses[].fixes`` (``check --json`` and ``fix --json`` use the same form)."""
    return {
        "title": clean.text(fix.title),
        "safety": fix.safety,
        "why": clean.text(fix.why),
        "risk": clean.maybe(fix.risk),
        "edits": [{"op": e.op.value, "name": clean.line(e.name), "value": clean.value(e)} for e in fix.edits],
        "run": [clean.text(r) for r in fix.run],
        "command": clean.maybe(fix.command),
        "diff": clean.maybe(fix.diff),
        "verified": fix.verified,
        "notes": [clean.text(n) for n in fix.notes],
    }


def _finding(finding: Finding, files: list[str], clean: Cleaner) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "title": clean.text(finding.title),
        **line_to_json(finding.line, files, clean),
        "cause": clean.text(finding.cause),
        "fixes": [fix_to_json(f, clean) for f in finding.fixes],
    }


def line_to_json(line: Line, files: list[str], clean: Cleaner) -> dict[str, Any]:
    name = files[line.file] if 0 <= line.file < len(files) else ""
    return {"file": name, "line": line.number, "text": clean.text(line.text)}
