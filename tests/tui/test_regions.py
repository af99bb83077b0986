"""The regions Fix, Launch, Host, Model and Knowledge by key and mouse, each in an application of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import made
import pytest
from made import BUFFER, NO_RADIX, NO_STRATEGY, SECRET, SPEC_V2, failed, with_chosen
from one_region import OneRegion
from playing import Played, died, ready, starting
from still import until
from textual.pilot import Pilot
from textual.widgets import Input

from mtpdoctor.diagnose.given import Given
from mtpdoctor.host.types import HostFacts, ProbeFailure
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.model.config import read_model
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.fix.command_text import CommandText
from mtpdoctor.tui.fix.completions import CompletionList
from mtpdoctor.tui.fix.confirm import LaunchConfirm
from mtpdoctor.tui.fix.editor import CommandEditor
from mtpdoctor.tui.fix.remedies import RemedyList
from mtpdoctor.tui.fix.verdict import VerdictLine
from mtpdoctor.tui.host import HostRegion
from mtpdoctor.tui.knowledge import KnowledgeRegion
from mtpdoctor.tui.knowledge.rules import RuleList
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.launch.tail import OutputTail
from mtpdoctor.tui.messages import (
    ChooseEdits,
    CopyText,
    EditCommand,
    LaunchCommand,
    LaunchEnded,
    OpenLog,
    ProbeAgain,
)
from mtpdoctor.tui.model import ModelRegion
from mtpdoctor.tui.session import Session
from mtpdoctor.watch.types import End, Output

MODELS = Path(__file__).resolve().parent.parent / "data" / "models"
SIZES = [(80, 22), (140, 38)]
Drive = Callable[[Pilot[None]], Awaitable[None]]


def drive(app: OneRegion, steps: Drive, size: tuple[int, int] = (80, 22)) -> None:
    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())


# -- Fix ---------------------------------------------------------------------------------------------------
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


# -- Launch ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", SIZES)
def test_a_launch_is_seen_from_its_start_to_its_end(size: tuple[int, int]) -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(ready())

    async def steps(pilot: Pilot[None]) -> None:
        assert "Nothing has been launched" in app.text()
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.generated is not None, "the events")
        await pilot.pause()
        shown = app.text()
        for said in (
            "Ready and generating",
            "123 tokens/s",
            "2.91",
            "GPU 1 121.0/140.0",
            "fired up",
            "overlap",
        ):
            assert said in shown, said
        assert "[bold red]no markup[/]" in shown
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "the end")
        assert played.asked == ["gently"] and app.of(LaunchEnded)[0].record.how is End.STOPPED

    drive(app, steps, size)


def test_of_a_flood_the_newest_lines_are_shown() -> None:
    app = OneRegion(LaunchRegion(), failed())
    flood = Output(0.5, tuple(f"line {i}" for i in range(3000)))

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, Played([*starting()[:1], flood]), None)
        await until(pilot, lambda: "line 2999" in app.text(), "the end of the flood")
        tail = region.query_one(OutputTail)
        assert len(tail.lines) < 300 and "2,800 lines more" in tail.lines[0].text
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "its end")

    drive(app, steps)


def test_ctrl_c_again_ends_it_hard() -> None:
    app = OneRegion(LaunchRegion(), failed())

    class Stubborn(Played):
        def end(self, hard: bool = False) -> None:
            self.asked.append("hard" if hard else "gently")
            if hard:
                self._end.set()

    played = Stubborn(starting())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.launched is not None, "the launch")
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "Ending it gently" in app.text() and region.running
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "the end")
        assert played.asked == ["gently", "hard"]

    drive(app, steps)


def test_one_that_is_left_running_is_not_ended() -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(ready())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.generated is not None, "the events")
        await pilot.press("b")
        await until(pilot, lambda: app.of(LaunchEnded), "the end of watching")
        assert app.of(LaunchEnded)[0].record.how is End.DETACHED

    drive(app, steps)
    assert played.asked == []


def test_the_history_lists_the_attempts_and_opens_their_logs() -> None:
    app = OneRegion(LaunchRegion(), with_chosen(failed(), BUFFER))

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, Played(died("/logs/one.log"), "/logs/one.log"), None)
        await until(pilot, lambda: app.of(LaunchEnded), "its death")
        assert "Died after" in app.text() and "exit code 1" in app.text()
        app.show(replace(app.session, history=(app.of(LaunchEnded)[0].record,)))
        await pilot.press("h")
        await pilot.pause()
        assert "extra_buffer" in app.text() and "weights" in app.text()
        await pilot.press("enter")
        await pilot.pause()
        assert app.of(OpenLog)[0].paths == ("/logs/one.log",)

    drive(app, steps, (140, 38))


def test_quitting_ends_the_launch() -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(starting())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.launched is not None, "the launch")

    drive(app, steps)
    assert played.asked == ["gently"]


# -- Host, Model, Knowledge --------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", SIZES)
def test_the_host_shows_gpus_processes_and_what_could_not_be_looked_at(size: tuple[int, int]) -> None:
    host = replace(made.host(), local=False, failures=(ProbeFailure("nvcc", "no answer in 1.7 s"),))
    app = OneRegion(HostRegion(), replace(failed(), host=host))

    async def steps(pilot: Pilot[None]) -> None:
        shown = app.text()
        for said in ("node7", "SM90", "18.4 of 139.8", "pid 4242", "[red]x[/]", "nvcc"):
            assert said in shown, said
        assert SECRET not in shown and "\x1b" not in shown
        await pilot.press("r")
        await pilot.pause()
        assert app.of(ProbeAgain)

    drive(app, steps, size)


def test_memory_is_followed_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from mtpdoctor.host import nvml
    from mtpdoctor.tui.host import region

    host = made.host()
    assert host.gpus is not None
    now = replace(host, gpus=(replace(host.gpus[0], free_gib=7.0), host.gpus[1]))
    monkeypatch.setattr(nvml, "gpus_here", lambda: now)
    monkeypatch.setattr(region, "EVERY", 0.05)
    app = OneRegion(HostRegion(), replace(failed(), host=host))

    async def steps(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "7.0 of 139.8" in app.text(), "the new figure")

    drive(app, steps)


def test_a_host_that_is_not_known_yet_says_so() -> None:
    app = OneRegion(HostRegion(), Session(Given()))

    async def steps(pilot: Pilot[None]) -> None:
        assert "being asked" in app.text()
        app.show(replace(app.session, host=HostFacts("none", (), name="laptop")))
        await pilot.pause()
        assert "laptop" in app.text() and "being asked" not in app.text()

    drive(app, steps)


@pytest.mark.parametrize("size", SIZES)
def test_the_model_shows_its_layers(size: tuple[int, int]) -> None:
    session = replace(failed(), model=read_model(str(MODELS / "Qwen3-Next-80B-A3B")))
    app = OneRegion(ModelRegion(), session)

    async def steps(pilot: Pilot[None]) -> None:
        for said in ("Qwen3NextForCausalLM", "48", "MTP", "KV heads"):
            assert said in app.text(), said
        await pilot.press("v")
        await pilot.pause()
        assert "Qwen3NextForCausalLM" in app.text()

    drive(app, steps, size)


def test_a_model_that_is_elsewhere_says_what_to_give() -> None:
    app = OneRegion(ModelRegion(), failed())

    async def steps(pilot: Pilot[None]) -> None:
        assert "/models/Qwen3-Next" in app.text() and "--model" in app.text()
        app.show(Session(Given()))
        await pilot.pause()
        assert "No model is known yet" in app.text()

    drive(app, steps)


@pytest.mark.parametrize("size", SIZES)
def test_rules_are_browsed_searched_and_read(size: tuple[int, int]) -> None:
    knowledge = load_knowledge()
    app = OneRegion(KnowledgeRegion(), replace(failed(), knowledge=knowledge))

    async def steps(pilot: Pilot[None]) -> None:
        assert f"{len(knowledge)} rules" in app.text()
        await pilot.press("slash")
        await pilot.press(*"role:hang nccl first", "enter")
        await pilot.pause()
        assert "1 hang" in app.text() and "first-collective" in app.text()
        await pilot.press("c")
        await pilot.pause()
        assert "What speaks for it" in app.of(CopyText)[0].text
        await pilot.press("escape", "slash")
        assert isinstance(app.focused, Input)
        await pilot.press(*"mamba radix", "enter")
        await pilot.pause()
        assert isinstance(app.focused, RuleList) and f"of {len(knowledge)} rules" in app.text()
        before = app.text()
        await pilot.press("down")
        await pilot.pause()
        assert app.text() != before, "another rule is shown"
        await pilot.press("c")
        await pilot.pause()
        assert "Remedies" in app.of(CopyText)[-1].text
        await pilot.press("escape")
        await pilot.pause()
        assert f"{len(knowledge)} rules" in app.text()

    drive(app, steps, size)


def test_rules_that_are_being_read_are_waited_for() -> None:
    app = OneRegion(KnowledgeRegion(), Session(Given()))

    async def steps(pilot: Pilot[None]) -> None:
        assert "being read" in app.text()
        app.show(failed())
        await pilot.pause()
        assert "being read" not in app.text()

    drive(app, steps)


def test_a_rule_that_is_asked_for_is_shown() -> None:
    knowledge = load_knowledge()
    app = OneRegion(KnowledgeRegion(), replace(failed(), knowledge=knowledge))

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"zzzz")
        await pilot.pause()
        assert "No rule holds all of this" in app.text()
        app.show(replace(app.session, rule="MTP0200"))
        await pilot.pause()
        assert "extra_buffer strategy on" in app.text() and "MTP0200" in app.text()

    drive(app, steps)


def test_what_is_posted_is_only_posted() -> None:
    """A region changes nothing itself: without an application that acts, all stays as it was."""
    app = OneRegion(FixRegion(), failed(), acting=False)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("down", "space")
        await pilot.pause()
        assert app.of(ChooseEdits) and app.session.chosen.edits == ()

    drive(app, steps)
