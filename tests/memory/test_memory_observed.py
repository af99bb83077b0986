"""What is read off a log about memory."""

from __future__ import annotations

import pytest
from memory_sums import DATA, H200, facts_of_log

from mtpdoctor.memory.printed import read_printed


def test_everything_that_a_hybrid_with_a_draft_prints() -> None:
    seen = read_printed(facts_of_log(H200 / "qwen35_27b_nextn.log"))
    assert (seen.before, seen.after, seen.weights, seen.pool) == (139.13, 88.07, 51.05, 25.39)
    assert (seen.slots, seen.tokens, seen.requests) == (113, 541353, 22)
    assert seen.kv == pytest.approx(33.04)
    assert seen.state == pytest.approx(0.31 + 16.03)
    assert seen.spec_state == pytest.approx(12.94 + 0.25)
    assert seen.draft_weights == 5.53
    assert seen.draft_kv == pytest.approx(2.06)
    assert seen.graphs == 0.42


def test_another_rank_is_not_the_draft() -> None:
    seen = read_printed(facts_of_log(DATA / "h200_logs" / "tp2_ready_mtp.log"))
    assert seen.draft_weights == 0.02
    assert seen.draft_kv == pytest.approx(3.42)
    plain = read_printed(facts_of_log(DATA / "h200_logs" / "dpa_ready.log"))
    assert plain.draft_weights is None
    assert plain.draft_kv is None


def test_an_out_of_memory_error_tells_who_holds_the_rest() -> None:
    seen = read_printed(facts_of_log(DATA / "h200_logs" / "hog_oom_high.log"))
    assert seen.wanted == pytest.approx(50 / 1024, abs=1e-4)
    assert seen.free_then == pytest.approx(47.5 / 1024, abs=1e-4)
    assert seen.others == pytest.approx(25.72 + 100.95)


def test_the_state_that_found_no_room() -> None:
    seen = read_printed(facts_of_log(DATA / "h200_logs" / "hybrid_tiny_fraction.log"))
    assert (seen.rest, seen.slot_mib) == (-0.25, 6.14)
