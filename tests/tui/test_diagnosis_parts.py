"""What the Diagnosis region says of each outcome, and where its rows lead."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from still import FAILED, HEALTHY, SAMPLES, app_of, screen_text, settled
from test_screens import STOPPED, UNKNOWN

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import read_logs, reading_from_text
from mtpdoctor.records import replace
from mtpdoctor.tui.diagnosis.page import DiagnosisPage
from mtpdoctor.tui.diagnosis.parts import Choice, Go, Place, Rule, Said, parts_of, parts_of_check
from mtpdoctor.tui.diagnosis.widgets import Leads
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.log.marks import Kind, marks_of, ranks_of


def report_of(text: str) -> Report:
    knowledge = load_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals, "server.log"), knowledge)


def said(report: Report, diagnosis: int = 0) -> str:
    parts = parts_of(report, diagnosis)
    return "\n".join(f"{p.head} {p.text}" if isinstance(p, Said) else p.text for p in parts)  # type: ignore[union-attr]


def test_a_failure_has_cause_evidence_reasons_and_ways_on() -> None:
    knowledge = load_knowledge()
    report = diagnose(read_logs([FAILED], knowledge.literals), knowledge)
    parts = list(parts_of(report))
    assert next(p for p in parts if isinstance(p, Place) and p.root).number == 25
    heads = [p.head for p in parts if isinstance(p, Said)]
    for head in ("MTP0200", "Why", "Not the cause", "Fix 1", "See"):
        assert head in heads
    assert any(isinstance(p, Rule) and p.rule == "MTP0200" for p in parts)
    assert any(isinstance(p, Go) and p.region == "fix" for p in parts)


def test_a_log_that_just_stops_leads_to_its_last_sign_of_life_and_tells_what_to_look_at() -> None:
    report = report_of(STOPPED)
    parts = list(parts_of(report))
    assert next(p for p in parts if isinstance(p, Place)).number == 4
    text = said(report)
    assert "It may simply still be running" in text
    assert text.index("It may simply") < text.index("nodes that do not come") < text.index("nc -vz")
    assert any(isinstance(p, Go) and p.region == "log" for p in parts)


def test_outcomes_without_a_diagnosis_are_said_in_words() -> None:
    knowledge = load_knowledge()
    assert "Nothing to diagnose" in said(report_of(""))
    started = "[2026-01-31 12:00:00] server_args=ServerArgs(model_path='/m')\n[2026-01-31 12:00:03] Load weight begin. avail mem=78.10 GB\n"
    assert "neither an error nor a ready server" in said(report_of(started))
    ready = said(diagnose(read_logs([HEALTHY], knowledge.literals), knowledge))
    assert "was ready (line 81), and was then stopped" in ready and "Works, but not as wanted" in ready
    unknown = said(report_of(UNKNOWN))
    assert "Cause not known" in unknown and "WarpDriveError" in unknown and "Look next" in unknown


def test_another_cause_can_be_looked_at() -> None:
    first = report_of(UNKNOWN).diagnoses[0]
    report = replace(report_of(UNKNOWN), diagnoses=(first, replace(first, title="Another one")))
    choices = [p for p in parts_of(report, 1) if isinstance(p, Choice)]
    assert [c.chosen for c in choices] == [False, True]
    assert "Another one" in said(report, 1)
    assert said(report, 99) == said(report, 1), "an index that is gone is the last one"


def test_secrets_and_escapes_of_a_log_do_not_reach_the_page() -> None:
    text = UNKNOWN.replace("--tp 2", "--tp 2 --api-key hunter2hunter2").replace(
        "out of phase", "out of phase \x1b[31m hunter2hunter2 [b]x[/b]"
    )
    page = said(report_of(text))
    assert "hunter2" not in page and "\x1b" not in page
    assert "[b]x[/b]" in page


def test_what_a_command_without_a_log_lets_foresee() -> None:
    assert any(isinstance(p, Go) and p.region == "start" for p in parts_of_check(None, False))
    assert any("being checked" in p.text for p in parts_of_check(None, True) if isinstance(p, Said))


def test_marks_prefer_what_counts_more() -> None:
    knowledge = load_knowledge()
    reading = read_logs([str(SAMPLES / "scheduler_killed_sigkill.log")], knowledge.literals)
    report = diagnose(reading, knowledge)
    marks = marks_of(report, reading)[0]
    root = report.diagnoses[0].root.number
    assert marks[root].kind is Kind.ROOT
    for line in report.diagnoses[0].consequences:
        assert marks[line.number].kind in (Kind.CONSEQUENCE, Kind.EVIDENCE, Kind.FINDING, Kind.ROOT)
    assert any(m.kind is Kind.STAGE and m.label == "graph_capture" for m in marks.values())
    assert marks_of(None, None) == {} and ranks_of(None) == ()


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_rows_lead_by_key_and_by_mouse(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("2")
        await pilot.press("down")
        seen = {app.focused}
        rows = list(app.query(Leads))
        page = app.query_one(DiagnosisPage)
        for _ in range(300):
            before = app.focused, page.scroll_y
            page.action_step(1)
            for _ in range(40):  # turns of the loop until the step is done: cheaper than waiting for quiet
                await asyncio.sleep(0)
                if before != (app.focused, page.scroll_y):
                    break
            if isinstance(app.focused, Leads):
                seen.add(app.focused)
            if len(seen) == len(rows):
                break
        assert seen == set(rows), "every row is reached by going down"
        place = next(r for r in rows if isinstance(r.part, Place))
        place.focus()
        await pilot.press("enter")
        await settled(pilot)
        assert app.region == "log" and app.query_one(LogRegion).view.number == place.part.number
        await pilot.press("2")
        rule = next(r for r in rows if isinstance(r.part, Rule))
        rule.scroll_visible(animate=False)
        await pilot.pause()
        await pilot.click(rule)
        await settled(pilot)
        assert app.region == "knowledge" and app.session.rule == rule.part.rule
        assert rule.part.rule in screen_text(app)
