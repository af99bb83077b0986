"""Conditions are true, false, or unknown because of a fact that is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.kb.codec import condition_in, condition_out
from mtpdoctor.kb.condition_source import ConditionError, parse_condition
from mtpdoctor.kb.conditions import describe, evaluate, fact_names, unknown_facts
from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.release import parse_release


def facts(**values: Any) -> Facts:
    return make_facts({name.replace("__", "."): value for name, value in values.items()}, Source.USER)


def holds(written: Any, captures: dict[str, str] | None = None, **values: Any) -> bool | None:
    return evaluate(parse_condition(written), facts(**values), captures)


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        (4, 4, True), (4, "4", True), ("4", 4, True), (4, 4.0, True), (4, "8", False), (4, None, False),
        ("triton", "triton", True), ("triton", "fa3", False), ("triton", None, False),
        (True, True, True), (True, "true", True), (True, "True", True), (True, "1", False), (False,
        None, False),
        (1, True, False), (["a", "b"], "b", True), ([1, 2], "2", True), (["a", "b"], "c", False),
        ("absent", None, True), ("absent", "x", False), ("present", None, False), ("present", False, True),
        (["absent", "x"], None, True), (["absent", "x"], "x", True), (["absent", "x"], "y", False),
        ({"gt": 1}, 2, True), ({"gt": 1}, "2", True), ({"ge": 2, "le": 4}, 5, False), ({"lt": 0.5},
        "0.4", True),
        ({"gt": 1}, None, False), ({"gt": 1}, "many", None), ({"ne": 4}, None, True), ({"ne": 4}, "4", False),
        ({"in": [1, 2]}, 3, False), ({"not_in": [1, 2]}, 3, True), ({"not_in": [1, 2]}, None, True),
        ({"matches": "^Qwen"}, "Qwen3", True), ({"matches": "^wen"}, "Qwen3", False),
        ({"contains": "wen"}, "Qwen3", True), ({"contains": 4}, [1, "4"], True), ({"contains": 4}, [44],
        False),
        ({"multiple_of": 64}, "128", True), ({"multiple_of": 64}, 96, False), ({"multiple_of": 64}, 0.5,
        None),
        ({"divides": 256}, 64, True), ({"divides": 256}, 0, False), ({"divides": 256}, "48", False),
    ],
)  # fmt: skip
def test_values_compare_as_the_format_says(written: Any, value: Any, expected: bool | None) -> None:
    assert holds({"flag.x": written}, flag__x=value) is expected


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        (">=0.5.10,<0.5.14", parse_release("0.5.13.post1"), True), (">=0.5.10,<0.5.14", "0.5.14", False),
        ("0.5.13", "0.5.13", True), ({"lt": "0.5.13"}, "0.5.9", True), (["0.5.9", ">=0.5.13"], "0.5.20",
        True),
        (["0.5.9", ">=0.5.13"], "0.5.10", False), ({"not_in": ["0.5.9"]}, "0.5.9", False),
    ],
)  # fmt: skip
def test_releases_are_ordered_as_releases(written: Any, value: Any, expected: bool) -> None:
    assert holds({"release": written}, release=value) is expected


def test_versions_of_packages_are_no_numbers() -> None:
    older = parse_condition({"host.package.flashinfer-python": {"lt": "0.10"}})
    assert evaluate(older, make_facts({"host.package.flashinfer-python": "0.9"}, Source.PROBE)) is True
    assert evaluate(older, make_facts({"host.package.flashinfer-python": "0.10.1"}, Source.PROBE)) is False
    assert holds({"host.driver": ">=550,<570"}, host__driver="560.35.03") is True


def test_operands_may_be_facts() -> None:
    written = {"flag.tp_size": {"gt": "$host.gpu.count"}}
    assert holds(written, flag__tp_size="8", host__gpu__count=4) is True
    assert holds(written, flag__tp_size="8") is None
    assert unknown_facts(parse_condition(written), facts(flag__tp_size="8")) == ("host.gpu.count",)
    assert holds({"flag.x": ["$capture.a", "b"]}, {"a": "7"}, flag__x=7) is True


def test_captures_are_facts_of_the_match() -> None:
    written = {"capture.arch": "absent"}
    assert holds(written, {}) is True
    assert holds(written, {"arch": "x"}) is False
    assert holds(written) is None  # nothing has matched yet


def test_unknown_ok_holds_for_a_fact_that_is_not_known() -> None:
    written = {"host.platform": ["cuda", "unknown-ok"]}
    assert holds(written) is True
    assert holds(written, host__platform="cuda") is True
    assert holds(written, host__platform="rocm") is False


def test_only_facts_that_decide_are_named() -> None:
    condition = parse_condition({"any": [{"flag.a": 1, "flag.b": 2}, {"flag.c": 3}], "flag.d": 4})
    assert unknown_facts(condition, facts(flag__a=0, flag__d=4)) == ("flag.c",)
    assert unknown_facts(condition, facts(flag__c=3)) == ("flag.d",)
    assert unknown_facts(condition, facts(flag__c=3, flag__d=0)) == ()
    assert fact_names(condition) == ("flag.a", "flag.b", "flag.c", "flag.d")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (
            {"host.platform": "cuda", "flag.tp_size": {"gt": 1}},
            "the platform is cuda and --tp-size is more than 1",
        ),
        ({"not": {"flag.disable_radix_cache": True}}, "--disable-radix-cache is not given"),
        ({"flag.disable_radix_cache": "absent"}, "--disable-radix-cache is not given"),
        ({"flag.tp_size": {"not_in": [1, 2]}}, "--tp-size is not 1 or 2"),
        ({"host.platform": ["cuda", "unknown-ok"]}, "the platform is cuda"),
        (
            {"capture.built": {"le": "$capture.held"}},
            '"built" of the message is at most "held" of the message',
        ),
        ({"release": ">=0.5.14"}, "the SGLang release is >=0.5.14"),
        ({"model.is_mla": True}, "the model is MLA"),
        ({"model.heads": {"multiple_of": "$flag.tp_size"}}, "the model's heads is a multiple of --tp-size"),
        (
            {"env.A": 1, "any": [{"flag.b": 2}, {"flag.c": 3, "flag.d": 4}]},
            "A is 1 and (--b is 2 or (--c is 3 and --d is 4))",
        ),
        (
            {"not": {"any": [{"flag.a": "present"}, {"flag.b": {"lt": 3}}]}},
            "--a is not given and --b is at least 3",
        ),
    ],
)
def test_conditions_are_said_in_words(written: Any, words: str) -> None:
    assert describe(parse_condition(written)) == words


@pytest.mark.parametrize(
    "written",
    [
        [], "text", {"any": []}, {"all": {"flag.a": 1}}, {"flag.a": []}, {"flag.a": {}},
        {"flag.a": {"in": 3}},
        {"flag.a": {"matches": "("}}, {"flag.a": {"multiple_of": 1.5}}, {"flag.a": "$nothing"}, {"flag.A": 1},
        {"release": "newest"}, {"release": ">=new"}, {"flag.a": ["unknown-ok"]}, {"flag.a": "unknown-ok"}, {"model.head": 1},
        {"host.driver": {"gt": "new"}}, {"flag.a": [None]}, {"flag.a": [[1]]},
    ],
)  # fmt: skip
def test_what_is_not_in_the_vocabulary_is_refused(written: Any) -> None:
    with pytest.raises(ConditionError):
        parse_condition(written)


def test_no_condition_always_holds() -> None:
    assert evaluate(ALWAYS, facts()) is True
    assert describe(ALWAYS) == "always"
    assert parse_condition(None) == parse_condition({}) == ALWAYS


# --- Kleene -----------------------------------------------------------------------------------------

NAMES = ("flag.a", "flag.b", "host.gpu.sm", "release")
VALUES = st.sampled_from([None, True, False, 0, 1, 64, "64", "0.5.13", "x", 2.5])
COMPARISONS = st.one_of(
    st.sampled_from([True, 1, "x", "64", "absent", "present", "$flag.b"]),
    st.lists(st.sampled_from([1, "x", "$flag.a", "absent"]), min_size=1, max_size=3),
    st.dictionaries(
        st.sampled_from(["gt", "ge", "lt", "le", "multiple_of", "divides", "eq", "ne"]),
        st.sampled_from([0, 1, 64, "$flag.b", "$host.gpu.sm"]),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([{"contains": "6"}, {"matches": "[0-9]"}, {"not_in": [1, "x"]}]),
)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(NAMES[:3]), COMPARISONS).map(lambda p: {p[0]: p[1]}),
    st.sampled_from(
        [{"release": ">=0.5.10"}, {"release": {"lt": "0.5.14"}}, {"release": ["0.5.13", "<0.5"]}]
    ),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda c: {"all": c}),
        st.lists(inner, min_size=1, max_size=3).map(lambda c: {"any": c}),
        inner.map(lambda c: {"not": c}),
    ),
    max_leaves=6,
).map(parse_condition)
KNOWN = st.dictionaries(st.sampled_from(NAMES), VALUES)


def negated(condition: Condition) -> Condition:
    return Condition("not", children=(condition,))


@settings(max_examples=300, deadline=None)
@given(TREES, KNOWN, KNOWN)
def test_an_answer_stays_when_more_becomes_known(condition: Condition, known: dict, more: dict) -> None:
    before = evaluate(condition, make_facts(known, Source.USER))
    after = evaluate(condition, make_facts({**more, **known}, Source.USER))
    assert before is None or after is before


@settings(max_examples=300, deadline=None)
@given(TREES, TREES, KNOWN)
def test_kleene_laws(a: Condition, b: Condition, known: dict) -> None:
    case = make_facts(known, Source.USER)

    def value(condition: Condition) -> bool | None:
        return evaluate(condition, case)

    both, either = Condition("all", children=(a, b)), Condition("any", children=(a, b))
    order = {False: 0, None: 1, True: 2}
    assert order[value(both)] == min(order[value(a)], order[value(b)])
    assert order[value(either)] == max(order[value(a)], order[value(b)])
    assert order[value(negated(a))] == 2 - order[value(a)]
    assert value(negated(both)) == value(Condition("any", children=(negated(a), negated(b))))


@settings(max_examples=300, deadline=None)
@given(TREES, KNOWN)
def test_unknown_facts_are_named_just_when_undecided(condition: Condition, known: dict) -> None:
    case = make_facts(known, Source.USER)
    undecided = evaluate(condition, case) is None
    assert bool(unknown_facts(condition, case)) is undecided
    assert set(unknown_facts(condition, case)) <= set(fact_names(condition))


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_conditions_survive_the_cache_and_have_words(condition: Condition) -> None:
    assert condition_in(json.loads(json.dumps(condition_out(condition)))) == condition
    assert describe(condition)
