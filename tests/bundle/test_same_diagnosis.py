"""The redacted log gets the diagnosis of the log itself: over all real logs, and in other transports."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest
from planted import planted

from mtpdoctor.anonymise.redactor import Redactor
from mtpdoctor.bundle.build import vocabulary
from mtpdoctor.bundle.same import differences
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb import load
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.log.reading import reading_from_text

TESTS = Path(__file__).parents[1]
LOGS = sorted(
    path
    for folder in ("data/real_logs", "data/h200_logs", "data/h200_memory", "data/public_reports", "healthy")
    for path in (TESTS / folder).glob("*.log")
    if path.stat().st_size < 300_000
)


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    return load.load_knowledge()


@lru_cache(maxsize=1)
def keep() -> frozenset[str]:
    return vocabulary(load_knowledge())


def report_of(text: str) -> Report:
    knowledge = load_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals), knowledge)


def unlike(text: str) -> tuple[str, ...]:
    redactor = Redactor(keep=keep())
    redactor.learn(text)
    out = redactor.redact(text, "log")
    return differences(report_of(text), report_of(out), redactor.mapped) if out != text else ()


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_real_log(path: Path) -> None:
    assert unlike(path.read_text(encoding="utf-8", errors="replace")) == ()


def dressed(text: str, how: str) -> str:
    lines = text.rstrip("\n").split("\n")
    forms = {
        "compose": "acme-llm-1  | {}",
        "kubernetes": "[pod/sglang-prefill-7d9c6b5f4d-x2k8p/server] 2026-11-29T13:47:20.123456789Z {}",
        "journal": "Nov 29 13:47:20 gpu-node-17 sglang[4242]: {}",
        "iso journal": "2026-11-29T13:47:20+0000 dgx04.hpc.acme.internal python3[77]: {}",
        "slurm": "0: {}",
        "pdsh": "gpu017: {}",
        "stern": "llm-serve-head-0 server {}",
        "ray": "\x1b[36m(Scheduler pid=123, ip=10.42.7.19)\x1b[0m {}",
    }
    if how == "docker json":
        return "\n".join(
            json.dumps({"log": x + "\n", "stream": "stderr", "time": "2026-11-29T13:47:20.1Z"}) for x in lines
        )
    if how == "fluent":
        place = {"pod_name": "llm-serve-0", "host": "gpu-node-17", "namespace_name": "acme"}
        return "\n".join(json.dumps({"message": x, "kubernetes": place}) for x in lines)
    return "\n".join(forms[how].format(line) for line in lines)


@pytest.mark.parametrize(
    "how",
    [
        "compose",
        "kubernetes",
        "journal",
        "iso journal",
        "slurm",
        "pdsh",
        "stern",
        "ray",
        "docker json",
        "fluent",
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "real_logs/spec_no_buffer_with_radix",
        "public_reports/zmq_bind_head_address_unindented",
        "real_logs/model_path_missing",
    ],
)
def test_in_every_transport(how: str, name: str) -> None:
    text = dressed((TESTS / "data" / f"{name}.log").read_text(encoding="utf-8"), how)
    redactor = Redactor(keep=keep())
    redactor.learn(text)
    out = redactor.redact(text, "log")
    for private in ("gpu-node-17", "dgx04", "10.42.7.19", "gpu017", "llm-serve", "x2k8p", "10.96.14.3"):
        assert private not in out
    assert differences(report_of(text), report_of(out), redactor.mapped) == ()


def test_beside_all_that_can_be_planted() -> None:
    log = (TESTS / "data" / "real_logs" / "mem_fraction_static_too_low.log").read_text(encoding="utf-8")
    noise = "\n".join(
        line
        for line, _ in planted()
        if "Traceback" not in line and "Error" not in line and "sglang" not in line
    )
    assert unlike(f"{log}{noise}\n") == ()
