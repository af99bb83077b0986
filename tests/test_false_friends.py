"""Messages that look alike and need opposite remedies are told apart, through the public diagnosis.

Every launch of tests/false_friends is read as printed, as two transports carry it, from another rank, and for
each of its releases.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.reading import read_logs
from tests.false_friends import CLOCK, PAIRS, Side
from tests.log.wrap import TRANSPORTS, wrap

SIDES = [(p.name, which, side) for p in PAIRS for which, side in (("one", p.one), ("other", p.other))]
IDS = [f"{name} ({which})" for name, which, _ in SIDES]
CARRIED = tuple(t for t in TRANSPORTS if t not in ("plain", "supervisor"))


def log_of(side: Side, rank: str) -> list[str]:
    """The lines of the launch, its own rank first; a line of another rank begins with ``~RANK``."""
    out = [f"$ python -m sglang.launch_server {side.flags}"]
    for i, line in enumerate(side.lines):
        time = CLOCK.format(min(10 + i, 59))
        if line.startswith("@"):
            out.append(line[1:])
        elif line.startswith("!"):
            out.append(f"[{time}] {line[1:]}")
        elif line.startswith("~"):
            other, _, text = line[1:].partition(" ")
            out.append(f"[{time} {other}] {text}")
        else:
            out.append(f"[{time}{' ' + rank if rank else ''}] {line}")
    return out


def report_of(lines: list[str], transport: str, release: str, tmp_path: Path) -> Report:
    log = tmp_path / "server.log"
    log.write_bytes(wrap(lines, transport))
    knowledge = own_knowledge()
    return diagnose(read_logs([str(log)], knowledge.literals), knowledge, Given(release=release))


def check(side: Side, report: Report) -> None:
    if not side.root:
        assert [d.root.text for d in report.diagnoses] == []
        return
    assert report.diagnoses, "nothing was diagnosed"
    first = report.diagnoses[0]
    assert re.search(side.root, first.root.text), f"root line: {first.root.text}"
    assert first.rule is not None, first.title
    offered = [" ; ".join([f.title, *map(str, f.edits), *f.run]) for f in first.fixes]
    assert any(re.search(side.wanted, text) for text in offered), f"{first.rule}: {offered}"
    if side.never:
        for fix in first.fixes:
            changes = [str(e) for e in fix.edits] + list(fix.run)
            assert fix.safety == "manual" or not any(re.search(side.never, c) for c in changes), changes


def test_there_are_twenty_pairs_and_more() -> None:
    assert len(PAIRS) >= 20


@pytest.mark.parametrize(("name", "which", "side"), SIDES, ids=IDS)
def test_told_apart(name: str, which: str, side: Side, tmp_path: Path) -> None:
    for release in side.releases:
        check(side, report_of(log_of(side, "TP0"), "plain", release, tmp_path))


@pytest.mark.parametrize(("name", "which", "side"), SIDES, ids=IDS)
def test_told_apart_as_carried(name: str, which: str, side: Side, tmp_path: Path) -> None:
    chosen = random.Random(name + which)
    for transport in chosen.sample(CARRIED, 2):
        rank = chosen.choice(("", "TP3", "DP1 TP0 EP0"))
        check(side, report_of(log_of(side, rank), transport, side.releases[0], tmp_path))
