"""benchmarks/knowledge_figures.py: the figures of the whole knowledge add up."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location(
    "knowledge_figures", ROOT / "benchmarks" / "knowledge_figures.py"
)
assert SPEC is not None and SPEC.loader is not None
FIGURES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(FIGURES)


def test_every_rule_is_counted_once_on_each_axis(capsys: pytest.CaptureFixture[str]) -> None:
    assert FIGURES.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for axis in ("by stage", "by role", "by evidence", "by confidence", "by source"):
        assert sum(found[axis].values()) == found["rules"], axis
    remedies = found["remedies"]
    assert sum(remedies["by safety"].values()) + remedies["worked out by a generator"] == remedies["all"]
    assert sum(remedies["with edits, by safety"].values()) == remedies["with edits of the command"]
    families = found["families"]
    assert families["covered by a rule"] + len(families["not covered"]) == families["known"]
    assert found["messages of SGLang"]["releases"] == 63


def test_in_words_with_the_rarer_sources_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert FIGURES.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("by source")
    named = lines[at + 1 : at + 1 + FIGURES.MANY + 1]
    assert named[-1].split()[1] == "others"
    assert all(line.startswith("  ") for line in named)
