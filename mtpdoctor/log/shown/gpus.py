"""GPUs as nvidia-smi, sglang.check_env, torch's collect_env and kubectl print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_ROW = lazy(r"^\|\s+(\d{1,2})\s+([A-Z][\w .+()/-]{2,60}?)\s+(?:On|Off|N/A)\s+\|\s+[0-9A-F]{8}:[0-9A-F]{2}:")
_MEMORY = lazy(r"\|\s+(\d{1,8})MiB\s*/\s*(\d{1,8})MiB\s*\|")
_MIG = lazy(r"\|\s+(Enabled|Disabled)\s+\|\s*$")
_LISTED = lazy(
    r"^GPU (\d{1,2}(?:,\s?\d{1,2})*): ((?:NVIDIA|AMD|Tesla|GeForce|Quadro|Radeon|GRID|Instinct)\b[^(\n]{0,60}?)\s*(?:\(UUID: .*)?$"
)
_POD = lazy(r"^\s+(?:nvidia|amd)\.com/gpu:\s+(\d{1,2})\s*$")
_NVIDIA_SMI_PROCESSES = "Processes:"
_MOST = 64  # GPUs of one machine


def tables(lines: Sequence[Line]) -> Iterator[Observation]:
    """nvidia-smi's table."""
    rows: dict[int, tuple[str, Line]] = {}
    sizes: list[float] = []
    migs: set[str] = set()
    row: int | None = None
    before: Line | None = None
    most = 0  # rows of a table so far
    for line in (*lines, None):
        body = line.body if line is not None else "NVIDIA-SMI"
        cut = line is None or (before is not None and line.number > before.number + 1)
        if cut and len(rows) < most and before is not None and before.body.startswith(("|", "+")):
            rows = {}  # where the log, or what is read of it, ends amid one more table
        before = line
        if "NVIDIA-SMI" in body:
            yield from _told(rows, sizes, migs)
            most = max(most, len(rows))
            rows, sizes, migs, row = {}, [], set(), None
        elif not body.startswith("|"):
            continue
        elif _NVIDIA_SMI_PROCESSES in body:
            row = None
        elif line is not None and (m := _ROW.match(body)) is not None:
            row = int(m[1])
            rows.setdefault(row, (m[2].strip(), line))
        elif row is not None and (m := _MEMORY.search(body)) is not None:
            sizes.append(round(int(m[2]) / 1024, 2))
        elif row is not None and (m := _MIG.search(body)) is not None:
            migs.add(m[1])


def _told(rows: dict[int, tuple[str, Line]], sizes: Sequence[float], migs: set[str]) -> Iterator[Observation]:
    if not rows or set(rows) != set(range(len(rows))):
        return  # a part of the table
    line = rows[0][1]
    yield Observation("host.gpu.count", len(rows), line)
    names = list(dict.fromkeys(name for name, _ in rows.values()))
    yield from _kinds(names, line)
    if len(sizes) == len(rows) and max(sizes) - min(sizes) < 0.5:
        yield Observation("host.gpu.memory_gib", sizes[0], line)
    if migs:
        yield Observation("host.gpu.mig", "Enabled" in migs, line)


def _kinds(names: Sequence[str], line: Line) -> Iterator[Observation]:
    if not any("..." in name for name in names):  # cut to the column's width
        yield Observation("host.gpu.kind_count", len(names), line)
        yield Observation("host.gpu.kinds", tuple(names), line)


def lists(lines: Sequence[Line]) -> Iterator[Observation]:
    """``GPU 0,1: name`` of check_env, ``GPU 0: name`` of collect_env, the same with its UUID of nvidia-smi -L."""
    rows: dict[int, str] = {}
    first: Line | None = None
    for line in lines:
        if not line.body.startswith("GPU ") or (m := _LISTED.match(line.body)) is None:
            continue
        numbers = [int(n) for n in m[1].split(",")]
        if numbers[0] == 0 and first is not None:
            yield from _listed(rows, first)
            rows, first = {}, None
        first = first or line
        rows |= dict.fromkeys(numbers, m[2])
    if first is not None:
        yield from _listed(rows, first)


def _listed(rows: dict[int, str], line: Line) -> Iterator[Observation]:
    if set(rows) == set(range(len(rows))) and len(rows) <= _MOST:
        yield Observation("host.gpu.count", len(rows), line)
        yield from _kinds(list(dict.fromkeys(rows.values())), line)


def of_pod(lines: Sequence[Line]) -> Iterator[Observation]:
    """What ``kubectl describe`` tells under "Limits:"."""
    limits = False
    for line in lines:
        if "Limits:" in line.body or "Requests:" in line.body:
            limits = "Limits:" in line.body
        elif limits and (m := _POD.match(line.body)) is not None:
            yield Observation("host.gpu.count", int(m[1]), line)
