"""Arguments that decide how the model runs: parallelism, speculation, attention, experts, precision, memory."""

from __future__ import annotations

from draw import Draw

BACKENDS = ["triton", "flashinfer", "fa3", "trtllm_mha", "fa4", "trtllm_mla", "flashmla", "cutlass_mla", "torch_native"]  # fmt: skip


def steps(d: Draw, chance: float) -> None:
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


def parallel(d: Draw) -> None:
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


def speculation(d: Draw, model: str) -> None:
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
    steps(d, 0.5)
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


def attention(d: Draw, model: str) -> None:
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


def hybrid(d: Draw, model: str) -> None:
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


def moe(d: Draw, model: str) -> None:
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


def quantization(d: Draw, model: str) -> None:
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


def memory(d: Draw, model: str) -> None:
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
