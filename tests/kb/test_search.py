"""Finding rules."""

from __future__ import annotations

import pytest

from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.search import parse_query, search
from mtpdoctor.release import parse_release


@pytest.fixture(scope="module")
def rules():
    return load_knowledge().rules


def found(rules, text: str) -> list[str]:
    return [rule.id for rule in search(rules, parse_query(text))]


def test_a_rule_is_found_by_its_id_in_any_spelling(rules) -> None:
    for text in ("MTP0200", "mtp0200", "200", "0200"):
        assert found(rules, text)[0] == "MTP0200"


def test_a_pasted_message_finds_the_rule_that_knows_it_first(rules) -> None:
    message = (
        "ValueError: Speculative decoding for Qwen3NextForCausalLM is not compatible with radix cache when using "
        "--mamba-scheduler-strategy no_buffer. To use radix cache ..."
    )
    assert found(rules, message)[0] == "MTP0200"


def test_every_example_of_a_rule_finds_it(rules) -> None:
    sample = [r for r in rules if r.examples.get("bad") and r.match and r.role.value == "cause"][::25]
    assert len(sample) > 5
    lost = []
    for rule in sample:
        line = next(
            (
                x
                for x in rule.examples["bad"][0]["log"].splitlines()
                if any(p.literal in x for p in rule.match)
            ),
            "",
        )
        if len(line) >= 24 and rule.id not in found(rules, line):
            lost.append(rule.id)
    assert len(lost) <= len(sample) // 4, lost  # patterns over whole tracebacks do not match one line


def test_all_words_must_hold(rules) -> None:
    both = set(found(rules, "radix mamba"))
    assert both and both <= set(found(rules, "radix")) & set(found(rules, "mamba"))


def test_fields_narrow_it_down(rules) -> None:
    assert {r.stage.value for r in search(rules, parse_query("stage:weights"))} == {"weights"}
    assert {r.role.value for r in search(rules, parse_query("role:degrades"))} == {"degrades"}
    old = parse_query("release:0.4.6")
    assert old.release == parse_release("0.4.6")
    assert all(r.releases.holds(old.release) is not False for r in search(rules, old))
    assert len(search(rules, old)) < len(rules)


def test_what_means_nothing_finds_nothing_and_never_fails(rules) -> None:
    assert found(rules, "[bold]zzz (((") == []
    assert len(found(rules, "")) == len(rules)
    assert parse_query("release:banana stage: :").words == ("release:banana", "stage:", ":")
