"""Healthy logs stay healthy: whatever scary text running servers print, nothing is diagnosed.

A log whose name begins with ``unfinished_`` ends before the server is up; every other one is ready.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.reading import read_logs
from tests.log.wrap import TRANSPORTS, wrap

LOGS = sorted((Path(__file__).parent / "healthy").glob("*.log"))
# What works there, but not as wanted, as the log shows. Every other finding on a healthy log is a false one.
FINDINGS = {
    "0514_ngram_vlm": {"MTP0054"},
    "046post5_moe_a100_tp2_retract": {"MTP0070", "MTP0081", "MTP0086"},
    "0523_retract_and_stop": {"MTP0086"},
    "053_hybrid_gdn_h100_tp4": {"MTP0051"},
    "054_deepep_dp_attention_h200": {"MTP0083"},
    "054post1_scanners_and_bad_requests": {"MTP0092"},
    "055_pd_decode_prefill_lost_and_back": {"MTP0072"},
    "055post3_hicache_page_misses": {"MTP0091"},
    "056post2_eagle3_h100": {"MTP0054", "MTP0055"},
    "058_piecewise_off": {"MTP0073"},
    "059_pp2": {"MTP0054"},
    "ready_dense": {"MTP0073", "MTP0075", "MTP0076"},
    "ready_mtp_accept_len_1": {
        *("MTP0050", "MTP0055", "MTP0058", "MTP0070", "MTP0073", "MTP0075", "MTP0076"),
    },
    "unfinished_0513_warnings_then_cut": {"MTP0081"},
}
# these show the words of another program on every line, and with them another meaning
CARRIED = tuple(t for t in TRANSPORTS if t not in ("plain", "supervisor"))


def report_of(path: Path) -> Report:
    knowledge = own_knowledge()
    return diagnose(read_logs([str(path)], knowledge.literals), knowledge, brief=True)


def check(report: Report, log: Path) -> None:
    said = [f"{d.rule or d.title}: {d.root.text[:120]}" for d in report.diagnoses]
    assert said == []
    assert {f.rule for f in report.findings} == FINDINGS.get(log.stem, set())
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
