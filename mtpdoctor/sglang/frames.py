"""The index of where functions stand, release by release: which releases a traceback can be from.

``frames.json.gz`` (written by ``learn_frames``) is several gzip members in a row: the first holds
the releases and where each file's table lies in the rest, each further one the table of one file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.sglang.packed import damaged

FRAMES_FILE = "frames.json.gz"
FORMAT = 2
_GZIP = 31  # zlib's name for the gzip format
_KEPT = 48  # tables of files that stay unpacked

Spans = list[list[int]]  # [first line, last line] of each function of one name
Functions = dict[str, Spans]


class _Index:
    """Releases of the index, and each file's table, unpacked when asked for; empty without an index."""

    def __init__(self, folder: Path) -> None:
        path = folder / FRAMES_FILE
        self.releases: list[str] = []
        self.files: dict[str, list[int]] = {}
        if path.is_file():
            first = zlib.decompressobj(_GZIP)
            try:
                head = json.loads(first.decompress(path.read_bytes()))
                self.releases, self.files = head["releases"], head["files"]
                whole = max((start + size for start, size in self.files.values()), default=0)
            except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
                raise damaged(path, error) from None
            if head.get("format") != FORMAT or len(first.unused_data) < whole:
                raise damaged(path, "another format, or cut off")
            self._rest = first.unused_data
        self._path = path
        self._tables: dict[str, dict[str, Any]] = {}

    def table(self, file: str) -> dict[str, list[tuple[int, int, list[int]]]]:
        table = self._tables.get(file)
        if table is None:
            start, size = self.files[file]
            try:
                table = json.loads(zlib.decompress(self._rest[start : start + size], _GZIP))
            except (zlib.error, ValueError) as error:
                raise damaged(self._path, error) from None
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            self._tables[file] = table
        return table


@lru_cache(maxsize=2)
def _index_of(folder: Path, changed: int) -> _Index:
    return _Index(folder)


def _index(folder: Path) -> _Index:
    """Kept from one log to the next (a triage reads thousands), until the file changes."""
    try:
        return _index_of(folder, (folder / FRAMES_FILE).stat().st_mtime_ns)
    except OSError:
        return _Index(folder)


def read_frames(folder: Path) -> dict[str, dict[str, Functions]]:
    """The index expanded by release; empty when there is none."""
    index = _Index(folder)
    out: dict[str, dict[str, Functions]] = {release: {} for release in index.releases}
    for file in index.files:
        for name, rows in index.table(file).items():
            for first, last, flat in rows:
                spans = [[flat[i], flat[i] + flat[i + 1]] for i in range(0, len(flat), 2)]
                for release in index.releases[first : last + 1]:
                    out[release].setdefault(file, {})[name] = spans
    return out


def releases_of_frames(
    folder: Path, frames: Iterable[tuple[str, int, str]]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Releases in which every ``(path, line, function)`` can stand, and the frames that decided it.

    Frames of files or functions that the index does not have say nothing. The set is empty when the frames
    contradict one another (a patched installation) or none said anything.
    """
    index = _index(folder)
    every = set(range(len(index.releases)))
    left = set(every)
    used: list[str] = []
    parsed: dict[str, dict[str, list[tuple[int, int, list[int]]]]] = {}
    for where, line, function in frames:
        file = _known_file(where, index.files)
        if file is None:
            continue
        if file not in parsed:
            parsed[file] = index.table(file)
        fits = {
            at
            for first, last, flat in parsed[file].get(function, ())
            if any(flat[i] <= line <= flat[i] + flat[i + 1] for i in range(0, len(flat), 2))
            for at in range(first, last + 1)
        }
        if fits and fits != every:
            left &= fits
            used.append(f"{file.rsplit('/', 1)[-1]}:{line} in {function}")
    return (frozenset(index.releases[i] for i in left), tuple(used)) if used else (frozenset(), ())


def _known_file(where: str, files: Mapping[str, object]) -> str | None:
    parts = where.replace("\\", "/").split("/")
    for start, part in enumerate(parts):
        candidate = "/".join(parts[start:])
        if part == "sglang" and candidate in files:
            return candidate
    return None
