"""Trying edits on a command, as the interactive doctor does on every key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.trial import base_case, checked, switched, with_edits, with_text
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.reading import read_logs

SAMPLES = Path(__file__).resolve().parent.parent.parent / "sample_logs"
COMMAND = "python -m sglang.launch_server --model-path M --tp 2"
COMPOSE = """services:
  sglang:
    image: lmsysorg/sglang:v0.5.13
    command: python3 -m sglang.launch_server --model-path M --tp 2
"""


@pytest.fixture(scope="module")
def knowledge():
    return load_knowledge()


def test_the_command_of_a_log_is_edited_and_checked_without_looking_at_this_machine(knowledge) -> None:
    reading = read_logs([str(SAMPLES / "spec_no_buffer_with_radix.log")], knowledge.literals)
    report = diagnose(reading, knowledge, Given())
    case = base_case(reading, Given())
    assert case is not None and case.document is not None
    fix = report.diagnoses[0].fixes[0]
    trial = with_edits(case.document, fix.edits)
    assert trial.command == fix.command and trial.document is not None
    before = checked(case.document, case, Given(), knowledge)
    after = checked(trial.document, case, Given(), knowledge)
    rule = report.diagnoses[0].rule
    assert rule in {p.rule for p in before.problems} and rule not in {p.rule for p in after.problems}
    assert after.sglang_version == str(case.release)
    assert not any("not exist" in p.title.lower() for p in after.problems), "the log is another machine's"


def test_no_edits_leave_the_command_as_it_is() -> None:
    trial = with_edits(read_launch(COMMAND), ())
    assert trial.command == COMMAND and trial.diff is None and trial.problem is None


def test_a_file_keeps_its_form_and_the_diff_is_of_it() -> None:
    trial = with_edits(read_launch(COMPOSE, name="compose.yaml"), (Edit(EditOp.SET, "--tp-size", "4"),))
    assert (
        trial.diff is not None
        and "+    command: python3 -m sglang.launch_server --model-path M --tp 4" in trial.diff
    )
    assert trial.diff.startswith("--- a/compose.yaml")


def test_an_edit_that_this_form_cannot_hold_is_a_problem_in_words() -> None:
    trial = with_edits(read_launch(COMMAND), (Edit(EditOp.SHM_SIZE, "", "16g"),))
    assert trial.document is None and trial.command is None and "container" in (trial.problem or "")


def test_text_typed_by_hand_is_read_or_says_what_is_wrong() -> None:
    base = read_launch(COMMAND)
    good = with_text(base, COMMAND + " --port 3")
    assert good.document is not None and good.document.command.value("port") == ("3",)
    for bad in ("", "echo hello", "python -m sglang.launch_server --x 'open"):
        trial = with_text(base, bad)
        assert trial.document is None and trial.problem


def test_text_in_another_form_counts_too() -> None:
    trial = with_text(read_launch(COMPOSE, name="compose.yaml"), COMMAND)
    assert trial.document is not None and trial.document.command.value("tp_size") == ("2",)


_EDITS = st.builds(
    Edit,
    st.sampled_from([EditOp.SET, EditOp.ADD, EditOp.REMOVE, EditOp.ENV, EditOp.UNSET]),
    st.sampled_from(["--a", "--b", "A"]),
    st.sampled_from([None, "1", "2"]),
)


@given(st.lists(_EDITS, max_size=6))
def test_of_two_edits_of_one_thing_only_the_later_stays(edits: list[Edit]) -> None:
    on: tuple[Edit, ...] = ()
    for edit in edits:
        on = switched(on, edit, True)
        assert edit in on
    kinds = [(e.op in (EditOp.ENV, EditOp.UNSET), e.name) for e in on]
    assert len(kinds) == len(set(kinds))
    for edit in on:
        assert edit not in switched(on, edit, False)
