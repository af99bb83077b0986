"""What brings a shared library: pip's package for a CUDA, the system's package (``knowledge/releases/native_libraries.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.store import read_table

TABLE = "native_libraries.json"
_NAME = lazy(r"([\w+.-]+?)(?:-[0-9a-f]{8})?\.so(?:\.(\d+)[\d.]*)?\Z")


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """``pip``: CUDA's major number -> distribution, "" for any; ``cuda``: the one that the library's number stands for."""

    name: str
    pip: Mapping[str, str]
    cuda: str | None
    apt: str | None
    dnf: str | None


def native_library(name: str) -> NativeLibrary | None:
    """What is known of a library by its file's name ("libcufft.so.11"); None for one that the table does not hold."""
    m = _NAME.match(name.rpartition("/")[2])
    row: Mapping[str, Any] | None = _rows().get(m[1]) if m is not None else None
    if m is None or row is None:
        return None
    return NativeLibrary(
        name.rpartition("/")[2],
        row.get("pip", {}),
        row.get("so", {}).get(m[2] or ""),
        row.get("apt"),
        row.get("dnf"),
    )


def _rows() -> Mapping[str, Any]:
    rows: Mapping[str, Any] = read_table(releases_folder() / TABLE)["libraries"]
    return rows
