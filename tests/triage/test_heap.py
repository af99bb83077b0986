"""A made-up heap of launches: every group exactly right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.bench_triage import score
from benchmarks.make_heap import UNKNOWN, make_heap
from mtpdoctor.report.triage_json import triage_to_json
from mtpdoctor.triage.types import Triage


@pytest.mark.parametrize("seed", [11])
def test_groups_are_exactly_right(seed: int, tmp_path: Path, triaged: Callable[..., Triage]) -> None:
    truth = make_heap(tmp_path, 200, seed=seed, unknown=0.06)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    result = triaged(tmp_path)
    found = score(triage_to_json(result), truth, tmp_path)
    assert (found.wrong, found.split, found.merged) == ((), (), ())
    assert found.purity == found.completeness == 1.0
    assert found.groups == found.problems
    unknown = [g for g in result.groups if g.fingerprint.rule is None]
    invented = {UNKNOWN[t["problem"]] for t in truth.values() if t["problem"] in UNKNOWN}
    for kind, _, frames in invented:
        site = f"{Path(frames[-1][0]).stem}.{frames[-1][1]}"
        assert [g for g in unknown if site in g.fingerprint.parts[-1]], kind
    assert all(g.example.next_steps and g.example.root for g in unknown)
