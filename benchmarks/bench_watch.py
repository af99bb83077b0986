"""What watching costs: CPU of the doctor and its guard while a server serves, and how fast output may come.

    python benchmarks/bench_watch.py [--seconds 20]

The server is a small program that prints the batch lines of a serving SGLang. Percentages are of one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
SERVING = """
import sys, time
line = ("[2026-11-29 15:20:{:02} TP0] Decode batch, #running-req: 8, #token: {}, token usage: 0.12, accept len: 2.41, "
        "accept rate: 0.80, cuda graph: True, gen throughput (token/s): 1834.21, #queue-req: 0")
print("server_args=ServerArgs(model_path='M', port=1)")
print("The server is fired up and ready to roll!", flush=True)
end, count = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    print(line.format(count % 60, count), flush=True)
    count += 1
    time.sleep(1 / float(sys.argv[2]))
"""
FLOOD = """
import os
block = (b"x" * 99 + b"\\n") * 10000
for _ in range(500):
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    for rate in (1, 10, 100):
        doctor, guard = serving(seconds, rate)
        print(f"serving, {rate:3} lines/s: doctor {doctor:.2f} %, guard {guard:.2f} % of one core")
    for pty in (False, True):
        print(f"{'terminal' if pty else 'pipe'}: {flood(pty):.0f} MB/s into the log, nothing lost")


def serving(seconds: float, rate: int) -> tuple[float, float]:
    """CPU of the doctor and of the guard in percent of one core, from ready on."""
    with tempfile.TemporaryDirectory() as state:
        env = {**os.environ, "MTPDOCTOR_STATE": state, "PYTHONPATH": str(REPO)}
        code = (
            "import os, sys\n"
            "from mtpdoctor.cli.watching import Screen\n"
            "from mtpdoctor.watch.plan import LaunchPlan\n"
            "from mtpdoctor.watch.session import LaunchSession\n"
            "from mtpdoctor.watch.types import Ready\n"
            "plan = LaunchPlan(argv=tuple(sys.argv[1:]), env=dict(os.environ), prove=False)\n"
            "session, screen = LaunchSession(plan), Screen()\n"
            "for event in session.events():\n"
            "    screen.show(event, event.at)\n"
            "    if isinstance(event, Ready):\n"
            "        print('READY', session._child.guard, file=sys.stderr, flush=True)\n"
        )
        server = [sys.executable, "-c", SERVING, str(seconds + 2), str(rate)]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *server],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        guard = next(int(line.split()[1]) for line in process.stderr if line.startswith("READY"))
        time.sleep(1.0)
        before = cpu(process.pid), cpu(guard)
        time.sleep(seconds)
        after = cpu(process.pid), cpu(guard)
        process.communicate()
    doctor, own = (100 * (b - a) / seconds for a, b in zip(before, after, strict=True))
    return doctor, own


def flood(pty: bool) -> float:
    """MB/s of a program that writes as fast as it can, until all of it is in the log."""
    from mtpdoctor.watch.spawn import spawn

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        started = time.monotonic()
        child = spawn([sys.executable, "-c", FLOOD], os.environ, log=str(log), pty=pty)
        while child.wait(1.0) is None:
            pass
        took = time.monotonic() - started
        child.close()
        size = log.stat().st_size
        assert size == 500_000_000, size
        return size / took / 1e6


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    main()
