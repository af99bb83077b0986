"""Retries: safe and proven fixes only, an end in every case, never back and forth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standing import SAMPLES

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.watch.retry import Step, Stop, next_attempt
from mtpdoctor.watch.types import AttemptRecord, End

COMMAND = "python -m sglang.launch_server --model-path M --speculative-algorithm NEXTN"
LINE = Line(0, 1, 0, "", None, None, "ValueError: x", "ValueError: x")


def record(number: int = 1, **about: object) -> AttemptRecord:
    known = {
        "edits": (),
        "stage": Stage.SERVER_ARGS,
        "how": End.DIED,
        "rule": "MTP0007",
        "cause": "x",
        "seconds": 1.0,
        "log": "run.log",
    }
    return AttemptRecord(number=number, **{**known, **about})  # type: ignore[arg-type]


def fix(*edits: Edit, safety: str = "safe", verified: str = "rules", run: tuple[str, ...] = ()) -> Fix:
    return Fix("a fix", safety, "why", None, edits, run, None, verified)


def report(*fixes: Fix) -> Report:
    found = Diagnosis("MTP0007", "a cause", 0.9, "c", None, LINE, (), (), (), (), fixes)
    return Report("failed", "server_args", None, None, None, (found,), (), 1, ("run.log",))


def document() -> LaunchDocument:
    return read_launch(COMMAND)


EXTRA = Edit(EditOp.SET, "--mamba-scheduler-strategy", "extra_buffer")


def test_the_real_failure_of_the_seed_is_fixed_by_an_edit() -> None:
    text = (SAMPLES / "spec_no_buffer_with_radix.log").read_text()
    launch = read_launch(text.splitlines()[0].removeprefix("$ "))
    knowledge = load_knowledge()
    found = diagnose(reading_from_text(text, knowledge.literals), knowledge, Given(document=launch))
    step = next_attempt(found, [record(rule=found.diagnoses[0].rule)], launch, limit=1)
    assert isinstance(step, Step)
    assert "--mamba-scheduler-strategy extra_buffer" in step.document.text
    assert step.document.command.value("speculative_algorithm") == ("NEXTN",)
    again = [record(rule=found.diagnoses[0].rule), record(2, rule=found.diagnoses[0].rule)]
    assert isinstance(next_attempt(found, again, step.document, limit=5), Stop)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (fix(EXTRA, safety="risky"), "risky"),
        (fix(EXTRA, safety="manual"), "manual"),
        (fix(EXTRA, verified="none"), "not proven"),
        (fix(EXTRA, run=("pip install x",)), "outside the command"),
        (fix(), "outside the command"),
        (fix(Edit(EditOp.SET, "--speculative-algorithm", "NEXTN")), "changes nothing"),
    ],
)
def test_what_is_not_safe_and_proven_is_left_to_the_person(bad: Fix, why: str) -> None:
    stop = next_attempt(report(bad), [record()], document())
    assert isinstance(stop, Stop) and stop.hint and why in stop.hint
    step = next_attempt(report(bad, fix(EXTRA)), [record()], document())
    assert isinstance(step, Step) and step.edits == (EXTRA,)


def test_it_stops_when_it_gets_no_further() -> None:
    good = report(fix(EXTRA))
    other = {"rule": "MTP0009"}
    assert isinstance(next_attempt(good, [record(), record(2, **other)], document()), Step)
    same = next_attempt(good, [record(), record(2)], document())
    assert isinstance(same, Stop) and "same cause again" in same.reason
    back = next_attempt(good, [record(stage=Stage.WEIGHTS), record(2, **other)], document())
    assert isinstance(back, Stop) and "got only to server args" in back.reason
    unknown = [record(rule=None, cause="E: y"), record(2, rule=None, cause="E: y")]
    assert isinstance(next_attempt(good, unknown, document()), Stop)


def test_it_stops_when_used_up_or_not_a_death_or_not_diagnosed() -> None:
    good = report(fix(EXTRA))
    assert isinstance(next_attempt(good, [record(), record(2, rule="B")], document(), limit=1), Stop)
    assert isinstance(next_attempt(good, [record()], document(), limit=0), Stop)
    assert isinstance(next_attempt(None, [record()], document()), Stop)
    assert isinstance(next_attempt(replace_diagnoses(good), [record()], document()), Stop)
    for how in (End.STOPPED, End.DETACHED, End.REFUSED):
        assert isinstance(next_attempt(good, [record(how=how)], document()), Stop)


def replace_diagnoses(found: Report) -> Report:
    from mtpdoctor.records import replace as changed

    return changed(found, diagnoses=())


def test_nothing_is_edited_twice() -> None:
    history = [record(edits=()), record(2, rule="B", edits=(str(EXTRA),))]
    back = fix(Edit(EditOp.SET, "--mamba-scheduler-strategy", "no_buffer"))
    stop = next_attempt(report(back), history, document())
    assert isinstance(stop, Stop) and stop.hint and "edited before" in stop.hint
    env = Edit(EditOp.ENV, "SGLANG_ENABLE_SPEC_V2", "1")
    history = [record(), record(2, rule="B", edits=(str(env),))]
    unset = fix(Edit(EditOp.UNSET, "SGLANG_ENABLE_SPEC_V2"))
    assert isinstance(next_attempt(report(unset), history, document()), Stop)


NAMES = ("--tp-size", "--mem-fraction-static", "--page-size", "--chunked-prefill-size")
EDITS = st.builds(Edit, st.just(EditOp.SET), st.sampled_from(NAMES), st.sampled_from(["1", "2", "4"]))


@given(
    st.lists(
        st.tuples(st.sampled_from("ABCDEF"), st.sampled_from(list(Stage)), EDITS), min_size=12, max_size=20
    )
)
@settings(max_examples=60, deadline=None)
def test_whatever_fails_it_ends_and_no_launch_comes_twice(failures: list[tuple[str, Stage, Edit]]) -> None:
    launch, history, seen = document(), [], set()
    edits: tuple[str, ...] = ()
    for number, (rule, stage, edit) in enumerate(failures, 1):
        assert launch.text not in seen
        seen.add(launch.text)
        history.append(record(number, rule=rule, stage=stage, edits=edits))
        step = next_attempt(report(fix(edit)), history, launch, limit=100)
        if isinstance(step, Stop):
            return
        launch, edits = step.document, tuple(map(str, step.edits))
    pytest.fail("it never stopped")


def test_records_are_plain_data() -> None:
    assert replace(Stop("x"), hint="y").hint == "y"
