"""``here``: a rule names the cause that the facts of the launch decide for, and its general one else."""

from __future__ import annotations

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.facts import Source, make_facts
from mtpdoctor.kb.codec import rule_in, rule_out
from mtpdoctor.kb.here import cause_here
from mtpdoctor.kb.types import Rule


def rule(rule_id: str) -> Rule:
    return own_knowledge().by_id[rule_id]


@pytest.mark.parametrize(
    ("known", "part"),
    [
        ({"env.CUDA_VISIBLE_DEVICES": ""}, "hides every GPU"),
        ({"env.CUDA_VISIBLE_DEVICES": "1"}, "CUDA_VISIBLE_DEVICES=1 names the GPUs by their numbers"),
        ({"env.CUDA_VISIBLE_DEVICES": "0"}, "the driver is absent, or torch is a CPU build"),
        ({}, "the driver is absent, or torch is a CPU build"),
    ],
)
def test_the_facts_decide(known: dict[str, str], part: str) -> None:
    assert part in cause_here(rule("MTP0120"), make_facts(known, Source.USER))


def test_it_is_kept_with_the_compiled_knowledge() -> None:
    assert rule("MTP0120").here
    assert rule_in(rule_out(rule("MTP0120"))) == rule("MTP0120")
