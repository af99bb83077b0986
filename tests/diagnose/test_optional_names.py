"""A name that SGLang imports only where a package or a GPU is there, and uses without it."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

KNOWLEDGE = load_knowledge()
LAYERS = "/usr/lib/python3/site-packages/sglang/srt/layers"


def titles(file: str, code: str, error: str, before: str = "") -> str:
    log = f"""\
{before}
[2026-01-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{LAYERS}/{file}", line 9, in go
    {code}
{error}
"""
    report = diagnose(reading_from_text(log, KNOWLEDGE.literals), KNOWLEDGE, Given(release="0.5.9"))
    return "\n".join(f.title for d in report.diagnoses for f in d.fixes)


@pytest.mark.parametrize(
    ("file", "code", "error", "wanted", "not_wanted"),
    [
        (
            "attention/nsa/nsa_indexer.py",
            "self.sm_count = deep_gemm.warp_sms()",
            "AttributeError: 'ImportError' object has no attribute 'warp_sms'",
            "which brings DeepGEMM|See why deep_gemm cannot be imported",
            "whether PyTorch finds",
        ),
        (
            "moe/topk.py",
            "routing_data = RoutingData(gate)",
            "NameError: name 'RoutingData' is not defined",
            "Install triton_kernels|See why RoutingData cannot be imported from triton_kernels.routing",
            "whether PyTorch finds",
        ),
        (
            "moe/topk.py",
            "topk_weights, topk_ids = moe_fused_gate(",
            "NameError: name 'moe_fused_gate' is not defined",
            "whether PyTorch finds the NVIDIA GPU",
            "cannot be imported",
        ),
        (
            "moe/topk.py",
            "self.warp.drive()",
            "AttributeError: 'NoneType' object has no attribute 'drive'",
            "",
            "cannot be imported",
        ),
    ],
)
def test_what_brings_the_name(file: str, code: str, error: str, wanted: str, not_wanted: str) -> None:
    said = titles(file, code, error)
    assert all(part in said for part in wanted.split("|"))
    assert not_wanted not in said


def test_nothing_to_install_on_another_make() -> None:
    said = titles(
        "moe/topk.py",
        "topk_weights, topk_ids = moe_fused_gate(",
        "NameError: name 'moe_fused_gate' is not defined",
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='M', device='npu')",
    )
    assert "whether PyTorch finds" not in said
