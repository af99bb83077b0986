"""What the processes of a launch are doing right now. Linux's /proc, NVML and py-spy where they are there."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line
from mtpdoctor.watch.host_signs import signs
from mtpdoctor.watch.types import Process

if TYPE_CHECKING:
    import psutil

__all__ = ["look", "signs"]

STACK_S = 5.0  # seconds that py-spy gets for one process
STACKS_S = 20.0  # and for all
FRAMES = 30
_STATES = {"running": "running", "disk-sleep": "disk sleep", "zombie": "zombie", "stopped": "stopped"}
_RANK = re.compile(r"^sglang::(?:scheduler|data_parallel)\w*?_((?:[A-Z][A-Z_]*\d+_?)+)")
_THREAD = re.compile(r'^Thread (?:0x)?[0-9a-fA-F]+(?: \(([^)]*)\))?(?:: "?([^"\n]*)"?)?')


def look(pids: Iterable[int], *, sample_s: float = 0.5, stacks: bool = True) -> tuple[Process, ...]:
    """Every process of ``pids`` and all their children. Takes ``sample_s``, and with ``stacks`` up to STACKS_S more.

    What cannot be read (another user's process, no py-spy, no NVIDIA driver) is None or ().
    """
    import psutil

    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            found.setdefault(pid, process)
            for child in process.children(recursive=True):
                found.setdefault(child.pid, child)
    before = {pid: _counters(process) for pid, process in found.items()}
    started = time.monotonic()
    time.sleep(sample_s)
    after = {pid: _counters(process) for pid, process in found.items()}
    took = max(time.monotonic() - started, 1e-3)
    gpus = _gpu_use(found)
    until = time.monotonic() + STACKS_S
    seen = []
    for pid, process in found.items():
        try:
            with process.oneshot():
                name, state = process.name(), _state(process)
                words = process.cmdline() if state != "zombie" else []
        except psutil.Error:
            continue
        title = words[0] if words and words[0].startswith("sglang::") else name
        rank = rank_of(title)
        python = state != "zombie" and ("python" in name or title.startswith("sglang::"))
        stack = _stack(pid, until) if stacks and python else ()
        if not stack:
            stack = _kernel_wait(pid, state)
        seen.append(
            Process(
                pid=pid,
                name=one_line(title)[:60],
                rank=rank,
                state=state,
                cpu_percent=_rate(before[pid][0], after[pid][0], took, 100.0),
                read_bytes_per_s=_rate(before[pid][1], after[pid][1], took),
                gpu_percent=_gpu_of(pid, rank, gpus),
                stack=stack,
            )
        )
    return tuple(seen)


def rank_of(title: str) -> str | None:
    """``sglang::scheduler_DP1_TP3`` -> ``DP1 TP3``; None for what is no rank."""
    m = _RANK.match(title)
    return m[1].strip("_").replace("_", " ") if m else None


def _counters(process: psutil.Process) -> tuple[float | None, float | None]:
    """Seconds of processor time and bytes asked for, since the process began.

    ``read_chars`` counts reads from the page cache and network file systems too, ``read_bytes`` what came from a
    block device and faults of mapped files: a rank reads where either grows.
    """
    import psutil

    cpu = read = None
    with suppress(psutil.Error):
        times = process.cpu_times()
        cpu = times.user + times.system
    with suppress(psutil.Error, AttributeError, OSError):
        io = process.io_counters()
        read = float(max(io.read_bytes, getattr(io, "read_chars", 0)))
    return cpu, read


def _rate(before: float | None, after: float | None, took: float, factor: float = 1.0) -> float | None:
    if before is None or after is None:
        return None
    return round(max(after - before, 0.0) / took * factor, 1)


def _state(process: psutil.Process) -> str:
    """The state of the process; that of a thread where one is running or cannot be interrupted."""
    state = str(process.status())
    if state in ("zombie", "stopped", "disk-sleep"):
        return _STATES[state]
    letters = set()
    for stat in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(OSError):
            letters.add(stat.read_bytes().rpartition(b")")[2].split()[0])
    if b"D" in letters:
        return "disk sleep"
    return "running" if b"R" in letters or state == "running" else "sleeping"


def _kernel_wait(pid: int, state: str) -> tuple[str, ...]:
    """Where the kernel holds it: the only stack there is without py-spy."""
    if state == "zombie":
        return ()
    waits = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*"))[:64]:
        with suppress(OSError):
            letter = (task / "stat").read_bytes().rpartition(b")")[2].split()[0]
            wait = (task / "wchan").read_text()
            if wait not in ("", "0") and (letter == b"D" or task.name == str(pid)):
                waits.append(f"in the kernel: {one_line(wait)[:60]}")
    return tuple(dict.fromkeys(waits))[:3]


# -- Python stacks -------------------------------------------------------------------------------------


def py_spy() -> str | None:
    """The py-spy that is installed beside this Python or on the path."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def _stack(pid: int, until: float) -> tuple[str, ...]:
    """The Python stack of the process's main (or busiest) thread, innermost last; () where it cannot be had."""
    program = py_spy()
    left = min(until - time.monotonic(), STACK_S)
    if program is None or left <= 0.2:
        return ()
    import subprocess

    try:
        done = subprocess.run(  # not blocking: the process is not stopped while it is looked at
            [program, "dump", "--nonblocking", "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=left,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return read_stack(done.stdout[: 1 << 20].decode(errors="replace")) if done.returncode == 0 else ()


def read_stack(dump: str) -> tuple[str, ...]:
    """The most telling thread of a py-spy dump: the main one, or one that runs while the main one is idle.
    Innermost frame last."""
    threads: list[tuple[str, str, list[str]]] = []
    for line in dump.splitlines():
        m = _THREAD.match(line)
        if m:
            threads.append((m[1] or "", m[2] or "", []))
        elif line.startswith((" ", "\t")) and threads and line.strip():
            threads[-1][2].append(_frame(line))
    if not threads:
        return ()
    main = next((t for t in threads if t[1] == "MainThread"), threads[0])
    active = [t for t in threads if t[0].startswith("active") and t[2]]
    chosen = main if main[0].startswith("active") or not active else active[0]
    if not chosen[2]:
        chosen = main
    return tuple(reversed(chosen[2][:FRAMES]))


def _frame(line: str) -> str:
    return one_line(mask_secrets(line.strip()))[:200]


# -- GPUs ----------------------------------------------------------------------------------------------


def _gpu_use(found: Iterable[int]) -> dict[str, int]:
    """Utilisation in percent: ``pid:N`` of the GPUs that a process holds memory on, ``gpu:N`` of each. The driver
    names processes as the host does, so that in a container none may be known."""
    use: dict[str, int] = {}
    try:
        import pynvml as nvml
    except ImportError:
        return use
    try:
        nvml.nvmlInit()
    except Exception:  # NVMLError, or no library to be loaded
        return use
    pids = set(found)
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):
                handle: Any = nvml.nvmlDeviceGetHandleByIndex(index)
                percent = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
                use[f"gpu:{index}"] = percent
                for held in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                    if held.pid in pids:
                        key = f"pid:{held.pid}"
                        use[key] = max(use.get(key, 0), percent)
    except nvml.NVMLError:
        pass
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
    return use


def _gpu_of(pid: int, rank: str | None, use: dict[str, int]) -> int | None:
    known = use.get(f"pid:{pid}")
    if known is not None or rank is None or any(key.startswith("pid:") for key in use):
        return known
    m = re.search(r"\bTP(\d+)\b", rank)
    return use.get(f"gpu:{m[1]}") if m else None
