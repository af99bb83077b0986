"""Tables of what single files of SGLang have in some releases: file -> first -> second -> the releases, as ranges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.sglang.store import sort_releases
from mtpdoctor.sglang.symbols import numbers, written_numbers

Row = tuple[str, str, str]  # file, first, second


def rows_by_release(table: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Release -> its rows, of a table as ``write_rows`` wrote it."""
    releases: list[str] = table["releases"]
    out: dict[str, list[Row]] = {release: [] for release in releases}
    for file, firsts in table["files"].items():
        for first, seconds in firsts.items():
            for second, written in seconds.items():
                for i in numbers(written):
                    out[releases[i]].append((file, first, second))
    return out


def write_rows(path: Path, table_format: int, known: Mapping[str, list[Row]]) -> None:
    """``known[release]`` as a table, a line for each file."""
    releases = sort_releases(known)
    held: dict[Row, list[int]] = {}
    for i, release in enumerate(releases):
        for row in known[release]:
            held.setdefault(row, []).append(i)
    files: dict[str, dict[str, dict[str, str]]] = {}
    for file, first, second in sorted(held):
        files.setdefault(file, {}).setdefault(first, {})[second] = written_numbers(held[file, first, second])
    head = json.dumps({"format": table_format, "releases": releases})[1:-1]
    rows = ",\n".join(f"{json.dumps(file)}: {json.dumps(rows)}" for file, rows in files.items())
    path.write_text(f'{{{head}, "files": {{\n{rows}\n}}}}\n', encoding="utf-8")
