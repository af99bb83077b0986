"""Healthy logs stay healthy: whatever scary text running servers print, nothing is diagnosed.

A log whose name begins with ``unfinished_`` ends before the server is up; every other one is ready.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import read_logs
from tests.log.wrap import TRANSPORTS, wrap

LOGS = sorted((Path(__file__).parent / "healthy").glob("*.log"))
# these show the words of another program on every line, and with them another meaning
CARRIED = tuple(t for t in TRANSPORTS if t not in ("plain", "supervisor"))


def report_of(path: Path) -> Report:
    knowledge = load_knowledge()
    return diagnose(read_logs([str(path)], knowledge.literals), knowledge)


def check(report: Report, log: Path) -> None:
    said = [f"{d.rule or d.title}: {d.root.text[:120]}" for d in report.diagnoses]
    assert said == []
    assert report.outcome == ("unfinished" if log.stem.startswith("unfinished_") else "ready")


def test_there_are_logs_of_every_era() -> None:
    assert len(LOGS) >= 60


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.stem)
def test_as_printed(log: Path) -> None:
    check(report_of(log), log)


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.stem)
def test_as_carried(log: Path, tmp_path: Path) -> None:
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    for transport in random.Random(log.stem).sample(CARRIED, 2):
        carried = tmp_path / f"{transport}.log"
        carried.write_bytes(wrap(lines, transport))
        check(report_of(carried), log)
