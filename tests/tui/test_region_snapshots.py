"""How the regions Fix, Launch, Host, Model and Knowledge look. Made-up sessions: the pictures change only with the regions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import made
import pytest
from made import BUFFER, SPEC_V2, checked, failed, problem, with_chosen
from one_region import OneRegion
from playing import Played, died, ready, starting
from still import until
from textual.pilot import Pilot

from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.types import ALWAYS, EditTemplate, Pattern, Remedy, Role, Rule, Safety
from mtpdoctor.log.types import Stage
from mtpdoctor.memory.types import Advice, Count, MemorySum, Term
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.release import ReleaseRange
from mtpdoctor.tui.fix import FixRegion
from mtpdoctor.tui.fix.editor import CommandEditor
from mtpdoctor.tui.host import HostRegion
from mtpdoctor.tui.knowledge import KnowledgeRegion
from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.launch import region as launch_region
from mtpdoctor.tui.model import ModelRegion
from mtpdoctor.tui.session import Session

SMALL, LARGE = (80, 24), (140, 40)
Before = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture
def fix_session() -> Session:
    lost = problem("The overlap scheduler is switched off", "degrades")
    return with_chosen(failed(), BUFFER, SPEC_V2, check=checked("accept", lost))


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (LARGE, "light")])
def test_fix(snap_compare: Any, fix_session: Session, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(OneRegion(FixRegion(), fix_session, theme=theme), terminal_size=size)


def test_fix_as_a_diff_of_a_file(snap_compare: Any) -> None:
    session = with_chosen(failed(made.COMPOSE, "compose.yaml"), BUFFER, check=checked("accept"))
    assert snap_compare(OneRegion(FixRegion(), session), terminal_size=SMALL)


def test_fix_in_high_contrast_would_not_start(snap_compare: Any) -> None:
    session = with_chosen(failed(), BUFFER, check=checked("reject", problem("Too little memory is left")))
    assert snap_compare(OneRegion(FixRegion(), session, theme="high-contrast"), terminal_size=SMALL)


def test_fix_with_nothing_to_fix(snap_compare: Any) -> None:
    assert snap_compare(OneRegion(FixRegion(), Session(Given())), terminal_size=SMALL)


def test_editing_with_the_list_open(
    snap_compare: Any, fix_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommandEditor, "checking", False)
    app = OneRegion(FixRegion(), fix_session)

    async def before(pilot: Pilot[None]) -> None:
        await pilot.press("i")
        await pilot.pause()
        assert isinstance(app.screen, CommandEditor)
        await pilot.press("space", *"--max-mam", "down")
        await pilot.pause()

    assert snap_compare(app, run_before=before, terminal_size=SMALL)


def launched(monkeypatch: pytest.MonkeyPatch, events: list, now: float) -> tuple[OneRegion, Before]:
    """A launch whose clock stands still at ``now``."""
    app = OneRegion(LaunchRegion(), failed())
    monkeypatch.setattr(launch_region, "clock", lambda: now if app.is_running else 0.0)

    async def before(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, Played(events), None)
        region._began = 0.0
        await until(pilot, lambda: region.state.at >= events[-1].at, "the last event")
        await pilot.pause()

    return app, before


@pytest.mark.parametrize(
    ("events", "now", "size"),
    [(starting(), 12.5, SMALL), (ready(), 44.0, LARGE), (died("/logs/one.log"), 13.5, SMALL)],
    ids=["starting", "ready", "died"],
)
def test_launch(
    snap_compare: Any, monkeypatch: pytest.MonkeyPatch, events: list, now: float, size: tuple[int, int]
) -> None:
    app, before = launched(monkeypatch, events, now)
    assert snap_compare(app, run_before=before, terminal_size=size)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_host(snap_compare: Any, size: tuple[int, int]) -> None:
    host = replace(made.host(), local=False)
    assert snap_compare(OneRegion(HostRegion(), replace(failed(), host=host)), terminal_size=size)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (LARGE, "light")])
def test_model(snap_compare: Any, size: tuple[int, int], theme: str) -> None:
    model = ModelFacts(
        "/models/Qwen3-Next",
        "Qwen3NextForCausalLM",
        "qwen3_next",
        layers=8,
        hidden_size=2048,
        heads=16,
        kv_heads=2,
        head_dim=256,
        experts=512,
        mtp_layers=1,
        is_hybrid=True,
        linear_kind="gdn",
        layer_kinds=("linear", "linear", "linear", "full") * 2,
        problems=("the shard model-00002-of-00003.safetensors is missing",),
    )
    memory = MemorySum(
        rank="each GPU",
        total_gib=139.8,
        free_gib=138.9,
        terms=(
            Term("weights", 37.9, "151.5 GiB over 4 ranks", 37.8),
            Term("KV pool", 80.0, "2 layers x 1 KV head x 256 x 2 x bf16"),
            Term("graph capture", 2.5, "batches up to 160"),
        ),
        counts=(Count("KV tokens", 1_000_000, "what the pool holds"),),
        fits=False,
        left_gib=-1.5,
        advice=(Advice("mem_fraction_static", "lower", 0.85, "the graphs need room"),),
    )
    session = replace(failed(), model=model, memory=memory)
    assert snap_compare(OneRegion(ModelRegion(), session, theme=theme), terminal_size=size)


def rule(number: int, title: str, role: Role = Role.CAUSE) -> Rule:
    return Rule(
        id=f"MTP{number:04}",
        title=title,
        role=role,
        stage=Stage.SERVER_ARGS,
        source="sglang",
        evidence="confirmed",
        confidence=0.95,
        releases=ReleaseRange.parse(">=0.5.10"),
        match=(Pattern(r"not compatible with \[radix\] cache (?P<n>\d+)", "not compatible with"),),
        requires=(),
        unless=(),
        when=ALWAYS,
        predicts=None,
        severity="fatal",
        generic=False,
        explains=(),
        root="match",
        cause="The strategy keeps no state for cached prefixes.",
        misleading="that speculation is not supported for the model",
        remedies=(
            Remedy(
                "Use extra_buffer",
                Safety.SAFE,
                "keeps speculation",
                (EditTemplate("set", "--mamba-scheduler-strategy", "extra_buffer"),),
            ),
        ),
        refs=("https://example.org/pull/1",),
        families=(),
        examples={"bad": ({"log": "ValueError: not compatible with [radix] cache 1\n"},)},
        origin="x.yaml:1",
    )


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_knowledge(snap_compare: Any, size: tuple[int, int]) -> None:
    rules = [
        rule(1, "Speculation with the prefix cache needs the extra_buffer strategy on hybrid models"),
        rule(2, "A child process told the server to stop", Role.CONSEQUENCE),
        rule(3, "Overlap is off", Role.DEGRADES),
    ]
    session = replace(failed(), knowledge=Knowledge.of(rules))
    assert snap_compare(OneRegion(KnowledgeRegion(), session), terminal_size=size)
