"""Launches recorded on one and two H200 after the first rules were written: single causes, two ranks
that fail together, a rank that is killed, starts that were interrupted, healthy ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_real_logs import remedies_text, report_of

DATA = Path(__file__).parent / "data"
LABELS = sorted((DATA / "h200_logs").glob("*.json"))
# Recorded after 1,139 rules stood, one thing done wrong in each: what the doctor said at first is in its README.
LABELS_2 = sorted((DATA / "h200_logs_2").glob("*.json"))
# Recorded from another release after 1,177 rules stood.
LABELS_3 = sorted((DATA / "h200_logs_3").glob("*.json"))
# Recorded from a third release, on options that no earlier set uses.
LABELS_4 = sorted((DATA / "h200_logs_4").glob("*.json"))
# Recorded on two GPUs: ranks, nodes and stages, and what goes wrong between them.
LABELS_5 = sorted((DATA / "h200_logs_5").glob("*.json"))
# Recorded from 0.5.23 beside an older torch: model folders, new options, variables, packages.
LABELS_6 = sorted((DATA / "h200_logs_6").glob("*.json"))
# Recorded from 0.5.15.post1: checkpoints and folders with real weights, each with one fault.
LABELS_7 = sorted((DATA / "h200_logs_7").glob("*.json"))
# Recorded from 0.5.20 beside an older torch and kernel library, on two GPUs: folders, formats, commands, the host, requests.
LABELS_8 = sorted((DATA / "h200_logs_8").glob("*.json"))


@pytest.mark.parametrize(
    "label",
    LABELS + LABELS_2 + LABELS_3 + LABELS_4 + LABELS_5 + LABELS_6 + LABELS_7 + LABELS_8,
    ids=lambda p: f"{p.parent.name[10:]}{p.stem}",
)
def test_recorded_launch(label: Path) -> None:
    truth = json.loads(label.read_text())
    report = report_of(label)
    assert report["outcome"] == truth["outcome"]
    if truth["outcome"] != "failed":
        assert report["diagnoses"] == []
        return
    first = report["diagnoses"][0]
    assert first["root"]["line"] in truth["root_lines"]
    assert report["stage"] in truth["stages"]
    # a check whose message says what it asks for needs no rule of its own
    assert first["rule"] is not None or not truth.get("rule_needed", True)
    offered = remedies_text(first)
    assert any(re.search(p, text, re.I) for p in truth["fix_any"] for text in offered), offered


def test_ranks_that_say_the_same_are_one_diagnosis() -> None:
    report = report_of(LABELS[0].parent / "tp2_kv_zero.json")
    assert len(report["diagnoses"]) == 1
    assert report["diagnoses"][0]["ranks"] == ["TP0", "TP1"] or report["diagnoses"][0]["ranks"] == [
        "TP1",
        "TP0",
    ]


def test_no_way_round_keeps_lora_on_without_an_adapter() -> None:
    """--enable-lora alone asks for a rank and target modules: such a command came back from the GPU."""
    fixes = report_of(LABELS_6[0].parent / "l_bias.json")["diagnoses"][0]["fixes"]
    commands = [f["command"] for f in fixes if f.get("command")]
    assert commands and not [c for c in commands if "--enable-lora" in c and "--lora-paths" not in c]
