"""How long ``mtpdoctor check`` takes as a process, with rules.

    python benchmarks/bench_check.py [RUNS]

Recorded commands (``tests/data/verdicts``), accepted and refused ones, of every recorded release; wall and
CPU time of whole processes, the knowledge compiled before. The first run of all compiles it.
"""

from __future__ import annotations

import json
import lzma
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "data" / "models"


def commands(count: int) -> list[list[str]]:
    out = []
    files = sorted((ROOT / "tests" / "data" / "verdicts").glob("*.jsonl.xz"))
    for file in files:
        with lzma.open(file, "rt") as stream:
            rows = [json.loads(line) for line in stream]
        for row in rows[:: max(1, len(rows) * len(files) // count)]:
            major, minor = row["gpu"]["sm"]
            gpu = f"{row['gpu']['count']}xsm{major}{minor}@{row['gpu']['gib']}"
            argv = [word.replace("{models}", str(MODELS)) for word in row["argv"]]
            env = [f"{k}={v}" for k, v in row["env"].items()]
            launch = [*env, "python", "-m", "sglang.launch_server", *argv]
            release = file.name.removesuffix(".jsonl.xz")
            out.append(["--json", "--gpu", gpu, "--sglang", release, "--", *launch])
    return out[:count]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    walls, cpus, slow = [], [], ("", 0.0)
    for i, arguments in enumerate([[*commands(1)[0]], *commands(runs)]):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "mtpdoctor", "check", *arguments],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if i == 0:
            continue
        walls.append(wall)
        cpus.append(cpu)
        slow = max(slow, (" ".join(arguments), wall), key=lambda s: s[1])
    for name, values in (("wall", walls), ("cpu", cpus)):
        values.sort()
        p95 = values[int(len(values) * 0.95)]
        print(
            f"{name}: median {statistics.median(values) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, {len(values)} runs"
        )
    print(f"slowest, {slow[1] * 1000:.0f} ms: {slow[0]}")


if __name__ == "__main__":
    main()
