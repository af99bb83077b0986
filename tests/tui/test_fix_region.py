"""The region Fix by key and mouse, and editing the command by hand, in an application of their own."""

from __future__ import annotations

from dataclasses import replace

import made
import pytest
from made import BUFFER, NO_RADIX, NO_STRATEGY, SECRET, SPEC_V2, failed
from one_region import SIZES, OneRegion, drive
from still import until
from textual.pilot import Pilot

from mtpdoctor.diagnose.given import Given
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.fix.command_text import CommandText
from mtpdoctor.tui.fix.completions import CompletionList
from mtpdoctor.tui.fix.confirm import LaunchConfirm
from mtpdoctor.tui.fix.editor import CommandEditor
from mtpdoctor.tui.fix.remedies import RemedyList
from mtpdoctor.tui.fix.verdict import VerdictLine
from mtpdoctor.tui.messages import (
    CopyText,
    EditCommand,
    LaunchCommand,
)
from mtpdoctor.tui.session import Session


@pytest.mark.parametrize("size", SIZES)
def test_edits_are_switched_one_by_one_and_the_command_follows(size: tuple[int, int]) -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert app.session.chosen.edits == (BUFFER, SPEC_V2), "what is safe is on at first"
        await pilot.press("down", "down", "space")
        await pilot.pause()
        assert app.session.chosen.edits == (BUFFER,)
        assert "SGLANG_ENABLE_SPEC_V2" not in (app.session.chosen.command or "")
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.session.chosen.edits == (NO_RADIX, NO_STRATEGY), "another remedy takes its place"
        assert "--disable-radix-cache" in app.text() and "extra_buffer strategy" in app.text()
        await pilot.press("r")
        await pilot.pause()
        assert app.session.chosen.edits == ()

    drive(app, steps, size)


def test_the_mouse_switches_too() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.click(RemedyList, offset=(10, 3))
        await pilot.pause()
        assert app.session.chosen.edits == (NO_RADIX, NO_STRATEGY)

    drive(app, steps)


def test_what_is_copied_works_and_it_is_said_that_secrets_are_in_it() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("c")
        await pilot.pause()
        copied = app.of(CopyText)[-1]
        assert SECRET in copied.text and "secrets" in copied.what
        assert SECRET not in app.text() and "<hidden>" in app.text()

    drive(app, steps)


def test_a_command_to_type_elsewhere_is_copied_by_choosing_it() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.of(CopyText)[-1].text.startswith("pip install")

    drive(app, steps)


def test_text_of_a_log_is_never_markup() -> None:
    session = failed()
    assert session.report is not None
    title = "Use [bold red]this[/] [@click=app.quit]now[/]"
    from mtpdoctor.records import replace as changed

    diagnosis = session.report.diagnoses[0]
    fixes = (changed(diagnosis.fixes[0], title=title, why="[blink]why"),)
    report = changed(session.report, diagnoses=(changed(diagnosis, fixes=fixes, title=title),))
    app = OneRegion(FixRegion(), replace(session, report=report))

    async def steps(pilot: Pilot[None]) -> None:
        assert app.text().count("[@click=app.quit]") == 2 and "[blink]why" in app.text()

    drive(app, steps, (140, 38))


def test_the_diff_takes_the_place_of_the_command() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("d")
        await pilot.pause()
        assert "- --mamba-scheduler-strategy no_buffer" in app.text() and "Diff" in app.text()
        await pilot.press("d")
        await pilot.pause()
        assert "- --mamba-scheduler-strategy no_buffer" not in app.text()

    drive(app, steps)


def test_without_a_launch_nothing_can_be_done_and_it_is_said_what_to_do() -> None:
    app = OneRegion(FixRegion(), Session(Given()))

    async def steps(pilot: Pilot[None]) -> None:
        assert "Nothing to fix yet" in app.text()
        await pilot.press("c", "l", "i", "d", "r", "space")
        await pilot.pause()
        assert not app.of(LaunchCommand) and not app.of(CopyText)

    drive(app, steps)


def test_a_launch_needs_an_explicit_yes() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        for no in ("n", "escape", "enter"):  # "No" has the focus
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the question")
            await pilot.pause()
            assert "--mamba-scheduler-strategy extra_buffer" in app.text() and SECRET not in app.text()
            assert "SGLANG_ENABLE_SPEC_V2=1" in app.text()
            await pilot.press(no)
            await until(pilot, lambda: not isinstance(app.screen, LaunchConfirm), "the answer")
        await pilot.pause()
        assert not app.of(LaunchCommand)
        await pilot.press("l", "y")
        await pilot.pause()
        assert SECRET in app.of(LaunchCommand)[0].command, "what is launched is the real command"

    drive(app, steps)


def test_a_container_is_not_launched_from_here_and_it_is_said_how() -> None:
    app = OneRegion(FixRegion(), failed(made.COMPOSE, "compose.yaml"))

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LaunchConfirm), "the answer")
        await pilot.pause()
        assert "docker compose up" in app.text()
        await pilot.press("y")
        await pilot.pause()
        assert not app.of(LaunchCommand)

    drive(app, steps)


# -- editing by hand -----------------------------------------------------------------------------------------
def test_a_flag_is_completed_explained_and_used() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, CommandEditor), "the editor")
        area, offered = app.screen.query_one(CommandText), app.screen.query_one(CompletionList)
        assert SECRET not in app.text() and "--api-key <hidden>" in app.text()
        await pilot.press("space", *"--attention-b")
        await pilot.pause()
        assert offered.display and "--attention-backend" in app.text()
        await pilot.press("tab")
        await until(pilot, lambda: area.text.endswith("--attention-backend "), "the completion")
        await until(pilot, lambda: offered.display, "its choices")
        assert "triton" in app.text()
        await pilot.press(*"flashinf", "enter")
        await until(pilot, lambda: area.text.endswith("--attention-backend flashinfer"), "the choice")
        assert "Kernels for attention" in app.text()
        verdict = app.screen.query_one(VerdictLine)
        await until(pilot, lambda: "Checking" not in str(verdict.content), "the check")
        await pilot.press("ctrl+s")
        await pilot.pause()
        typed = app.of(EditCommand)[0].command
        assert "--attention-backend flashinfer" in typed and SECRET in typed
        assert app.session.chosen.by_hand and "edited by hand" in app.text()

    drive(app, steps, (100, 30))


def test_an_unknown_flag_is_marked_and_said_while_it_is_typed() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, CommandEditor), "the editor")
        area = app.screen.query_one(CommandText)
        await pilot.press("space", *"--hermes-nope", "space")
        await until(pilot, lambda: [m.kind for m in area.wrong] == ["unknown"], "the mark")
        verdict = app.screen.query_one(VerdictLine)
        await until(pilot, lambda: "Would not start" in str(verdict.content), "the verdict")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, CommandEditor), "leaving")
        assert not app.of(EditCommand)

    drive(app, steps, (100, 30))


def test_escape_closes_the_list_first_and_the_editor_then() -> None:
    app = OneRegion(FixRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, CommandEditor), "the editor")
        offered = app.screen.query_one(CompletionList)
        await pilot.press("space", *"--disable")
        await until(pilot, lambda: offered.display, "the list")
        await pilot.press("down", "escape")
        await pilot.pause()
        assert not offered.display and isinstance(app.screen, CommandEditor)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, CommandEditor), "leaving")

    drive(app, steps)
