"""Limits of a process (``ulimit -a``, ``ulimit -l``, /proc/PID/limits, check_env), in bytes where they are sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_ROW = lazy(
    r"^\s*(open files|max locked memory|stack size|max user processes|virtual memory)\s+\((?:(kbytes), )?-\w\)\s+(\d{1,19}|unlimited)\s*$"
)
_PROC = lazy(
    r"^Max (open files|locked memory|stack size|processes|address space)\s+(\d{1,20}|unlimited)\s+(?:\d{1,20}|unlimited)\s*(?:bytes|files|processes)?\s*$"
)
_ASKED = lazy(r"\bulimit -(?:S|H)?([nlsu])\s*$")
_ANSWER = lazy(r"^(\d{1,19}|unlimited)$")
_SOFT = lazy(r"^ulimit soft: (\d{1,19})\s*$")
_NAMES = {
    "open files": "nofile",
    "max locked memory": "memlock",
    "locked memory": "memlock",
    "stack size": "stack",
    "max user processes": "nproc",
    "processes": "nproc",
    "virtual memory": "as",
    "address space": "as",
}
_LETTERS = {"n": ("nofile", 1), "l": ("memlock", 1024), "s": ("stack", 1024), "u": ("nproc", 1)}


def table(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        if (m := _ROW.match(line.body)) is not None:
            yield _of(_NAMES[m[1]], m[3], 1024 if m[2] else 1, line)
        elif line.body.startswith("Max ") and (m := _PROC.match(line.body)) is not None:
            yield _of(_NAMES[m[1]], m[2], 1, line)


def answers(lines: Sequence[Line]) -> Iterator[Observation]:
    asked: tuple[str, int] | None = None
    for line in lines:
        if asked is not None and (m := _ANSWER.match(line.body.strip())) is not None:
            yield _of(asked[0], m[1], asked[1], line)
        asked = None
        if "ulimit -" in line.body and (m := _ASKED.search(line.body)) is not None:
            asked = _LETTERS[m[1]]
        elif (m := _SOFT.match(line.body)) is not None:
            yield _of("nofile", m[1], 1, line)


def _of(name: str, value: str, unit: int, line: Line) -> Observation:
    return Observation(f"host.limit.{name}", None if value == "unlimited" else int(value) * unit, line)
