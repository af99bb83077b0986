"""Arguments around the model: graphs, caches, disaggregation, adapters, parsers, overrides, scheduling, typos."""

from __future__ import annotations

from draw import Draw

_NO_RANDOM = ("--config", "--help", "--version", "--device", "--model-impl", "--nccl-port", "--sidecar")


def graphs(d: Draw, model: str) -> None:
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


def hicache(d: Draw, model: str) -> None:
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


def disaggregation(d: Draw, model: str) -> None:
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


def lora(d: Draw, model: str) -> None:
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


def parsers(d: Draw, model: str) -> None:
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


def overrides(d: Draw, model: str) -> None:
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


def switches(d: Draw, model: str) -> None:
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


def scheduling(d: Draw, model: str) -> None:
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


def multimodal(d: Draw, model: str) -> None:
    for flag in (
        "--enable-multimodal",
        "--mm-enable-dp-encoder",
        "--keep-mm-feature-on-device",
        "--enable-mm-global-cache",
    ):
        if d.maybe(0.25):
            d.add(flag)


def from_table(d: Draw) -> None:
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


def typo(d: Draw) -> None:
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
