"""A server that is started again and again, and a log that ends in the middle of one more launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import outcome, reading_from_text

REAL = Path(__file__).resolve().parents[1] / "data" / "real_logs"
FAILED = sorted(p.stem for p in REAL.glob("*.log") if not p.stem.startswith("ready"))
KNOWLEDGE = load_knowledge()


def report(text: str) -> Report:
    return diagnose(reading_from_text(text, KNOWLEDGE.literals), KNOWLEDGE)


def rule(told: Report) -> str | None:
    return told.diagnoses[0].rule if told.diagnoses else None


def real(name: str) -> list[str]:
    return (REAL / f"{name}.log").read_text(encoding="utf-8").rstrip("\n").split("\n")


@pytest.mark.parametrize("name", FAILED)
def test_a_log_that_ends_in_one_more_launch_tells_why_the_one_before_failed(name: str) -> None:
    lines = real(name)
    expected = rule(report("\n".join(lines)))
    for share in (0.3, 0.6, 0.9):
        told = report("\n".join([*lines, *lines[: int(len(lines) * share)]]))
        if told.outcome == "failed":
            assert rule(told) == expected
        else:  # it may get further than the one before: what that one died of is noted
            assert told.outcome == "unfinished"
            assert any(note.startswith("the launch before it failed (line ") for note in told.notes)
        loop = report("\n".join([*lines, *lines, *lines[: int(len(lines) * share)]]))
        assert (loop.outcome, rule(loop)) == ("failed", expected)


FRAMES = (
    "/x/sglang/launch_server.py:54: UserWarning: 'python -m sglang.launch_server' is still supported\n"
    "  warnings.warn(\n"
    "Traceback (most recent call last):\n"
    '  File "/x/sglang/launch_server.py", line {a}, in <module>\n    run_server(server_args)\n'
    '  File "/x/sglang/srt/server_args.py", line {b}, in __post_init__\n    self._check()\n'
)
COMMAND = "$ python -m sglang.launch_server --model-path /m --tp {tp}\n"


def test_what_the_end_cuts_short_is_noted() -> None:
    text = COMMAND.format(tp=2) + FRAMES.format(a=1, b=2) + "ValueError: no\n"
    reading = reading_from_text(text + FRAMES.format(a=1, b=2))
    assert outcome(reading) == "failed" and len(reading.attempts) == 1
    assert any("being started once more (from line 10)" in note for note in reading.notes)


@pytest.mark.parametrize(
    "last",
    [
        FRAMES.format(a=1, b=99),  # it failed elsewhere
        COMMAND.format(tp=4) + FRAMES.format(a=1, b=2),  # another launch
        FRAMES.format(a=1, b=2) + "ValueError: yes\n",  # it has its end
    ],
)
def test_another_failure_counts_by_itself(last: str) -> None:
    text = COMMAND.format(tp=2) + FRAMES.format(a=1, b=2) + "ValueError: no\n"
    reading = reading_from_text(text + last)
    assert len(reading.attempts) == 2
    assert not any("once more" in note for note in reading.notes)


def test_a_server_that_came_up_in_the_end_is_well() -> None:
    failed, ready = real("port_in_use"), real("ready_dense")
    told = report("\n".join([*failed, *failed, *ready]))
    assert told.outcome == "ready" and not told.diagnoses


def test_of_failures_that_take_turns_the_last_that_has_its_end_counts() -> None:
    one = COMMAND.format(tp=2) + FRAMES.format(a=1, b=2) + "ValueError: no\n"
    other = COMMAND.format(tp=2) + FRAMES.format(a=3, b=4) + "ValueError: yes\n"
    reading = reading_from_text(one + other + COMMAND.format(tp=2) + FRAMES.format(a=1, b=2))
    assert len(reading.attempts) == 2
    assert any("being started once more" in note for note in reading.notes)
