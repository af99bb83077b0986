"""Beside a trainer or another process no share of a GPU is offered as safe; alone on it, what the sum finds is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("log", "safety", "said"),
    [
        (
            "unseen_reports_15/q_verl_fsdp_params_starve_kv.log",
            "risky",
            "rollout.gpu_memory_utilization=0.75",
        ),
        ("unseen_reports_4/c30.log", "risky", "18.61 of 79.11 GiB were free"),
        ("public_reports/kv_pool_70b_fp8_two_4090.log", "safe", ""),
    ],
)
def test_a_share_of_a_gpu_that_others_use_is_risky(log: str, safety: str, said: str) -> None:
    knowledge = load_knowledge()
    found = diagnose(reading_from_text((DATA / log).read_text(), knowledge.literals), knowledge).diagnoses[0]
    shares = [fix for fix in found.fixes if any(edit.name == "--mem-fraction-static" for edit in fix.edits)]
    assert shares and {fix.safety for fix in shares} == {safety}
    assert said in " ".join((shares[0].risk or "", *shares[0].notes))
