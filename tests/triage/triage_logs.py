"""Logs as the tests of triage make them."""

from __future__ import annotations

ARGS = (
    "[{time}] server_args=ServerArgs(model_path='{model}', tp_size={tp}, port={port}, nnodes={nnodes}, "
    "node_rank={node_rank}, dist_init_addr={address}, random_seed={seed})"
)


def server_args(
    *,
    time: str = "2026-11-29 10:00:00",
    model: str = "/models/Qwen3-8B",
    tp: int = 2,
    port: int = 30000,
    nnodes: int = 1,
    node_rank: int = 0,
    address: str | None = None,
    seed: int = 1,
) -> str:
    return ARGS.format(
        time=time,
        model=model,
        tp=tp,
        port=port,
        nnodes=nnodes,
        node_rank=node_rank,
        address=repr(address),
        seed=seed,
    )


def traceback(
    error: str, *frames: str, at: str = "2026-11-29 10:00:09", rank: str = "TP0", line: int = 77
) -> str:
    rows = [f"[{at} {rank}] Scheduler hit an exception: Traceback (most recent call last):"]
    for frame in frames or ("managers/scheduler.py:run_scheduler_process", "layers/odd/core.py:start_odd"):
        file, function = frame.split(":")
        rows += [
            f'  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/{file}", line {line}, in {function}'
        ]
        rows += [f"    {function}_part(x)"]
    return "\n".join([*rows, error, ""])
