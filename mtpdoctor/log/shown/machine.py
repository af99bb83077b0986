"""Memory, shared memory, processors and the system as df, free, /proc/meminfo, lscpu, uname and docker inspect print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_DF = lazy(
    r"^\s*(\S+)\s+(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)i?\s+(\S+)\s+(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)i?\s+\d+%\s+/dev/shm\s*$"
)
_BLOCKS = lazy(r"\b(1[KMGTB]|512|1024)-blocks\b")
_OF_BLOCK = {"1B": "", "512": "S", "1024": "K"}
_IN = {"": 2**30, "S": 2**21, "K": 2**20, "M": 2**10, "G": 1.0, "T": 2**-10, "P": 2**-20}  # units in one GiB
_FREE = lazy(r"^\s*(Mem|Swap):\s+(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)i?B?\s+(.*)$")
_LAST = lazy(r"^(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)i?B?\s*$")
_FREE_COMMAND = lazy(r"\bfree\s+-[a-z]*([kmgh])\b")
_MEMINFO = lazy(r"^\s*(MemTotal|MemAvailable|SwapTotal):\s+(\d{1,15}) kB\s*$")
_OF_MEMINFO = {"MemTotal": "ram_gib", "MemAvailable": "ram_free_gib", "SwapTotal": "swap_gib"}
_LSCPU = lazy(r"^\s*(Architecture|CPU\(s\)|NUMA node\(s\)):\s+(\S+)\s*$")
_UNAME = lazy(r"^Linux \S+ (\d+\.\d+\S*) .* (x86_64|aarch64)(?: \S+)? GNU/Linux\s*$")
_MACHINE = lazy(r"^(x86_64|aarch64)$")
_OS = lazy(r"^OS: .*\((x86_64|aarch64)\)\s*$")  # collect_env
_SHM = lazy(r"^\s*\"ShmSize\":\s*(\d{1,15}),?\s*$")
_MEMORY_LIMIT = lazy(r"^\s*\"Memory\":\s*(\d{1,15}),?\s*$")
_IMAGE = lazy(r"(?:File \"|^|\s)/sgl-workspace/|@[0-9a-f]{12}:")  # of the official image; a container's name


def shared_memory(lines: Sequence[Line]) -> Iterator[Observation]:
    block = "K"
    for line in lines:
        if "-blocks" in line.body and (m := _BLOCKS.search(line.body)) is not None:
            block = _OF_BLOCK.get(m[1], m[1][-1])
        elif "/dev/shm" in line.body and (m := _DF.match(line.body)) is not None:
            yield Observation("host.shm_gib", _gib(m[2], m[3] or block), line)
            yield Observation("host.shm_free_gib", _gib(m[5], m[6] or block), line)
            if m[1] == "shm":  # what docker calls it
                yield Observation("host.container", True, line)


def _gib(number: str, unit: str) -> float:
    return round(float(number) / _IN[unit], 4)


def memory(lines: Sequence[Line]) -> Iterator[Observation]:
    """``free``: without units it says what it was asked for; where the question is not there, the size tells."""
    asked = usual = ""
    for line in lines:
        body = line.body
        if "free" in body and (m := _FREE_COMMAND.search(body)) is not None:
            asked = m[1].upper().replace("H", "")
        elif (m := _FREE.match(body)) is not None:
            if m[1] == "Mem":
                usual = asked or _unit_of(float(m[2]))
            unit = m[3] or usual
            if not unit:
                continue
            name = "host.ram_gib" if m[1] == "Mem" else "host.swap_gib"
            yield Observation(name, _gib(m[2], unit), line)
            rest = m[4].split()
            if m[1] == "Mem" and len(rest) == 5 and (last := _LAST.match(rest[-1])) is not None:
                yield Observation("host.ram_free_gib", _gib(last[1], last[2] or unit), line)


def _unit_of(number: float) -> str:
    """GiB up to 4 TiB of them; else MiB from 16 GiB on; else KiB."""
    return (
        "G" if 8 <= number <= 4096 else "M" if 16_000 <= number < 4_200_000 else "K" if number > 8e6 else ""
    )


def meminfo(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        if " kB" in line.body and (m := _MEMINFO.match(line.body)) is not None:
            yield Observation(f"host.{_OF_MEMINFO[m[1]]}", round(int(m[2]) / 2**20, 2), line)


def processors(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        if (m := _LSCPU.match(line.body)) is None:
            continue
        if m[1] == "Architecture":
            yield Observation("host.machine", m[2], line)
        elif m[2].isdecimal() and len(m[2]) < 6:
            yield Observation("host.cpus" if m[1] == "CPU(s)" else "host.numa_nodes", int(m[2]), line)


def system(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        m = _UNAME.match(line.body) or None
        if m is not None:
            yield Observation("host.machine", m[2], line)
            yield Observation("host.wsl", "microsoft" in m[1].lower(), line)
        elif (m := _MACHINE.match(line.body) or _OS.match(line.body)) is not None:
            yield Observation("host.machine", m[1], line)


def inspected(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        if (m := _SHM.match(line.body)) is not None:
            yield Observation("host.shm_gib", round(int(m[1]) / 2**30, 4), line)
            yield Observation("host.container", True, line)
        elif (m := _MEMORY_LIMIT.match(line.body)) is not None and int(m[1]) > 0:
            yield Observation("log.memory_limit_gib", round(int(m[1]) / 2**30, 2), line)


def container(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        if _IMAGE.search(line.text) is not None:
            yield Observation("host.container", True, line)
            return
