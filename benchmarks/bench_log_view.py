"""How soon a huge log is on the screen, how it scrolls, and what memory it takes.

    python benchmarks/bench_log_view.py [GIB] [LOG]

Makes a log of GIB gibibytes (default 1) in a temporary folder unless LOG names one, opens it in the application
and prints seconds, milliseconds and MiB as JSON. Keys are typed into a pseudo-terminal and timed up to the last
byte drawn. The goals: end shown in under 1 s, a key painted in under 50 ms, less than 300 MB. Linux only.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import resource
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from mtpdoctor.diagnose.given import Given
from mtpdoctor.tui.app import DoctorApp
from mtpdoctor.tui.log.view import LogView
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.start.found import Places
from mtpdoctor.tui.workers import Doctor

NOWHERE = Places(None, None, None, None, None)


class NoProbe(Doctor):
    def probe(self, session: Session) -> None:
        return None


def make_log(path: Path, size: int) -> None:
    """A healthy start, then batches of eight ranks, then a death."""
    batch = "".join(
        f"[2026-01-31 12:{i // 60 % 60:02}:{i % 60:02} TP{i % 8}] Decode batch, #running-req: {i % 97}, #token: {i * 37}, "
        f"token usage: 0.{i % 100:02}, accept len: 2.{i % 100:02}, cuda graph: True, gen throughput (token/s): "
        f"{1000 + i % 1000}.{i % 100:02}, #queue-req: {i % 5}\n"
        for i in range(4000)
    ).encode()
    with path.open("wb") as file:
        file.write(b"[2026-01-31 12:00:00] The server is fired up and ready to roll!\n")
        while file.tell() < size:
            file.write(batch)
        file.write(
            b"[2026-01-31 13:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
            b'  File "/opt/sglang/srt/managers/scheduler.py", line 1, in run\n'
            b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
            b"[2026-01-31 13:00:01] Received sigquit from a child process. It usually means the child failed.\n"
        )


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measure(log: str, size: tuple[int, int]) -> dict[str, object]:
    app = DoctorApp(Session(given=Given()), NoProbe(), places=NOWHERE)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        start = time.perf_counter()
        app.open_logs((log,))
        view = app.query_one(LogView)
        while view.document is None or not view.document.count:
            await asyncio.sleep(0.005)
        view.render_line(view.room.height - 1)
        shown = time.perf_counter() - start
        while not view.document.numbered:
            await asyncio.sleep(0.005)
        numbered = time.perf_counter() - start
        while app.session.report is None:
            await asyncio.sleep(0.02)
        diagnosed = time.perf_counter() - start
        start = time.perf_counter()
        await pilot.press("home", "slash", *"out of memory")
        while view.number == 1:
            await asyncio.sleep(0.01)
        found = time.perf_counter() - start
        return {
            "lines": view.document.count,
            "end_shown_s": round(shown, 3),
            "lines_counted_s": round(numbered, 2),
            "diagnosed_s": round(diagnosed, 2),
            "search_to_the_end_s": round(found, 2),
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }


def in_a_terminal(log: str, size: tuple[int, int]) -> dict[str, object]:
    """The application in a pseudo-terminal: from a key to the last byte that it draws."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "mtpdoctor", log])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    try:
        burst(fd, 2.0)
        os.write(fd, b"3")
        burst(fd, 1.0)
        busy = [key(fd, k) for _ in range(8) for k in KEYS]
        while burst(fd, 1.5):  # until nothing is at work: the title line stands still
            pass
        os.write(fd, b"3")
        burst(fd, 1.0)
        quiet = [key(fd, k) for _ in range(8) for k in KEYS]
        resident = resident_mib(pid)
        os.write(fd, b"q")
        burst(fd, 2.0)
    finally:
        os.close(fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {
        "key_to_paint_ms_while_reading": summary(busy),
        "key_to_paint_ms": summary(quiet),
        "resident_mib": round(resident),
    }


KEYS = (b"\x1b[5~", b"\x1b[A", b"\x1b[B", b"\x1b[6~", b"g", b"\x1b[6~", b"G")


def key(fd: int, code: bytes) -> float:
    """Milliseconds from a key to the end of what is drawn for it."""
    burst(fd, 0.05)
    start = time.perf_counter()
    os.write(fd, code)
    return (burst(fd, 0.06, first=1.0) or start + 1) * 1000 - start * 1000


def burst(fd: int, quiet: float, first: float | None = None) -> float | None:
    """Reads until nothing comes for ``quiet`` seconds (``first``: for the first byte). When the last came."""
    last = None
    end = time.perf_counter() + 30
    wait = quiet if first is None else first
    while time.perf_counter() < end and select.select([fd], [], [], wait)[0]:
        try:
            os.read(fd, 1 << 16)
        except OSError:
            return last
        last = time.perf_counter()
        wait = quiet
    return last


def summary(times: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 1),
        "p95": round(statistics.quantiles(times, n=20)[-1], 1),
        "max": round(max(times), 1),
    }


def main() -> None:
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder, "server.log")
        if not log.exists():
            make_log(log, int(gib * 2**30))
        found = in_a_terminal(str(log), (80, 24)) | asyncio.run(measure(str(log), (80, 24)))
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
