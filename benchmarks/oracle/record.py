"""Record what the real SGLang says to generated commands, as compact test data.

usage: python benchmarks/oracle/record.py CASES.jsonl PYTHON MODELS_DIR OUT.jsonl.xz

PYTHON is the interpreter of an environment that has SGLang (no GPU needed: the host of each case is
pretended). MODELS_DIR is the folder given to gen.py; it is written as ``{models}``. Rows that OUT holds
already are kept. One row a line: id, model, argv, env, gpu, verdict accept | reject, and for a reject
stage, error (the exception's line) and site (``file:function``), for an accept args (resolved arguments
that differ from what the release defaults to, and a few always), and SGLang's warnings.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mtpdoctor.launch.types import Form, LaunchCommand
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.arguments import default_arguments
from mtpdoctor.sglang.ask import PretendedGpus, SglangVerdict, ask_many

ALWAYS = frozenset(
    (
        "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "page_size", "quantization",
        "speculative_num_draft_tokens", "mamba_scheduler_strategy", "mamba_radix_cache_strategy", "tp_size",
        "disable_radix_cache", "disable_overlap_schedule", "attention_backend", "prefill_attention_backend",
        "decode_attention_backend", "max_running_requests", "mem_fraction_static", "kv_cache_dtype", "dp_size",
        "ep_size", "pp_size", "moe_runner_backend", "chunked_prefill_size", "enable_dp_attention",
        "sampling_backend",
    )
)  # fmt: skip
NEVER = frozenset({"model_path", "tokenizer_path", "served_model_name", "random_seed", "nccl_port"})
CHUNK = 200  # commands asked of one process
MAX_ERROR, MAX_WARNING, MAX_WARNINGS = 400, 160, 12


def command_of(case: dict[str, Any]) -> LaunchCommand:
    """The case's words as they are: they are not read as flags on the way."""
    program = ("python", "-m", "sglang.launch_server")
    return LaunchCommand(Form.SHELL, program, (), case.get("env") or {}, tuple(case["argv"]))


def gpus_of(gpu: dict[str, Any]) -> PretendedGpus:
    major, minor = gpu["sm"]
    return PretendedGpus(gpu["count"], major * 10 + minor, gpu["gib"], gpu["name"], gpu.get("sms"))


def row_of(case: dict[str, Any], verdict: SglangVerdict, models: str) -> dict[str, Any]:
    row = {k: case[k] for k in ("id", "model", "argv", "env", "gpu")} | {"verdict": verdict.verdict}
    if verdict.verdict == "reject":
        row |= {"stage": verdict.stage, "error": verdict.error.split("\n")[0][:MAX_ERROR]}
        if verdict.site is not None:
            row["site"] = f"{Path(verdict.site.file).name}:{verdict.site.function}"
    elif verdict.verdict == "accept":
        row["args"] = changed(verdict)
    row["warnings"] = [w[:MAX_WARNING] for w in verdict.warnings[:MAX_WARNINGS]]
    return json.loads(json.dumps(row).replace(f"{models}/", "{models}/"))


def changed(verdict: SglangVerdict) -> dict[str, Any]:
    defaults = default_arguments(parse_release(verdict.version or ""))
    return {
        name: value if len(str(value)) < 200 else str(value)[:200]
        for name, value in verdict.resolved.items()
        if name not in NEVER and (name in ALWAYS or value != defaults.get(name))
    }


def recorded(cases: list[dict[str, Any]], python: str, models: str) -> Iterator[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        groups.setdefault(json.dumps(case["gpu"], sort_keys=True), []).append(case)
    for group in groups.values():
        for at in range(0, len(group), CHUNK):
            part = group[at : at + CHUNK]
            verdicts = ask_many(python, [command_of(c) for c in part], gpu=gpus_of(part[0]["gpu"]))
            for case, verdict in zip(part, verdicts, strict=True):
                if verdict.verdict == "unknown":
                    print(f"{case['id']}: {verdict.reason}", file=sys.stderr)
                else:
                    yield row_of(case, verdict, models)


def main() -> None:
    cases_file, python, models, out = sys.argv[1:5]
    file = Path(out)
    rows: list[dict[str, Any]] = []
    if file.exists():
        with lzma.open(file, "rt") as stream:
            rows = [json.loads(line) for line in stream]
    have = {row["id"] for row in rows}
    cases = [json.loads(line) for line in Path(cases_file).read_text().splitlines() if line.strip()]
    rows += recorded([c for c in cases if c["id"] not in have], python, models.rstrip("/"))
    with lzma.open(file, "wt", preset=9) as stream:
        stream.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    print(f"{len(rows)} verdicts in {file}, {file.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
