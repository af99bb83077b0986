"""Every recorded launch of the real SGLang gets its true cause, at its true line, with a right remedy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.log.reading import read_logs
from mtpdoctor.report.json import to_json

LOGS = Path(__file__).parent / "data" / "real_logs"
LABELS = sorted(LOGS.glob("*.json"))


def report_of(label: Path) -> dict:
    knowledge = own_knowledge()
    log = label.with_suffix(".log")
    return to_json(diagnose(read_logs([str(log)], knowledge.literals), knowledge))


def remedies_text(diagnosis: dict) -> list[str]:
    out = []
    for fix in diagnosis["fixes"]:
        edits = " ".join(
            f"{e['op']} {e['name']} {e['value'] or ''}" if e["op"] != "env" else f"{e['name']}={e['value']}"
            for e in fix["edits"]
        )
        out.append(" ".join([fix["title"], fix["why"], edits, *fix.get("run", [])]))
    return out


@pytest.mark.parametrize("label", LABELS, ids=lambda p: p.stem)
def test_recorded_launch(label: Path) -> None:
    truth = json.loads(label.read_text())
    report = report_of(label)
    if truth["outcome"] == "stopped_after_ready":
        assert report["outcome"] == "ready"
        assert report["diagnoses"] == []
        return
    assert report["outcome"] == "failed"
    assert report["stage"] in {truth["stage"], *truth["stage_accept"]}
    first = report["diagnoses"][0]
    lines = {truth["root_line_number"], *truth["accept_line_numbers"]}
    assert first["root"]["line"] in lines or truth["root_line"] in first["root"]["text"]
    assert first["rule"] is not None
    for text in truth["decoys"]:
        assert text not in first["root"]["text"]
    offered = remedies_text(first)
    assert any(re.search(p, text, re.I) for p in truth["fix_any"] for text in offered), offered
    for pattern in truth["fix_never"]:
        assert not any(re.search(pattern, text, re.I) for text in offered), pattern


def test_silent_issues_are_findings() -> None:
    report = report_of(LOGS / "ready_mtp_accept_len_1.json")
    found = {f["line"] for f in report["findings"]}
    truth = json.loads((LOGS / "ready_mtp_accept_len_1.json").read_text())
    shown = {issue["line"] for issue in truth["silent_issues"]}
    assert {6, 48} <= found & shown  # requests capped at 48, no tuned MoE kernel
    assert any("accept len: 1.00" in f["text"] for f in report["findings"])
