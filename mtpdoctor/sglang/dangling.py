"""Imports within SGLang that its own release cannot fulfil: faults of single releases.

``dangling.json`` (written by ``learn_dangling``) maps each importing file to modules and names by the ranges of the
releases whose file imports the name without there being one; the empty name stands for a module that is missing.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.by_release import Row, rows_by_release
from mtpdoctor.sglang.symbols import numbers

DANGLING_FILE = "dangling.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """The releases, in order, whose file imports what they do not have; ``every`` are all that are known."""

    releases: tuple[Release, ...]
    every: tuple[Release, ...]

    def before(self, release: Release) -> Release | None:
        """The last release before ``release`` without the fault."""
        return max((r for r in self.every if r < release and r not in self.releases), default=None)

    def after(self, release: Release) -> Release | None:
        """The first release after ``release`` without the fault."""
        return min((r for r in self.every if r > release and r not in self.releases), default=None)


@lru_cache(maxsize=2)
def _table(path: Path, changed: int) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def _load(folder: Path) -> dict[str, Any]:
    path = folder / DANGLING_FILE
    try:
        return _table(path, path.stat().st_mtime_ns)
    except OSError:
        return {"releases": [], "files": {}}


def read_dangling(folder: Path) -> dict[str, list[Row]]:
    """Release -> (file, module, name); empty without a table."""
    return rows_by_release(_load(folder))


def fault_of(folder: Path, file: str, module: str, name: str = "") -> Fault | None:
    """The releases whose ``file`` ("sglang/srt/...") imports ``name`` of ``module`` (without a name: the module) and
    lacks it; None where no release known does. Where a module is missing, Python names the first part of its path that
    is not there."""
    table = _load(folder)
    modules: dict[str, dict[str, str]] = table["files"].get(file, {})
    found: set[int] = set()
    for other, names in modules.items():
        if name:
            found.update(numbers(names.get(name, "")) if other == module else ())
        elif other == module or other.startswith(f"{module}."):
            found.update(numbers(names.get("", "")))
    if not found:
        return None
    every = tuple(parse_release(r) for r in table["releases"])
    return Fault(tuple(every[i] for i in sorted(found)), every)
