"""Folding many log lines into a few words: what follows from a cause, which lines, which ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

_EXCEPTION = lazy(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt|Exit|Warning))\b")
_KNOWN = (
    ("sigquit", "sigquit"),
    ("kill_process_tree", "kill_process_tree"),
    ("EOFError", "EOFError"),
    ("ProcessGroupNCCL", "NCCL watchdog"),
    ("scheduler is dead", "scheduler is dead"),
    ("Broken pipe", "broken pipe"),
    ("Connection reset", "connection reset"),
    ("Connection refused", "connection refused"),
    ("resource_tracker", "resource_tracker"),
    ("Segmentation fault", "segmentation fault"),
    ("crash diagnostics", "crash diagnostics"),
    ("Killed", "Killed"),
    ("Terminated", "Terminated"),
)
_EXIT = lazy(r"exit(?:ed|s)?(?: with)?(?: exit)?[ -]?(?:code|status)[ :=]*(-?\d+)", re.IGNORECASE)


def label(text: str) -> str:
    """A name for a line, a few words at most."""
    if m := _EXIT.search(text):
        return f"exit code {m[1]}"
    lowered = text.lower()
    for word, name in _KNOWN:
        if word.lower() in lowered:
            return name
    if m := _EXCEPTION.match(text):
        return m[1]
    return " ".join(text.split()[:4])[:32].rstrip(" :,.") or "blank"


def labels(texts: Iterable[str], most: int = 4) -> str:
    """The names of lines, each once, in order: "sigquit, EOFError and 2 more kinds"."""
    names = list(dict.fromkeys(label(t) for t in texts))
    more = len(names) - most
    if more <= 0:
        return ", ".join(names)
    return ", ".join(names[:most]) + f" and {more} more kind{'s' if more > 1 else ''}"


def line_numbers(lines: Sequence[Line], files: Sequence[str], most: int = 6) -> str:
    """ "line 45", "lines 45, 47-49", "rank1.log:12, rank2.log:9 ..."."""
    several = len(files) > 1
    parts: list[str] = []
    for file in dict.fromkeys(line.file for line in lines):
        ranges = _ranges(sorted({line.number for line in lines if line.file == file}))
        prefix = f"{files[file]}:" if several and 0 <= file < len(files) else ""
        parts.extend(prefix + r for r in ranges)
    shown = ", ".join(parts[:most]) + (" ..." if len(parts) > most else "")
    if several:
        return shown
    return f"line {shown}" if len({line.number for line in lines}) == 1 else f"lines {shown}"


def _ranges(numbers: list[int]) -> list[str]:
    out: list[list[int]] = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in out]


def ranks_note(ranks: Sequence[str]) -> str:
    """ "TP3", "x8, first TP3"."""
    if not ranks:
        return ""
    return ranks[0] if len(ranks) == 1 else f"x{len(ranks)}, first {ranks[0]}"
