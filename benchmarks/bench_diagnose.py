"""How fast is `diagnose`, in ratios that hold on any machine.

    python benchmarks/bench_diagnose.py [--mib 256] [--runs 5]

Prints, from runs taken in turn (A B A B ...): the wall time of `diagnose` on a long serving log
against `rg -c -F -f LITERALS` with as many literals, and of `diagnose` on a small log against
`python -c pass`; and peak memory. Needs ripgrep on the PATH for the first.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def big_log(path: Path, mib: int) -> None:
    """A serving log with one failure at its end: decode, prefill and access lines."""
    rng = random.Random(7)
    at = datetime.datetime(2026, 11, 29, 13, 0, 0)
    size = 0
    with path.open("w") as out:
        out.write(
            f"[{at:%Y-%m-%d %H:%M:%S}] server_args=ServerArgs(model_path='/models/Qwen3.5-122B-A10B', tp_size=4, "
            "speculative_algorithm='EAGLE', mamba_scheduler_strategy='extra_buffer', disable_radix_cache=False)\n"
        )
        while size < mib * 2**20 - 4000:
            at += datetime.timedelta(milliseconds=rng.randint(1, 900))
            stamp = f"[{at:%Y-%m-%d %H:%M:%S} TP{rng.randint(0, 3)}]"
            kind = rng.random()
            if kind < 0.6:
                line = (
                    f"{stamp} Decode batch, #running-req: {rng.randint(1, 48)}, #full token: {rng.randint(100, 90000)}, "
                    f"full token usage: {rng.random():.2f}, mamba num: {rng.randint(1, 99)}, mamba usage: "
                    f"{rng.random():.2f}, accept len: {1 + rng.random() * 3:.2f}, accept rate: {rng.random():.2f}, cuda "
                    f"graph: True, gen throughput (token/s): {rng.random() * 4000:.2f}, #queue-req: {rng.randint(0, 9)}\n"
                )
            elif kind < 0.85:
                line = (
                    f"[{at:%Y-%m-%d %H:%M:%S}] INFO:     10.0.{rng.randint(0, 255)}.{rng.randint(0, 255)}:"
                    f'{rng.randint(1024, 65000)} - "POST /v1/chat/completions HTTP/1.1" {rng.choice([200, 200, 400, 503])} OK\n'
                )
            else:
                line = (
                    f"{stamp} Prefill batch, #new-seq: {rng.randint(1, 8)}, #new-token: {rng.randint(1, 8192)}, "
                    f"#cached-token: {rng.randint(0, 8192)}, full token usage: {rng.random():.2f}, #running-req: "
                    f"{rng.randint(0, 48)}, #queue-req: 0, input throughput (token/s): {rng.random() * 90000:.2f}\n"
                )
            out.write(line)
            size += len(line)
        out.write(
            f"[{at:%Y-%m-%d %H:%M:%S} TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
            '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3012, in '
            "run_scheduler_process\n    scheduler.event_loop_overlap()\n"
            '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/mem_cache/memory_pool.py", line 455, in alloc\n'
            '    assert mamba_index is not None, "Not enough space for mamba cache"\n'
            "AssertionError: Not enough space for mamba cache\n\n"
            f"[{at:%Y-%m-%d %H:%M:%S}] Received sigquit from a child process. It usually means the child failed.\n"
        )


def run(command: list[str]) -> tuple[float, float]:
    """Wall seconds and peak memory in MiB of one run."""
    start = time.perf_counter()
    with open(os.devnull, "w") as null:
        process = subprocess.Popen(command, stdout=null, stderr=null, cwd=ROOT)
        _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_maxrss / (1024 if sys.platform == "linux" else 2**20)


def in_turn(a: list[str], b: list[str], runs: int) -> tuple[list[float], list[float], float]:
    """Wall times of both, alternating, after one warm-up of each; and a's peak memory."""
    run(a), run(b)
    walls_a, walls_b, peak = [], [], 0.0
    for _ in range(runs):
        wall, memory = run(a)
        walls_a.append(wall)
        peak = max(peak, memory)
        walls_b.append(run(b)[0])
    return walls_a, walls_b, peak


def show(name: str, a: list[float], b: list[float], peak: float) -> None:
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    print(
        f"{name}: {statistics.median(a):.3f} s against {statistics.median(b):.3f} s, "
        f"ratio {ratio:.2f} (of {len(a)} pairs: {min(x / y for x, y in zip(a, b, strict=True)):.2f} to "
        f"{max(x / y for x, y in zip(a, b, strict=True)):.2f}), peak {peak:.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    doctor = [sys.executable, "-m", "mtpdoctor", "diagnose"]
    small = str(ROOT / "sample_logs" / "spec_no_buffer_with_radix.log")
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder) / "big.log"
        big_log(big, args.mib)
        sys.path.insert(0, str(ROOT))
        from mtpdoctor.kb.load import load_knowledge

        knowledge = load_knowledge()
        literals = Path(folder) / "literals"
        literals.write_text("\n".join(knowledge.literals) + "\n")
        print(f"{len(knowledge)} rules, {len(knowledge.literals)} literals; log of {args.mib} MiB")
        if shutil.which("rg"):
            rg = ["rg", "-c", "-F", "-f", str(literals), str(big)]
            show("large log, against ripgrep", *in_turn([*doctor, str(big)], rg, args.runs))
        else:
            wall, peak = run([*doctor, str(big)])
            print(f"ripgrep is not installed; diagnose of the large log: {wall:.3f} s, peak {peak:.0f} MiB")
    bare = [sys.executable, "-c", "pass"]
    show("small log, against bare Python", *in_turn([*doctor, small], bare, max(args.runs, 9)))


if __name__ == "__main__":
    main()
