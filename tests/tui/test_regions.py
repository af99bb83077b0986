"""The regions Host, Model and Knowledge by key and mouse, each in an application of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made
import pytest
from made import SECRET, failed
from one_region import SIZES, OneRegion, drive
from still import until
from textual.pilot import Pilot
from textual.widgets import Input

from mtpdoctor.diagnose.given import Given
from mtpdoctor.host.types import HostFacts, ProbeFailure
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.model.config import read_model
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.host import HostRegion
from mtpdoctor.tui.knowledge import KnowledgeRegion
from mtpdoctor.tui.knowledge.rules import RuleList
from mtpdoctor.tui.messages import (
    ChooseEdits,
    CopyText,
    ProbeAgain,
)
from mtpdoctor.tui.model import ModelRegion
from mtpdoctor.tui.session import Session

MODELS = Path(__file__).resolve().parent.parent / "data" / "models"


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
        await pilot.press(*"role:hang first-collective", "enter")
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
