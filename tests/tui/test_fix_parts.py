"""What the Fix region offers and says, without a screen."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import (
    BUFFER,
    NO_RADIX,
    NO_STRATEGY,
    SECRET,
    SPEC_V2,
    checked,
    failed,
    healthy,
    problem,
    with_chosen,
)

from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Finding
from mtpdoctor.launch.document import read_launch
from mtpdoctor.tui.fix.command_view import command_content, diff_content, to_copy
from mtpdoctor.tui.fix.editor import editable_text
from mtpdoctor.tui.fix.hiding import hide
from mtpdoctor.tui.fix.offers import (
    OFF,
    ON,
    PARTLY,
    first_choice,
    offers_of,
    rows_of,
    state_of,
    with_offer,
)
from mtpdoctor.tui.fix.plan_words import plan_words
from mtpdoctor.tui.fix.trying import Trying
from mtpdoctor.tui.fix.wording import check_verdict, empty_words, verdict_of, why_of
from mtpdoctor.tui.session import Chosen, Session


def test_every_remedy_stands_above_its_edits_and_commands() -> None:
    offers = offers_of(failed())
    rows = rows_of(offers)
    assert [(r.offer, r.edit, r.run is not None) for r in rows] == [
        (0, None, False),
        (0, BUFFER, False),
        (0, SPEC_V2, False),
        (1, None, False),
        (1, NO_RADIX, False),
        (1, NO_STRATEGY, False),
        (2, None, False),
        (2, None, True),
    ]


def test_choosing_a_remedy_switches_off_its_alternatives_and_again_itself() -> None:
    offers = offers_of(failed())
    first = with_offer(offers, 0, ())
    assert first == (BUFFER, SPEC_V2)
    second = with_offer(offers, 1, first)
    assert second == (NO_RADIX, NO_STRATEGY)
    assert with_offer(offers, 1, second) == ()
    assert [state_of(offers[0], e) for e in (first, (BUFFER,), second)] == [ON, PARTLY, OFF]


def test_remedies_of_another_problem_stay_on() -> None:
    session = failed()
    assert session.report is not None
    fixes = session.report.diagnoses[0].fixes
    findings = (
        Finding("MTP1", "one", made.ROOT, "", fixes[:1]),
        Finding("MTP2", "two", made.ROOT, "", fixes[1:2]),
    )
    offers = offers_of(healthy(findings))
    assert with_offer(offers, 1, with_offer(offers, 0, ())) == (SPEC_V2, NO_RADIX, NO_STRATEGY)


def test_only_what_is_safe_is_switched_on_unasked() -> None:
    session = failed()
    assert first_choice(offers_of(session)) == (BUFFER, SPEC_V2)
    assert session.report is not None
    risky = replace_fixes(session, session.report.diagnoses[0].fixes[1:])
    assert first_choice(offers_of(risky)) == ()


def replace_fixes(session: Session, fixes: tuple) -> Session:
    from mtpdoctor.records import replace as changed

    assert session.report is not None
    diagnosis = changed(session.report.diagnoses[0], fixes=fixes)
    return replace(session, report=changed(session.report, diagnoses=(diagnosis,)))


def test_without_a_log_the_check_offers_its_fixes() -> None:
    base = read_launch(made.COMMAND)
    remedy = made.fix("Less", "safe", (NO_RADIX,), base)
    session = Session(
        Given(document=base), base=base, check=checked("reject", problem("too much", fixes=(remedy,)))
    )
    assert [o.fix for o in offers_of(session)] == [remedy]


@pytest.mark.parametrize(
    ("check", "kind", "says"),
    [
        (checked("accept"), "good", "Would start"),
        (checked("reject", problem("No such flag")), "bad", "No such flag (MTP9999)"),
        (
            checked("unknown", problem("Perhaps", certain=False, unknown=("host.gpu.sm",))),
            "open",
            "SM number",
        ),
    ],
)
def test_the_verdict_of_a_check_in_one_line(check, kind: str, says: str) -> None:
    verdict = check_verdict(check)
    assert verdict.kind == kind and says in verdict.head


def test_what_is_silently_lost_goes_with_the_verdict() -> None:
    verdict = check_verdict(checked("accept", problem("No overlap", "degrades")))
    assert verdict.points == ("but: No overlap (MTP9999)",)


def test_the_verdict_of_a_session_follows_what_is_known() -> None:
    session = failed()
    assert verdict_of(session).kind == "none" and "command that failed" in verdict_of(session).head
    asked = Session(Given(), base=session.base, check=checked("reject", problem("No such flag")))
    assert "No such flag" in verdict_of(asked).head, "without a log, the check of the command as it is"
    assert verdict_of(with_chosen(session, BUFFER)).kind == "busy"
    assert verdict_of(with_chosen(session, BUFFER, check=checked())).kind == "good"
    broken = replace(session, chosen=Chosen((), None, problem="no container here"))
    assert verdict_of(broken).kind == "bad" and "no container here" in verdict_of(broken).head


def test_the_reason_of_a_remedys_safety_is_said() -> None:
    offers = offers_of(failed())
    assert why_of(offers[1])[0][0] == "Risky"
    assert ("Risk", "repeated prefixes are computed again for every request") in why_of(offers[1])
    assert not any(label == "Proof" for label, _ in why_of(offers[2]))


def test_the_command_is_shown_masked_and_what_is_new_in_it_marked() -> None:
    session = with_chosen(failed(), BUFFER, SPEC_V2)
    shown = command_content(session, 80)
    assert SECRET not in shown.plain and "<hidden>" in shown.plain
    marked = {shown.plain[s.start : s.end] for s in shown.spans}
    assert {"--mamba-scheduler-strategy extra_buffer", "SGLANG_ENABLE_SPEC_V2=1"} <= marked


def test_what_is_taken_out_is_said_below_the_command() -> None:
    shown = command_content(with_chosen(failed(), NO_STRATEGY), 80).plain
    assert "taken out: --mamba-scheduler-strategy no_buffer" in shown


def test_the_diff_is_in_the_form_of_the_file() -> None:
    session = with_chosen(failed(made.COMPOSE, "compose.yaml"), BUFFER)
    shown = diff_content(session).plain
    assert (
        shown.startswith("--- a/compose.yaml") and "\n+      --mamba-scheduler-strategy extra_buffer" in shown
    )
    assert SECRET not in shown


def test_the_diff_of_one_line_is_flag_by_flag() -> None:
    shown = diff_content(with_chosen(failed(), BUFFER)).plain
    assert shown == "- --mamba-scheduler-strategy no_buffer\n+ --mamba-scheduler-strategy extra_buffer"


def test_what_is_copied_can_be_pasted_or_given_to_patch(tmp_path: Path) -> None:
    session = with_chosen(failed(), BUFFER)
    assert to_copy(session, False) == (session.chosen.command, "the command")
    assert to_copy(session, True) == to_copy(session, False), "a one-line command is pasted whole"
    plain = failed()
    assert plain.base is not None and to_copy(plain, False) == (plain.base.text, "the command")
    assert to_copy(Session(Given()), False) is None
    file = with_chosen(failed(made.COMPOSE, "compose.yaml"), BUFFER)
    copied = to_copy(file, True)
    assert copied is not None and file.chosen.document is not None
    (tmp_path / "compose.yaml").write_text(made.COMPOSE)
    patched = subprocess.run(
        ["git", "apply", "-"], input=copied[0], text=True, cwd=tmp_path, capture_output=True, check=False
    )
    assert patched.returncode == 0, patched.stderr
    assert (tmp_path / "compose.yaml").read_text() == file.chosen.document.text


def test_a_one_line_command_is_edited_flag_by_flag_and_a_file_as_it_stands() -> None:
    lines = editable_text(failed()).split("\n")
    assert lines[0] == "python -m sglang.launch_server \\" and "  --tp 4 \\" in lines
    assert editable_text(failed(made.COMPOSE, "compose.yaml")) == made.COMPOSE
    assert "extra_buffer" in editable_text(with_chosen(failed(), BUFFER))


def test_secrets_are_words_while_a_command_is_edited_and_come_back_afterwards() -> None:
    text = f"HF_TOKEN=hf_abcdefghij0123456789 python -m sglang.launch_server --api-key {SECRET} --admin-api-key x1y2"
    hidden = hide(text)
    assert hidden.text == (
        "HF_TOKEN=<hidden> python -m sglang.launch_server --api-key <hidden-2> --admin-api-key <hidden-3>"
    )
    assert hidden.revealed(hidden.text) == text
    edited = hidden.text.replace("HF_TOKEN=<hidden> ", "") + " --port 1"
    assert hidden.revealed(edited) == text.partition(" ")[2] + " --port 1"
    assert SECRET not in repr(hidden)


def test_a_mask_that_was_pasted_stays() -> None:
    text = f"sglang serve --api-key <hidden> --admin-api-key {SECRET}"
    hidden = hide(text)
    assert SECRET not in hidden.text and hidden.revealed(hidden.text) == text


@given(
    st.lists(
        st.sampled_from(
            ["--api-key k3yk3yk3y1", "--port 1", "HF_TOKEN=hf_abcdefghijklmnop1", "<hidden>", "a\n"]
        ),
        max_size=6,
    ).map(" ".join)
)
def test_hiding_is_undone_by_revealing(text: str) -> None:
    hidden = hide(text)
    assert hidden.revealed(hidden.text) == text
    assert "k3yk3yk3y1" not in hidden.text and "hf_abc" not in hidden.text


def test_every_empty_state_says_what_to_do() -> None:
    sessions = [
        Session(Given()),
        healthy(),
        replace_fixes(failed(), ()),
        Session(Given(), base=read_launch(made.COMMAND)),
        Session(Given(), base=read_launch(made.COMMAND), check=checked("reject")),
        Session(Given(), base=read_launch(made.COMMAND), check=checked("accept")),
    ]
    said = [empty_words(s) for s in sessions]
    assert len(set(said)) >= 5 and all(said)


def test_what_would_be_run_is_said_masked_or_why_it_cannot() -> None:
    session = failed()
    words = plan_words(session, "python -m sglang.launch_server --model-path M --api-key " + SECRET)
    assert words.problem is None and "--api-key" in words.command and SECRET not in words.command
    assert "PYTHONUNBUFFERED=1" in words.sets or not words.sets
    container = failed(made.COMPOSE, "compose.yaml")
    from mtpdoctor.launch.render import command_line

    assert container.base is not None
    words = plan_words(container, command_line(container.base.command))
    assert words.problem is not None and "docker" in words.problem
    assert plan_words(session, "echo nothing").problem


def test_a_half_typed_command_is_tried() -> None:
    session = failed()
    trying = Trying(session)
    assert trying.verdict("python -m").kind == "bad"
    assert trying.verdict(made.COMMAND + " --no-such-flag").kind == "bad"
    assert trying.verdict(made.COMMAND).kind in ("good", "open", "bad")


def test_while_a_log_is_read_and_where_it_cannot_be_the_page_says_so() -> None:
    reading = Session(Given(), logs=("server.log",))
    assert "being read" in empty_words(reading)
    assert "could not be diagnosed" in empty_words(replace(reading, errors=("it is binary data",)))
