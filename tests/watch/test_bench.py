"""Speculation against the plain server: what is left out, what is measured, what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standing import HTTP, answering

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.watch import ask, bench
from mtpdoctor.watch.bench import Arm, Measured, Plan, Spread, compare, judged, measure, without_speculation
from mtpdoctor.watch.target import Target

COMMAND = (
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path M --tp 4 --speculative-algorithm NEXTN "
    "--speculative-num-steps 3 --speculative-eagle-topk=1 --speculative-num-draft-tokens 4 --enable-multi-layer-eagle "
    "--mamba-scheduler-strategy extra_buffer --port 30000"
)
QUICK = Plan(max_tokens=16, repetitions=3, concurrencies=(1, 2), timeout_s=10)


def test_only_speculation_is_taken_out() -> None:
    plain = without_speculation(read_launch(COMMAND))
    kept = "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path M --tp 4"
    assert " ".join(plain.text.split()) == f"{kept} --mamba-scheduler-strategy extra_buffer --port 30000"
    with pytest.raises(UserError, match="nothing to compare"):
        without_speculation(plain)


def launcher(seen: list[str], **play: object):  # type: ignore[no-untyped-def]
    @contextmanager
    def launch(document: LaunchDocument) -> Iterator[Target]:
        seen.append(document.text)
        algorithm = document.command.value("speculative_algorithm")
        args = {"speculative_algorithm": algorithm[0]} if algorithm else {}
        with answering({"step_s": 0.002, **play}, **args) as target:
            yield target

    return launch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by what the server computes, and by nothing else: a busy machine changes no figure."""
    now = [0.0]

    def compute(seconds: float) -> None:
        now[0] += seconds

    watch = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(ask, "time", watch)
    monkeypatch.setattr(bench, "time", watch)
    monkeypatch.setattr(HTTP, "time", SimpleNamespace(sleep=compute))


def test_a_gain_is_measured_one_server_after_the_other(clock: None) -> None:
    seen: list[str] = []
    told: list[str] = []
    found = compare(read_launch(COMMAND), launcher(seen, accept=3.0), QUICK, told.append)
    assert len(seen) == 2 and "NEXTN" in seen[0] and "speculative" not in seen[1]
    assert [g.concurrency for g in found.gains] == [1, 2]
    assert all(g.least <= g.median <= g.most for g in found.gains)
    assert found.gains[0].median > 0
    assert found.speculating.accept_length == pytest.approx(3.0, abs=0.4)
    assert found.plain.accept_length is None
    assert found.same_answers == 1.0
    assert "measuring without speculation" in told
    text = "\n".join(found.lines())
    assert (
        "3 repetitions" in text
        and "16 tokens each" in text
        and "without" in text
        and "Acceptance length" in text
    )


def test_a_failing_request_is_an_error_for_people() -> None:
    with answering({"answers": "error"}) as target, pytest.raises(UserError, match="device-side assert"):
        measure(target, QUICK)
    with answering({"answers": "empty"}) as target, pytest.raises(UserError, match="no tokens"):
        measure(target, QUICK)


def arm(*speeds: float, text: str = "a", accept: float | None = None) -> Arm:
    spread = Spread.of(speeds)
    answers = tuple((text, (1, 2)) for _ in speeds)
    return Arm((Measured(1, spread, spread, answers),), accept, 0)


def test_ranges_that_overlap_are_called_noise() -> None:
    clear = judged(arm(130, 131, 132), arm(99, 100, 101), QUICK)
    assert clear.gains[0].certain and clear.gains[0].median == pytest.approx(0.31)
    assert not any("overlap" in line for line in clear.lines())
    noisy = judged(arm(90, 104, 110), arm(95, 100, 105), QUICK)
    assert not noisy.gains[0].certain and any("overlap" in line for line in noisy.lines())
    slower = judged(arm(70, 71), arm(100, 101), QUICK)
    assert slower.gains[0].certain and slower.gains[0].median < 0 and "-30%" in "\n".join(slower.lines())


def test_answers_that_differ_are_told() -> None:
    found = judged(arm(1, 1, text="a"), arm(1, 1, text="b"), QUICK)
    assert found.same_answers == 0 and any("0% of the answers" in line for line in found.lines())


@given(
    st.lists(st.floats(0.1, 1e5), min_size=1, max_size=6),
    st.lists(st.floats(0.1, 1e5), min_size=1, max_size=6),
)
def test_the_gain_lies_in_its_range(fast: list[float], slow: list[float]) -> None:
    count = min(len(fast), len(slow))
    gain = judged(arm(*fast[:count]), arm(*slow[:count]), QUICK).gains[0]
    assert gain.least - 1e-9 <= gain.median <= gain.most + 1e-9
