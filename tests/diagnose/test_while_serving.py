"""A server that is ready and cannot do its work: no failed launch, but not silence either."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

START = """\
[2026-01-01 00:00:01] server_args=ServerArgs(model_path='/m', port=30000, disaggregation_mode='decode')
[2026-01-01 00:00:02 TP0] Load weight begin. avail mem=70.00 GB
"""
READY = """\
[2026-01-01 00:00:08] INFO:     Started server process [1]
[2026-01-01 00:00:09] The server is fired up and ready to roll!
"""
LOST = "[2026-01-01 00:00:12 TP0] Could not fetch prefill parallel info from bootstrap_addr: 10.0.0.1:8998\n"


def said(text: str) -> Report:
    knowledge = load_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals), knowledge)


def test_a_decode_server_that_finds_no_prefill_server() -> None:
    report = said(START + READY + LOST)
    assert report.outcome == "ready" and not report.diagnoses
    assert [(f.rule, f.line.number) for f in report.findings] == [("MTP1674", 5)]
    assert report.findings[0].fixes


SERVED = '[2026-01-01 00:00:20] INFO:     10.0.0.9:13 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


@pytest.mark.parametrize("log", [START + READY, START + LOST + READY, START + READY + LOST + SERVED])
def test_what_the_launch_came_past_is_no_finding(log: str) -> None:
    assert said(log).outcome == "ready" and not said(log).findings
