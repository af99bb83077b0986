"""Random launch commands over model configs and hosts, seeded, spelled for one SGLang release.

usage: python benchmarks/oracle/gen.py SEED COUNT MODELS_DIR --release R [--plain] > cases.jsonl

Wide (the default): every family of arguments that SGLang checks, drawn together as people combine them,
beside a few flags drawn from the release's whole table. ``--plain``: a narrower draw around speculative
decoding on hybrid models. One case a line: id, model, argv, env, gpu.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

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
BACKENDS = ["triton", "flashinfer", "fa3", "trtllm_mha", "fa4", "trtllm_mla", "flashmla", "cutlass_mla", "torch_native"]  # fmt: skip
_NO_RANDOM = ("--config", "--help", "--version", "--device", "--model-impl", "--nccl-port", "--sidecar")


class Draw:
    """One command as it grows."""

    def __init__(self, seed: int, models: str, table: FlagTable) -> None:
        self.random = random.Random(seed)
        self.models, self.table = models, table
        self.argv: list[str] = []
        self.env: dict[str, str] = {}

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def add(self, flag: str, *values: Any, force: bool = False) -> None:
        """A flag, if the release has it (``force``: even if not)."""
        if force or flag in self.table:
            self.argv += [flag, *map(str, values)]

    def of(self, *flags: str) -> str:
        """The first of several spellings that the release has."""
        return next((f for f in flags if f in self.table), flags[0])

    def choice(self, flag: str, fallback: list[Any]) -> Any:
        """A value of the flag's choices, mostly one of the likelier ``fallback``."""
        spec = self.table.get(flag)
        choices = list(spec.choices) if spec is not None and spec.choices else fallback
        likely = [v for v in fallback if v in choices]
        return self.one(likely if likely and self.maybe(0.75) else choices)


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
        _steps(d, 0.35)
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
        _typo(d)


def wide(d: Draw, model: str) -> None:
    """A few families of arguments, more of each; parallel sizes always."""
    _parallel(d)
    families: list[tuple[float, Callable[[Draw, str], None]]] = [
        (0.4, _speculation), (0.3, _attention), (0.22, _hybrid), (0.2, _moe), (0.18, _quantization),
        (0.14, _memory), (0.16, _graphs), (0.12, _hicache), (0.1, _disaggregation), (0.1, _lora),
        (0.12, _parsers), (0.1, _overrides), (0.12, _switches), (0.1, _scheduling), (0.1, _multimodal),
    ]  # fmt: skip
    for chance, family in families:
        if d.maybe(chance):
            family(d, model)
    if d.maybe(0.3):
        _from_table(d)
    if d.maybe(0.05):
        _typo(d)


def _steps(d: Draw, chance: float) -> None:
    if d.maybe(chance):
        steps = d.one([1, 2, 3, 5])
        d.add("--speculative-num-steps", steps)
        d.add("--speculative-eagle-topk", d.one([1, 1, 1, 2, 4]))
        d.add("--speculative-num-draft-tokens", d.one([steps + 1, steps + 1, 4, 8]))
    elif d.maybe(0.15):
        d.add(
            *d.one(
                [
                    ["--speculative-num-steps", "3"],
                    ["--speculative-eagle-topk", "1"],
                    ["--speculative-num-draft-tokens", "4"],
                ]
            )
        )


def _parallel(d: Draw) -> None:
    if d.maybe(0.75):
        d.add("--tp", d.one([1, 2, 2, 4, 4, 8, 3, 6, 16]))
    if d.maybe(0.12):
        d.add(d.of("--dp", "--dp-size"), d.one([1, 2, 2, 3, 4, 8]))
    if d.maybe(0.12):
        d.add("--enable-dp-attention")
    if d.maybe(0.08):
        d.add("--ep", d.one([1, 2, 4, 8, 3]))
    if d.maybe(0.08):
        d.add("--pp-size", d.one([1, 2, 2, 4, 3]))
    if d.maybe(0.06):
        d.add("--nnodes", d.one([1, 2, 2, 3, 4]))
        if d.maybe(0.8):
            d.add("--node-rank", d.one([0, 0, 1, 2]))
        if d.maybe(0.8):
            d.add("--dist-init-addr", d.one(["10.0.0.1:5000", "10.0.0.1", "[::1]:5000"]))
    for chance, flag, values in [
        (0.03, "--moe-dense-tp-size", [1, 1, 2, 4]),
        (0.02, "--moe-dp-size", [1, 2]),
        (0.02, "--attn-cp-size", [1, 2, 4]),
        (0.02, "--base-gpu-id", [0, 1, 4]),
        (0.02, "--gpu-id-step", [1, 2, 0]),
        (0.02, "--dcp-size", [1, 2]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))


def _speculation(d: Draw, model: str) -> None:
    algorithm = d.one(
        [
            "NEXTN",
            "NEXTN",
            "EAGLE",
            "EAGLE",
            "EAGLE3",
            "STANDALONE",
            "NGRAM",
            "DFLASH",
            "eagle",
            "FROZEN_KV_MTP",
            "MTP",
        ]
    )
    d.add("--speculative-algorithm", algorithm)
    needs_draft = algorithm in ("EAGLE3", "STANDALONE", "DFLASH")
    if d.maybe(0.7 if needs_draft else 0.25):
        draft = d.one([model, model, "Llama-3.1-8B-EAGLE3", "Qwen3-8B"])
        d.add("--speculative-draft-model-path", f"{d.models}/{draft}" if d.maybe(0.95) else "/nowhere/draft")
    _steps(d, 0.5)
    for chance, flag, values in [
        (0.12, "--speculative-draft-attention-backend", ["triton", "fa3", "flashinfer", "trtllm_mha", "fa4"]),
        (0.08, "--speculative-attention-mode", ["prefill", "decode"]),
        (0.06, "--speculative-draft-model-quantization", ["fp8", "unquant", "modelopt_fp4"]),
        (0.04, "--speculative-token-map", ["/nowhere/map.pt"]),
        (0.05, "--speculative-moe-runner-backend", ["triton", "flashinfer_trtllm", "deep_gemm", "auto"]),
        (0.05, "--speculative-accept-threshold-single", ["0.9", "1.2"]),
        (0.05, "--speculative-draft-window-size", [128, 2048]),
        (0.05, "--speculative-ngram-max-bfs-breadth", [1, 10]),
        (0.04, "--speculative-dflash-block-size", [8, 16]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    for flag in (
        "--enable-multi-layer-eagle",
        "--speculative-adaptive",
        "--speculative-use-rejection-sampling",
    ):
        if d.maybe(0.05):
            d.add(flag)
    if d.maybe(0.3):
        d.env["SGLANG_ENABLE_SPEC_V2"] = d.one(["1", "1", "0", "true"])
    if d.maybe(0.06):
        d.add("--disable-overlap-schedule")


def _attention(d: Draw, model: str) -> None:
    likely = [*BACKENDS, "triton", "fa3", "flashinfer"]
    if d.maybe(0.7):
        d.add("--attention-backend", d.choice("--attention-backend", likely))
    if d.maybe(0.2):
        d.add("--prefill-attention-backend", d.choice("--prefill-attention-backend", likely))
    if d.maybe(0.2):
        d.add("--decode-attention-backend", d.choice("--decode-attention-backend", likely))
    if d.maybe(0.35):
        d.add("--page-size", d.one([1, 1, 16, 32, 64, 64, 128, 256, 48]))
    if d.maybe(0.25):
        d.add("--kv-cache-dtype", d.choice("--kv-cache-dtype", ["fp8_e4m3", "fp8_e5m2", "bf16", "auto"]))
    for chance, flag, values in [
        (0.06, "--sampling-backend", ["pytorch", "flashinfer"]),
        (0.06, "--grammar-backend", ["xgrammar", "outlines", "llguidance", "none"]),
        (0.05, "--nsa-prefill-backend", ["flashmla_sparse", "fa3", "tilelang"]),
        (0.05, "--nsa-decode-backend", ["flashmla_kv", "fa3", "trtllm"]),
        (0.05, "--dsa-prefill-backend", ["flashmla_sparse", "fa3", "tilelang"]),
        (0.05, "--dsa-decode-backend", ["flashmla_kv", "fa3", "trtllm"]),
        (0.06, "--mm-attention-backend", ["fa3", "triton_attn", "sdpa"]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    if d.maybe(0.06):
        d.add("--enable-deterministic-inference")


def _hybrid(d: Draw, model: str) -> None:
    if d.maybe(0.7):
        flag = d.of("--mamba-radix-cache-strategy", "--mamba-scheduler-strategy")
        d.add(flag, d.choice(flag, ["extra_buffer", "no_buffer", "auto"]))
    if d.maybe(0.25):
        d.add("--disable-radix-cache")
    for chance, flag, values in [
        (0.15, "--mamba-track-interval", [1, 64, 100, 128, 256]),
        (0.12, "--mamba-ssm-dtype", ["float32", "bfloat16", "float16"]),
        (0.1, "--max-mamba-cache-size", [4, 64, 500]),
        (0.1, "--mamba-full-memory-ratio", ["0.2", "0.9", "1.5"]),
        (0.1, "--mamba-backend", ["triton", "flashinfer"]),
        (0.12, "--linear-attn-backend", ["triton", "cutedsl", "flashinfer"]),
        (0.06, "--linear-attn-decode-backend", ["triton", "cutedsl", "flashinfer"]),
        (0.06, "--linear-attn-prefill-backend", ["triton", "cutedsl", "flashinfer"]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))


def _moe(d: Draw, model: str) -> None:
    if d.maybe(0.6):
        d.add(
            "--moe-runner-backend",
            d.choice(
                "--moe-runner-backend",
                [
                    "triton",
                    "flashinfer_trtllm",
                    "flashinfer_cutlass",
                    "deep_gemm",
                    "cutlass",
                    "flashinfer_mxfp4",
                ],
            ),
        )
    if d.maybe(0.3):
        d.add("--moe-a2a-backend", d.choice("--moe-a2a-backend", ["none", "deepep", "deepep", "flashinfer"]))
    if d.maybe(0.15):
        d.add("--deepep-mode", d.one(["auto", "normal", "low_latency"]))
    if d.maybe(0.15):
        d.add("--enable-eplb")
    if d.maybe(0.1):
        d.add("--ep-num-redundant-experts", d.one([1, 8, 32]))
    if d.maybe(0.08):
        d.add("--init-expert-location", d.one(["trivial", "/nowhere/x.json"]))
    for flag in (
        "--enable-two-batch-overlap",
        "--enable-single-batch-overlap",
        "--disable-shared-experts-fusion",
    ):
        if d.maybe(0.12):
            d.add(flag)


def _quantization(d: Draw, model: str) -> None:
    if d.maybe(0.75):
        d.add(
            "--quantization",
            d.choice("--quantization", ["fp8", "modelopt_fp4", "awq", "w8a8_int8", "gptq", "mxfp4"]),
        )
    if d.maybe(0.15):
        d.add("--dtype", d.one(["auto", "half", "bfloat16", "float32"]))
    if d.maybe(0.12):
        d.add(
            "--load-format",
            d.choice("--load-format", ["auto", "dummy", "safetensors", "gguf", "bitsandbytes"]),
        )
    if d.maybe(0.12):
        flag = d.of("--fp8-gemm-backend", "--fp8-gemm-runner-backend")
        d.add(flag, d.choice(flag, ["auto", "triton", "cutlass", "deep_gemm"]))
    if d.maybe(0.08):
        flag = d.of("--fp4-gemm-backend", "--fp4-gemm-runner-backend")
        d.add(flag, d.choice(flag, ["auto"]))
    if d.maybe(0.1):
        d.add("--torchao-config", "int4wo-128")
    if d.maybe(0.06):
        d.add("--rl-on-policy-target", "fsdp")


def _memory(d: Draw, model: str) -> None:
    for chance, flag, values in [
        (0.35, "--mem-fraction-static", ["0.5", "0.8", "0.9", "0.97", "1.2", "85"]),
        (0.25, "--context-length", [2048, 8192, 131072, 400000, "32k"]),
        (0.2, "--max-total-tokens", [1000, 100000]),
        (0.3, "--max-running-requests", [1, 8, 48, 256, 0]),
        (0.3, "--chunked-prefill-size", [-1, 1000, 2048, 8192, 4100]),
        (0.15, "--max-prefill-tokens", [1024, 16384]),
        (0.06, "--cpu-offload-gb", [0, 4]),
        (0.06, "--swa-full-tokens-ratio", ["0.5", "1.0", "1.5"]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))


def _graphs(d: Draw, model: str) -> None:
    if d.maybe(0.3):
        d.add("--disable-cuda-graph")
    if d.maybe(0.25):
        d.add(d.of("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"), d.one([1, 8, 64, 256, 512]))
    if d.maybe(0.2):
        d.add(d.of("--cuda-graph-bs-decode", "--cuda-graph-bs"), *d.one([[1, 2, 4], [8], [4, 4, 2], [512]]))
    for flag in (
        "--disable-cuda-graph-padding",
        "--enable-torch-compile",
        "--disable-piecewise-cuda-graph",
        "--enable-piecewise-cuda-graph",
        "--enforce-piecewise-cuda-graph",
        "--enable-breakable-cuda-graph",
        "--enable-profile-cuda-graph",
        "--disable-prefill-cuda-graph",
        "--disable-decode-cuda-graph",
    ):
        if d.maybe(0.1):
            d.add(flag)
    if d.maybe(0.08):
        d.add("--piecewise-cuda-graph-max-tokens", d.one([256, 4096]))
    if d.maybe(0.1):
        d.add("--cuda-graph-backend-prefill", d.one(["full", "breakable", "disabled"]))
    if d.maybe(0.06):
        d.add("--cuda-graph-config", d.one(['{"decode": {"backend": "disabled"}}', "{decode", '{"x": 1}']))


def _hicache(d: Draw, model: str) -> None:
    d.add("--enable-hierarchical-cache")
    for chance, flag, values in [
        (0.3, "--hicache-ratio", ["2.0", "1.0", "0.5"]),
        (0.2, "--hicache-size", [0, 30]),
        (0.25, "--hicache-io-backend", ["direct", "kernel"]),
        (0.25, "--hicache-mem-layout", ["layer_first", "page_first", "page_first_direct"]),
        (0.2, "--hicache-write-policy", ["write_back", "write_through", "write_through_selective"]),
        (0.25, "--hicache-storage-backend", ["file", "mooncake", "nixl", "hf3fs"]),
        (0.06, "--hicache-storage-prefetch-policy", ["timeout", "best_effort"]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    if d.maybe(0.15):
        d.add("--disable-radix-cache")
    if d.maybe(0.08):
        d.add("--enable-lmcache")


def _disaggregation(d: Draw, model: str) -> None:
    d.add("--disaggregation-mode", d.one(["prefill", "decode", "decode", "null"]))
    for chance, flag, values in [
        (0.4, "--disaggregation-transfer-backend", ["mooncake", "nixl", "fake", "mori"]),
        (0.15, "--disaggregation-ib-device", ["mlx5_0", "mlx5_0,mlx5_0", "bad_0"]),
        (0.1, "--num-reserved-decode-tokens", [128, 512]),
        (0.1, "--disaggregation-decode-polling-interval", [1, 4]),
        (0.1, "--disaggregation-bootstrap-port", [8998]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    for flag in (
        "--disaggregation-decode-enable-offload-kvcache",
        "--disaggregation-decode-enable-radix-cache",
        "--enable-pdmux",
    ):
        if d.maybe(0.12):
            d.add(flag)
    if d.maybe(0.1):
        d.add("--disable-radix-cache")


def _lora(d: Draw, model: str) -> None:
    if d.maybe(0.75):
        d.add("--enable-lora")
    if d.maybe(0.6):
        d.add("--max-lora-rank", d.one([16, 64]))
    if d.maybe(0.5):
        d.add("--lora-target-modules", *d.one([["all"], ["q_proj", "v_proj"], ["all", "q_proj"], ["nope"]]))
    if d.maybe(0.4):
        d.add(
            "--lora-paths",
            *d.one([["a=/nowhere/a"], ["/nowhere/b"], ['{"lora_name": "x", "lora_path": "/y"}']]),
        )
    for chance, flag, values in [
        (0.25, "--max-loras-per-batch", [1, 4, 8, 0]),
        (0.2, "--max-loaded-loras", [1, 8]),
        (0.25, "--lora-backend", ["triton", "csgmv", "flashinfer"]),
        (0.15, "--lora-eviction-policy", ["lru", "fifo"]),
        (0.15, "--max-lora-chunk-size", [16, 128, 24]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    if d.maybe(0.1):
        d.add("--enable-lora-overlap-loading")


def _parsers(d: Draw, model: str) -> None:
    if d.maybe(0.6):
        d.add(
            "--tool-call-parser",
            d.choice("--tool-call-parser", ["qwen25", "qwen3_coder", "deepseekv3", "glm45", "qwen3"]),
        )
    if d.maybe(0.6):
        d.add(
            "--reasoning-parser",
            d.choice("--reasoning-parser", ["qwen3", "deepseek-r1", "glm45", "gpt-oss", "qwen"]),
        )
    if d.maybe(0.15):
        d.add("--chat-template", d.one(["chatml", "llama-3", "/nowhere/template.jinja"]))


def _overrides(d: Draw, model: str) -> None:
    for chance, flag, values in [
        (0.6, "--json-model-override-args", ['{"max_position_embeddings": 262144}', "{bad", '{"num_hidden_layers": 4}', '{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}']),
        (0.25, "--model-loader-extra-config", ['{"enable_multithread_load": true}', "{oops"]),
        (0.15, "--preferred-sampling-params", ['{"temperature": 0.6}', "temp"]),
        (0.1, "--hf-overrides", ["{}"]),
        (0.1, "--limit-mm-data-per-request", ['{"image": 1}', "3"]),
        (0.1, "--default-chat-template-kwargs", ['{"enable_thinking": false}', "[1]"]),
    ]:  # fmt: skip
        if d.maybe(chance):
            d.add(flag, d.one(values))


def _switches(d: Draw, model: str) -> None:
    for flag in (
        "--trust-remote-code", "--disable-custom-all-reduce", "--disable-overlap-schedule", "--enable-mixed-chunk",
        "--enable-deterministic-inference", "--skip-tokenizer-init", "--disable-radix-cache", "--enable-metrics",
        "--enable-torch-symm-mem", "--enable-symm-mem", "--enable-nccl-nvls", "--enable-memory-saver",
        "--enable-flashinfer-allreduce-fusion", "--enable-dp-lm-head", "--is-embedding", "--language-only",
        "--encoder-only", "--enable-tokenizer-batch-encode", "--enable-dynamic-batch-tokenizer", "--enable-p2p-check",
        "--enable-weights-cpu-backup", "--enable-return-hidden-states", "--enable-custom-logit-processor",
        "--disable-chunked-prefix-cache", "--enable-fused-qk-norm-rope", "--enable-priority-scheduling",
    ):  # fmt: skip
        if d.maybe(0.09):
            d.add(flag)


def _scheduling(d: Draw, model: str) -> None:
    for chance, flag, values in [
        (0.3, "--schedule-policy", ["lpm", "fcfs", "random", "dfs-weight", "lof", "priority"]),
        (0.2, "--schedule-conservativeness", ["0.3", "1.0", "-1"]),
        (0.15, "--num-continuous-decode-steps", [1, 4]),
        (0.15, "--stream-interval", [1, 8]),
        (0.15, "--radix-eviction-policy", ["lru", "lfu", "priority"]),
        (0.15, "--tokenizer-worker-num", [1, 4]),
        (0.1, "--load-balance-method", ["auto", "round_robin", "minimum_tokens", "total_tokens"]),
        (0.1, "--prefill-max-requests", [1, 8]),
        (0.1, "--max-queued-requests", [0, 100]),
        (0.1, "--dllm-algorithm", ["LowConfidence", "JointThreshold"]),
        (0.1, "--port", [30000, 0, 99999]),
        (0.08, "--served-model-name", ["x", "a:b"]),
        (0.08, "--host", ["0.0.0.0", "::"]),
        (0.08, "--grpc-port", [40000]),
        (0.06, "--watchdog-timeout", [10, 0]),
    ]:
        if d.maybe(chance):
            d.add(flag, d.one(values))
    for flag in (
        "--enable-priority-scheduling",
        "--schedule-low-priority-values-first",
        "--enable-prefill-delayer",
    ):
        if d.maybe(0.15):
            d.add(flag)


def _multimodal(d: Draw, model: str) -> None:
    for flag in (
        "--enable-multimodal",
        "--mm-enable-dp-encoder",
        "--keep-mm-feature-on-device",
        "--enable-mm-global-cache",
    ):
        if d.maybe(0.25):
            d.add(flag)


def _from_table(d: Draw) -> None:
    """One to three flags of the release's whole table, a value of the right kind."""
    specs = [s for s in d.table.specs if s.name not in _NO_RANDOM and not s.refused]
    for spec in d.random.sample(specs, d.one([1, 1, 2, 3])):
        if spec.arity == "switch":
            d.add(spec.name)
        elif spec.choices:
            d.add(spec.name, d.one(list(spec.choices)))
        elif spec.type == "int":
            d.add(spec.name, d.one([0, 1, 2, 4, 16, 128]))
        elif spec.type == "float":
            d.add(spec.name, d.one(["0.1", "0.5", "1.0", "2.0"]))


def _typo(d: Draw) -> None:
    d.argv += d.one(
        [
            ["--speculative-alogrithm", "EAGLE"],
            ["--tensor-parallel", "2"],
            ["--mamba-scheduler-stategy", "extra_buffer"],
            ["--attention-backend", "fa5"],
            ["--tp", "two"],
            ["--enable-mtp"],
            ["--gpu-memory-utilization", "0.9"],
            ["--max-model-len", "8192"],
            ["--tp"],
            ["--mem-fraction", "0.8"],
            ["--chunked-prefill", "2048"],
            ["--speculative-num-steps", "3.0"],
            ["stray"],
        ]
    )


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
