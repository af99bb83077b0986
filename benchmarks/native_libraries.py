"""Holds ``knowledge/releases/native_libraries.json`` against real wheels: does each distribution bring the library of its rows?

    pip download --no-deps --dest WHEELS nvidia-cudnn-cu12 nvidia-cudnn-cu13 ...
    python benchmarks/native_libraries.py WHEELS

Printed are rows that a wheel at hand does not bear out, and libraries of the wheels that no row names.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "knowledge" / "releases" / "native_libraries.json"
_LIBRARY = re.compile(r"(?:^|/)([\w+.-]+?)\.so(?:\.(\d+)[\d.]*)?$")


def brought(folder: Path) -> dict[str, dict[str, set[str]]]:
    """Distribution -> stem of a library -> its numbers."""
    out: dict[str, dict[str, set[str]]] = {}
    for wheel in sorted(folder.glob("*.whl")):
        found = out.setdefault(wheel.name.split("-")[0].replace("_", "-").lower(), {})
        for name in zipfile.ZipFile(wheel).namelist():
            if (m := _LIBRARY.search(name)) is not None:
                found.setdefault(m[1], set()).add(m[2] or "")
    return out


def differences(table: dict[str, dict[str, object]], wheels: dict[str, dict[str, set[str]]]) -> list[str]:
    out = []
    for stem, row in table.items():
        pip, numbers = row.get("pip", {}), row.get("so", {})
        assert isinstance(pip, dict)
        assert isinstance(numbers, dict)
        for cuda, requirement in pip.items():
            name = requirement.partition("==")[0]
            if name not in wheels:
                continue
            there = wheels[name].get(stem)
            if there is None:
                out.append(f"{name} has no {stem}.so")
            elif numbers and cuda not in {numbers.get(number) for number in there}:
                out.append(
                    f"{name} has {stem}.so.{'/'.join(sorted(there))}, which the row takes for another CUDA than {cuda}"
                )
    for name, libraries in wheels.items():
        out += [f"no row names {stem}.so of {name}" for stem in sorted(libraries) if stem not in table]
    return out


if __name__ == "__main__":
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["libraries"]
    print("\n".join(differences(rows, brought(Path(sys.argv[1])))) or "nothing differs")
