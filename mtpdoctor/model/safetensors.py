"""The header of a safetensors file: which tensors it holds and how many bytes each. Never the tensors.

The format (as the safetensors project describes it): 8 bytes, little-endian, the length N of the header; N
bytes of JSON, at most 100 MB, ``{name: {"dtype", "shape", "data_offsets": [begin, end]}}`` with offsets
that count from the end of the header; the tensors.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

from mtpdoctor.model.reading import LFS_POINTER, Unreadable, parse_object, read_some

MAX_HEADER = 100_000_000  # the format's own limit
_FIRST = 1 << 18  # most headers fit into the first read


class Tensor(NamedTuple):
    name: str
    dtype: str
    bytes: int


class Header(NamedTuple):
    """``size`` is the file's, ``needed`` what it must have by its own header. Bytes."""

    tensors: tuple[Tensor, ...]
    size: int
    needed: int


class Pointer(Unreadable):
    """A Git LFS pointer stands in place of the file."""


class Empty(Unreadable):
    """The file has no bytes."""


def read_header(file: Path) -> Header:
    """Raises FileNotFoundError; Pointer, Empty or Unreadable for what is no safetensors file."""
    data, size = read_some(file, _FIRST, whole=False)
    if not data:
        raise Empty("it is empty (0 bytes)")
    if data.startswith(LFS_POINTER):
        raise Pointer("it is a Git LFS pointer, not the weights (git lfs pull)")
    if len(data) < 8:
        raise Unreadable(f"it is {size} bytes long: no safetensors header")
    (length,) = struct.unpack("<Q", data[:8])
    if data[8:9] not in (b"{", b""):
        raise Unreadable(f"it is no safetensors file (it begins with {_shown(data)})")
    if length > MAX_HEADER:
        raise Unreadable(f"its header claims {length:,} bytes, over the format's limit of 100 MB")
    if 8 + length > size:
        return Header((), size, 8 + length)  # cut off inside the header
    if len(data) < 8 + length:
        data, size = read_some(file, 8 + length, whole=False)
    return _header(data[8 : 8 + length], size, 8 + length)


def _header(text: bytes, size: int, start: int) -> Header:
    try:
        content = parse_object(text)
    except Unreadable as e:
        raise Unreadable(f"its header {e}") from None
    tensors, end = [], 0
    for name, entry in content.items():
        if name == "__metadata__":
            continue
        begin, stop = _offsets(name, entry)
        dtype = entry.get("dtype")
        tensors.append(Tensor(name, dtype if isinstance(dtype, str) else "?", stop - begin))
        end = max(end, stop)
    return Header(tuple(tensors), size, start + end)


def _offsets(name: str, entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if isinstance(offsets, list) and len(offsets) == 2 and all(type(o) is int for o in offsets):
        begin, end = offsets
        if 0 <= begin <= end < 1 << 63:
            return begin, end
    raise Unreadable(f"its header gives tensor {name!r:.60} no valid data_offsets")


def _shown(data: bytes) -> str:
    return json.dumps(data[:12].decode("ascii", "replace"))


def threads(files: int) -> int:
    """Enough to keep a network disk busy; more than that only waits for Python."""
    return max(1, min(files, 4 * (os.cpu_count() or 1), 16))
