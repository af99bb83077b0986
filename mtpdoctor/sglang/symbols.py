"""In which releases a module of SGLang has a name: what a program that imports it was written for.

``symbols.json.gz`` (written by ``learn_symbols``) maps each module to names by the ranges of releases that have them; the
empty name stands for the module itself, ``*module`` for all names of another one.
"""

from __future__ import annotations

import gzip
import json
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.packed import damaged

SYMBOLS_FILE = "symbols.json.gz"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Held:
    """The releases that have a name: ``ranges`` of first and last, in order; ``newest`` is the last release known."""

    ranges: tuple[tuple[Release, Release], ...]
    newest: Release

    def holds(self, release: Release) -> bool:
        return any(a <= release <= b for a, b in self.ranges)

    def before(self, release: Release) -> Release | None:
        """The last release before ``release`` that has it."""
        return max((b for _, b in self.ranges if b < release), default=None)

    def after(self, release: Release) -> Release | None:
        """The first release after ``release`` that has it."""
        return min((a for a, _ in self.ranges if a > release), default=None)


@lru_cache(maxsize=2)
def _table(path: Path, changed: int) -> dict[str, Any]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            table: dict[str, Any] = json.load(file)
        if table["format"] != FORMAT or not isinstance(table["modules"], dict):
            raise ValueError("another format")
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError, KeyError, TypeError) as error:
        raise damaged(path, error) from None
    return table


def _load(folder: Path) -> dict[str, Any]:
    path = folder / SYMBOLS_FILE
    try:
        return _table(path, path.stat().st_mtime_ns)
    except OSError:
        return {"releases": [], "modules": {}}


def read_symbols(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The table expanded by release; empty without one."""
    table = _load(folder)
    releases: list[str] = table["releases"]
    out: dict[str, dict[str, list[str]]] = {release: {} for release in releases}
    for module, spans in table["modules"].items():
        for written, names in spans.items():
            for i in numbers(written):
                out[releases[i]].setdefault(module, []).extend(n for n in names if n)
    return out


def held(folder: Path, module: str, name: str = "") -> Held | None:
    """The releases in which ``module`` has ``name`` (without a name: in which there is the module); None where no
    release has it, or nothing is known."""
    table = _load(folder)
    found = sorted(_held(table, module, name, set()))
    if not found:
        return None
    releases = [parse_release(r) for r in table["releases"]]
    ranges: list[list[int]] = []
    for i in found:
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    return Held(tuple((releases[a], releases[b]) for a, b in ranges), releases[-1])


def _held(table: dict[str, Any], module: str, name: str, seen: set[str]) -> set[int]:
    spans: dict[str, list[str]] = table["modules"].get(module, {})
    out: set[int] = set()
    if module in seen:
        return out
    seen.add(module)
    if not name and not spans:  # a folder without __init__.py
        for other, of in table["modules"].items():
            if other.startswith(f"{module}."):
                out.update(n for written, names in of.items() if "" in names for n in numbers(written))
    for written, names in spans.items():
        if name in names:
            out.update(numbers(written))
        if name:
            for star in names:
                if star.startswith("*"):
                    out |= _held(table, star[1:], name, seen) & set(numbers(written))
    if name:  # a submodule can be imported by name too
        out |= _held(table, f"{module}.{name}", "", seen)
    return out


def moved_to(folder: Path, name: str, release: Release) -> tuple[str, ...]:
    """Modules of ``release`` that define ``name``."""
    table = _load(folder)
    number = next((i for i, r in enumerate(table["releases"]) if parse_release(r) == release), None)
    if number is None or not name:
        return ()
    return tuple(
        module
        for module, spans in table["modules"].items()
        if any(name in names and number in numbers(written) for written, names in spans.items())
    )


def written_numbers(held: list[int]) -> str:
    """Numbers of releases, in order, as ranges: "0-5 9-62"."""
    out: list[list[int]] = []
    for i in held:
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return " ".join(f"{a}-{b}" for a, b in out)


def numbers(written: str) -> list[int]:
    """What ``written_numbers`` wrote."""
    out: list[int] = []
    for part in written.split():
        first, _, last = part.partition("-")
        out.extend(range(int(first), int(last) + 1))
    return out
