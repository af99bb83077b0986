"""What users send and models answer is not the server's own: a server that served every known failure as text is
healthy. And the healthy logs are of many releases, models, hosts and transports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import read_logs
from tests.log.wrap import TRANSPORTS, wrap

TESTS = Path(__file__).parent
HEALTHY = sorted((TESTS / "healthy").glob("*.log"))
RECORDED = [
    path.with_suffix(".log")
    for path in sorted((TESTS / "data").glob("h200_*/*.json"))
    if json.loads(path.read_text(encoding="utf-8"))["outcome"] == "ready"
]
STARTS = ("0523_retract_and_stop", "0510_hybrid_rtx_pro_6000", "046_dense_a100_too_long_input")


def started(name: str) -> list[str]:
    """The lines of a healthy log up to the one that says ready."""
    lines = (TESTS / "healthy" / f"{name}.log").read_text(encoding="utf-8").split("\n")
    return lines[: next(i for i, line in enumerate(lines) if "The server is fired up" in line) + 1]


def known_failures() -> list[str]:
    return [e["log"].rstrip("\n") for rule in load_knowledge().rules for e in rule.examples.get("bad", ())]


def served(texts: list[str]) -> Iterator[str]:
    """Hours of serving with requests logged (``--log-requests``): texts in prompts and answers."""
    for i, text in enumerate(texts):
        time = f"2026-06-03 {10 + i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}"
        asked = (
            f"obj=GenerateReqInput(text={('What does this mean? ' + text)!r}, input_ids=None, rid='{i:08x}')"
        )
        if i % 3 == 0:
            asked = f"obj=ChatCompletionRequest(messages=[{{'role': 'user', 'content': {text!r}}}], model='m', stream=True)"
        yield f"[{time}] Receive: {asked}"
        if i % 7 == 0:
            yield f"[{time} TP0] Prefill batch. #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "
        yield f"[{time}] Finish: {asked}, out={{'text': {text!r}, 'meta_info': {{'finish_reason': {{'type': 'stop'}}}}}}"
        yield f'[{time}] INFO:     10.0.3.7:52114 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def diagnosed(lines: list[str], transport: str, tmp_path: Path) -> tuple[str, list[str]]:
    log = tmp_path / "server.log"
    log.write_bytes(wrap(lines, transport))
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(log)], knowledge.literals), knowledge)
    return report.outcome, [f"{d.rule or d.title}: {d.root.text[:160]}" for d in report.diagnoses]


# What a transport puts before a line and what stands in the launch do not depend on each other: no full product.
@pytest.mark.parametrize(
    ("start", "transport"),
    [
        *((start, "plain") for start in STARTS),
        (STARTS[0], "docker_json"),
        (STARTS[1], "kubectl_both"),
        (STARTS[2], "journald"),
    ],
)
def test_every_known_failure_served_as_text_is_none(start: str, transport: str, tmp_path: Path) -> None:
    lines = [*started(start), *served(known_failures())]
    assert diagnosed(lines, transport, tmp_path) == ("ready", [])


@pytest.mark.parametrize("log", RECORDED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_recorded_servers_that_were_ready(log: Path, tmp_path: Path) -> None:
    assert diagnosed(log.read_text(encoding="utf-8").split("\n")[:-1], "plain", tmp_path) == ("ready", [])


def test_the_healthy_logs_are_of_many_kinds() -> None:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in [*HEALTHY, *RECORDED]]
    releases = {found[0] for path in HEALTHY if (found := re.match(r"0(?:4|5)\d+(?:post\d)?", path.stem))}
    models = {
        found[1].lower() for text in texts for found in re.finditer(r"--model(?:-path)?[ =](\S+)", text)
    }
    gpus = {name for name in ("A100", "H100", "H200", "B200", "MI300", "GB10", "L4", "RTX", "NPU|npu", "cpu")
            for text, path in zip(texts, [*HEALTHY, *RECORDED], strict=True)
            if re.search(name, text + path.stem, re.I)}  # fmt: skip
    ranks = {found[1] for text in texts for found in re.finditer(r"^\[[\d: -]{19} ([A-Z]+)\d", text, re.M)}
    assert len(texts) >= 75
    assert len(releases) >= 30, sorted(releases)
    assert len(models) >= 15, sorted(models)
    assert len(gpus) >= 8, sorted(gpus)
    assert {"TP", "DP", "PP"} <= ranks
    assert len(TRANSPORTS) >= 20
