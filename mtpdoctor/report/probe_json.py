"""The ``probe --json`` document. Its schema is probe.schema.json, its description in docs/json.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpdoctor.diagnose.types import Report
from mtpdoctor.host.saved import host_to_json
from mtpdoctor.host.types import HostFacts
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.report.json import fix_to_json

if TYPE_CHECKING:
    from mtpdoctor.diagnose.host_check import HostFinding


def probe_to_json(
    host: HostFacts, findings: Sequence[HostFinding] = (), model: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The host as ``--host FILE`` reads it, with ``findings`` and the model's part beside its fields."""
    clean = Cleaner(_no_report())
    return {
        **host_to_json(host),
        "findings": [_finding(f, clean) for f in findings],
        "model": dict(model) if model is not None else None,
    }


def _no_report() -> Report:
    return Report("ready", "serving", None, None, None, (), (), 0, ())


def _finding(finding: HostFinding, clean: Cleaner) -> dict[str, Any]:
    return {
        "rule": clean.maybe(finding.rule),
        "title": clean.text(finding.title),
        "cause": clean.text(finding.cause),
        "severity": finding.severity,
        "misleading": clean.maybe(finding.misleading),
        "fixes": [fix_to_json(f, clean) for f in finding.remedies],
        "references": [clean.line(r) for r in finding.references],
    }
