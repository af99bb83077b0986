"""Random launch commands over model configs and hosts, seeded, spelled for one SGLang release.

usage: python benchmarks/oracle/gen.py SEED COUNT MODELS_DIR --release R [--plain] > cases.jsonl

Wide (the default): every family of arguments that SGLang checks, drawn together as people combine them,
beside a few flags drawn from the release's whole table. ``--plain``: a narrower draw around speculative
decoding on hybrid models. One case a line: id, model, argv, env, gpu.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from draw import Draw
from engine_flags import (
    BACKENDS,
    attention,
    hybrid,
    memory,
    moe,
    parallel,
    quantization,
    speculation,
    steps,
)
from server_flags import (
    disaggregation,
    from_table,
    graphs,
    hicache,
    lora,
    multimodal,
    overrides,
    parsers,
    scheduling,
    switches,
    typo,
)

from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import FlagTable, flag_table

HOSTS: list[dict[str, Any]] = [
    {"name": "NVIDIA A100-SXM4-80GB", "sm": [8, 0], "gib": 79.2, "sms": 108},
    {"name": "NVIDIA L40S", "sm": [8, 9], "gib": 44.4, "sms": 142},
    {"name": "NVIDIA H100 80GB HBM3", "sm": [9, 0], "gib": 79.6, "sms": 132},
    {"name": "NVIDIA H200", "sm": [9, 0], "gib": 139.8, "sms": 132},
    {"name": "NVIDIA B200", "sm": [10, 0], "gib": 178.4, "sms": 148},
    {"name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm": [12, 0], "gib": 95.0, "sms": 188},
    {"name": "NVIDIA GeForce RTX 5090", "sm": [12, 0], "gib": 31.4, "sms": 170},
]
WIDE_HOSTS = [
    *HOSTS,
    {"name": "NVIDIA B300 SXM6 AC", "sm": [10, 3], "gib": 267.7, "sms": 148},
    {"name": "NVIDIA GB10", "sm": [12, 1], "gib": 119.7, "sms": 48},
    {"name": "Tesla T4", "sm": [7, 5], "gib": 14.6, "sms": 40},
    {"name": "Tesla V100-SXM2-32GB", "sm": [7, 0], "gib": 31.7, "sms": 80},
    {"name": "NVIDIA GeForce RTX 4090", "sm": [8, 9], "gib": 23.6, "sms": 128},
    {"name": "NVIDIA H20", "sm": [9, 0], "gib": 95.6, "sms": 78},
]
MODELS = {
    "Qwen3.5-122B-A10B": 6, "Qwen3.5-27B": 4, "Qwen3-Next-80B-A3B": 4, "Llama-3.1-8B": 2, "Qwen3-30B-A3B": 2,
    "DeepSeek-V3": 2, "GLM-4.5-Air": 2, "gpt-oss-20b": 1,
}  # fmt: skip
WIDE_MODELS = {
    "Qwen3.5-122B-A10B": 5, "Qwen3.5-27B": 4, "Qwen3-Next-80B-A3B": 4, "Llama-3.1-8B": 5, "Qwen3-30B-A3B": 4,
    "DeepSeek-V3": 4, "GLM-4.5-Air": 3, "gpt-oss-20b": 3, "Qwen3-8B": 3, "Qwen2.5-7B-AWQ": 1, "Mixtral-8x7B": 1,
    "Gemma-3-27B": 2, "Kimi-Linear-48B-A3B": 2, "Nemotron-Nano-9B": 2, "Falcon-H1-7B": 1, "DeepSeek-V3.2": 3,
    "GLM-5": 1, "Qwen3-VL-8B": 2, "Qwen3-Coder-480B-FP8": 2, "MiniMax-M2": 2,
}  # fmt: skip


def plain(d: Draw, model: str) -> None:
    """Speculation, hybrid-model strategies and backends."""
    path = f"{d.models}/{model}"
    strategy = d.of("--mamba-radix-cache-strategy", "--mamba-scheduler-strategy")
    if d.maybe(0.8):
        d.add("--tp", d.one([1, 2, 4, 8, 4, 2, 3, 6]))
    if d.maybe(0.75):
        algorithm = d.random.choices(["NEXTN", "EAGLE", "EAGLE3", "STANDALONE", "NGRAM"], [8, 5, 2, 1, 1])[0]
        d.add("--speculative-algorithm", algorithm)
        if d.maybe(0.35) or (algorithm in ("EAGLE3", "STANDALONE") and d.maybe(0.7)):
            d.add("--speculative-draft-model-path", path)
        steps(d, 0.35)
        if d.maybe(0.35):
            d.env["SGLANG_ENABLE_SPEC_V2"] = d.one(["1", "1", "0", "True"])
        if d.maybe(0.1):
            d.add("--speculative-draft-attention-backend", d.one(["triton", "fa3", "flashinfer"]))
    for chance, flag, values in [
        (0.45, strategy, ["extra_buffer", "no_buffer", "auto", "extra_buffer"]),
        (0.25, "--disable-radix-cache", None),
        (0.45, "--attention-backend", BACKENDS),
        (0.2, "--page-size", [1, 16, 32, 48, 64, 128, 256]),
        (0.1, "--mamba-track-interval", [2, 64, 128, 256, 512]),
        (0.1, "--disable-overlap-schedule", None),
        (0.12, "--kv-cache-dtype", ["fp8_e4m3", "fp8_e5m2", "bf16"]),
    ]:
        if d.maybe(chance):
            d.add(flag, *([] if values is None else [d.one(values)]), force=True)
    if d.maybe(0.1):
        d.add("--enable-dp-attention")
        d.add("--dp", d.one([1, 2, 3, 4]))
    for chance, flag, values in [
        (0.08, "--ep", [1, 2, 4, 8]),
        (
            0.08,
            "--moe-runner-backend",
            ["triton", "flashinfer_trtllm", "flashinfer_cutlass", "deep_gemm", "cutlass"],
        ),
        (0.08, "--quantization", ["fp8", "modelopt_fp4", "awq", "w8a8_int8"]),
        (0.06, "--enable-mixed-chunk", None),
        (0.06, "--enable-hierarchical-cache", None),
        (0.05, "--disaggregation-mode", ["prefill", "decode"]),
        (0.05, "--pp-size", [2]),
        (0.05, "--enable-two-batch-overlap", None),
        (0.05, "--chunked-prefill-size", [-1, 1000, 2048, 8192]),
        (0.05, "--max-running-requests", [1, 16, 64]),
        (0.05, "--context-length", [8192, 400000]),
        (0.05, "--enable-deterministic-inference", None),
        (0.3, "--trust-remote-code", None),
        (0.1, "--disable-custom-all-reduce", None),
        (0.1, "--disable-cuda-graph", None),
    ]:
        if d.maybe(chance):
            d.add(flag, *([] if values is None else [d.one(values)]), force=True)
    if d.maybe(0.05):
        d.argv += ["--enable-lora", "--max-lora-rank", "16"]
    if d.maybe(0.04):
        typo(d)


def wide(d: Draw, model: str) -> None:
    """A few families of arguments, more of each; parallel sizes always."""
    parallel(d)
    families: list[tuple[float, Callable[[Draw, str], None]]] = [
        (0.4, speculation), (0.3, attention), (0.22, hybrid), (0.2, moe), (0.18, quantization),
        (0.14, memory), (0.16, graphs), (0.12, hicache), (0.1, disaggregation), (0.1, lora),
        (0.12, parsers), (0.1, overrides), (0.12, switches), (0.1, scheduling), (0.1, multimodal),
    ]  # fmt: skip
    for chance, family in families:
        if d.maybe(chance):
            family(d, model)
    if d.maybe(0.3):
        from_table(d)
    if d.maybe(0.05):
        typo(d)


def case(seed: int, number: int, models: str, table: FlagTable, narrow: bool) -> dict[str, Any]:
    d = Draw(seed * 1_000_003 + number, models, table)
    pool = MODELS if narrow else WIDE_MODELS
    model = d.random.choices(list(pool), list(pool.values()))[0]
    gpu = dict(d.one(HOSTS if narrow or d.maybe(0.55) else WIDE_HOSTS))
    gpu["count"] = d.one([1, 2, 4, 8])
    d.argv += [] if not narrow and d.maybe(0.01) else ["--model-path", f"{models}/{model}"]
    (plain if narrow else wide)(d, model)
    return {
        "id": f"{'p' if narrow else 'w'}{seed}-{number}",
        "model": model,
        "argv": d.argv,
        "env": d.env,
        "gpu": gpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("models")
    parser.add_argument("--release", required=True)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    table = flag_table(parse_release(args.release))
    for number in range(args.count):
        print(json.dumps(case(args.seed, number, args.models, table, args.plain)))


if __name__ == "__main__":
    main()
