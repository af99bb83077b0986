"""Names that a file of SGLang has only where a package is there, or under a condition.

``optional.json`` (written by ``learn_optional``) maps each file to names, and these to "module|conditions" by the ranges
of the releases in which it is so. Conditions are names ("try": without the module the name is None or not there).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.by_release import Row, rows_by_release
from mtpdoctor.sglang.store import read_table
from mtpdoctor.sglang.symbols import numbers

OPTIONAL_FILE = "optional.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Optional:
    """Where a name comes from, and what has to hold for it to be there."""

    module: str
    conditions: tuple[str, ...]

    @property
    def package(self) -> str:
        """The import name of the package; "sglang" for SGLang's own modules."""
        return "sglang" if self.module.startswith(".") else self.module.split(".")[0]

    @property
    def tried(self) -> bool:
        return "try" in self.conditions


def _load(folder: Path) -> Any:
    path = folder / OPTIONAL_FILE
    return read_table(path) if path.exists() else {"releases": [], "files": {}}


def read_optional(folder: Path) -> dict[str, list[Row]]:
    """Release -> (file, name, how); empty without a table."""
    return rows_by_release(_load(folder))


def optional_in(folder: Path, file: str, name: str, release: Release | None) -> Optional | None:
    """How ``file`` ("sglang/srt/...") comes by ``name`` in the release (where it is not known: in the newest that has it
    so); None where the name is there in any case, or is none of the file's."""
    table = _load(folder)
    at = _order(tuple(table["releases"])).get(release) if release is not None else None
    found = ""
    for how, written in table["files"].get(file, {}).get(name, {}).items():
        if at is None or at in numbers(written):
            found = how
    if not found:
        return None
    module, _, conditions = found.partition("|")
    return Optional(module, tuple(conditions.split()))


@lru_cache(maxsize=2)
def _order(releases: tuple[str, ...]) -> dict[Release, int]:
    return {parse_release(r): i for i, r in enumerate(releases)}
