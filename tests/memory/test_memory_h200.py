"""What the sum says before a launch, against what the launch printed on a real H200."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memory_sums import H200, count, facts_of_log, host, model, sum_of, term

from mtpdoctor.memory.printed import read_printed

CASES = sorted(H200.glob("*.json"))
TOLERANCE = 0.05
ROUNDING = 0.012  # GiB: SGLang prints two digits, and the differences of two such


def described(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def predicted(path: Path) -> Any:
    case = described(path)
    ranks = int(case["gpu"].partition("x")[0])
    gib = case["driver_total_mib"] / 1024
    return sum_of(case["command"], case["sglang_version"], model(case["model"]), host(gib, count=ranks))


def near(value: float | None, printed: float) -> bool:
    return value is not None and abs(value - printed) <= max(TOLERANCE * abs(printed), ROUNDING)


def test_there_are_launches_of_both_tiny_models_under_eight_settings_each() -> None:
    names = [described(path)["model"] for path in CASES]
    assert names.count("Qwen3-tiny") >= 7
    assert names.count("Qwen3.5-tiny") >= 7
    assert len(set(names)) >= 5


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_predicted_is_what_was_printed(path: Path) -> None:
    found = predicted(path)
    facts = facts_of_log(path.with_suffix(".log"))
    printed = read_printed(facts)
    assert printed.before is not None and printed.weights is not None
    assert near(found.numbers["before_gib"], printed.before)
    assert near(term(found, "weights"), printed.weights)
    assert found.numbers["fraction"] == pytest.approx(facts.look("arg.mem_fraction_static"), abs=0.001)
    if printed.tokens is not None:
        assert near(count(found, "KV tokens"), printed.tokens)
    if printed.slots is not None:
        assert near(count(found, "state slots"), printed.slots)
    if printed.requests is not None:
        assert near(count(found, "requests at once"), printed.requests)
    if printed.kv is not None:
        assert near(term(found, "KV pool"), printed.kv)
    if printed.draft_kv is not None:
        assert near(term(found, "draft KV pool"), printed.draft_kv)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_available_memory_after_the_pools(path: Path) -> None:
    found = predicted(path)
    printed = read_printed(facts_of_log(path.with_suffix(".log")))
    if printed.pool is None:
        return
    inside = sum(term(found, n) for n in ("weights", "KV pool", "linear-attention state", "index tables"))
    assert near(found.numbers["before_gib"] - inside, printed.pool)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_fits_says_how_it_ended(path: Path) -> None:
    found = predicted(path)
    assert found.fits is (described(path)["outcome"] == "ready")
    assert bool(found.advice) is (not found.fits)


def test_the_two_that_failed_move_the_fraction_in_opposite_directions() -> None:
    low = predicted(H200 / "qwen35_122b_nextn_tp2.json")
    assert low.trouble == "fraction_low"
    assert (low.advice[0].option, low.advice[0].direction) == ("mem_fraction_static", "raise")
    assert 0.837 <= float(low.advice[0].value or 0) <= 0.95
    high = predicted(H200 / "h_nextn_default.json")
    assert high.trouble == "fraction_high"
    assert (high.advice[0].option, high.advice[0].direction) == ("mem_fraction_static", "lower")
    assert 0.5 <= float(high.advice[0].value or 0) <= 0.72
