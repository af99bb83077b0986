"""The ``check --json`` document. Its schema is check.schema.json, its description docs/check.md."""

from __future__ import annotations

from typing import Any

from mtpdoctor.diagnose.check import CheckReport, Problem
from mtpdoctor.diagnose.types import Report
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.report.json import fix_to_json

SCHEMA = 1


def check_to_json(report: CheckReport) -> dict[str, Any]:
    """The report as plain JSON values, every text safe and with secrets masked."""
    clean = Cleaner(as_report(report))
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "argument_checks": report.argument_checks,
        "sglang_version": clean.maybe(report.sglang_version),
        "source": report.source,
        "problems": [_problem(p, clean) for p in report.problems],
        "fixed_command": clean.text(report.fixed.line) if report.fixed else None,
        "resolved": _plain(report.resolved, clean),
        "command": clean.text(report.command),
        "warnings": [clean.text(w) for w in report.warnings],
        "notes": [clean.text(n) for n in report.notes],
    }


def as_report(report: CheckReport) -> Report:
    """What is common with a diagnosis: the command, for the parts that show fixes and mask secrets."""
    return Report(
        outcome="failed" if report.verdict == "reject" else "ready",
        stage=next((p.stage for p in report.problems if p.decisive), "serving"),
        sglang_version=report.sglang_version,
        version_source=report.version_source,
        command=report.command,
        diagnoses=(),
        findings=(),
        attempts=0,
        files=(),
        notes=report.notes,
    )


def _problem(problem: Problem, clean: Cleaner) -> dict[str, Any]:
    return {
        "rule": problem.rule,
        "title": clean.text(problem.title),
        "cause": clean.text(problem.cause),
        "severity": problem.severity,
        "stage": problem.stage,
        "certain": problem.certain,
        "unknown": list(problem.unknown),
        "source": problem.source,
        "said": clean.maybe(problem.said),
        "references": [clean.line(r) for r in problem.references],
        "fixes": [fix_to_json(f, clean) for f in problem.fixes],
    }


def _plain(value: Any, clean: Cleaner) -> Any:
    if isinstance(value, str):
        return clean.text(value)
    if isinstance(value, dict):
        return {clean.line(str(k)): _plain(v, clean) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, clean) for v in value]
    return value if value is None or isinstance(value, (bool, int, float)) else clean.text(str(value))
