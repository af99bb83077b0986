"""What a compiled library says of itself: the libraries it needs, the GPU architectures it has code for.

Only headers are read: the table of sections, ``.dynamic``, and the heads of the records in ``.nv_fatbin``
(each a few bytes before code that may be hundreds of megabytes). 64-bit little-endian ELF, which is what
x86-64 and aarch64 wheels hold.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_FATBIN = 0xBA55ED50  # magic number before each group of GPU code in .nv_fatbin
_MAX_SECTIONS = 512
_MAX_TABLE = 1 << 20  # bytes of a string table or of .dynamic that are read
_MAX_GROUPS = 64  # every source file adds a group with the architectures of the build: the first ones tell
_MAX_RECORDS = 64  # of one group
_DT_NEEDED = 1


@dataclass(frozen=True, slots=True)
class Library:
    """``needed`` in file order; ``sms`` (80, 90, 120) sorted, empty where there is no GPU code."""

    needed: tuple[str, ...]
    sms: tuple[int, ...]


def read_library(path: Path | str) -> Library | None:
    """None when the file is no 64-bit ELF, damaged or not readable. Never raises."""
    try:
        with open(path, "rb") as file:
            sections = _sections(file)
            return Library(_needed(file, sections), _architectures(file, sections))
    except (OSError, ValueError, OverflowError, struct.error):
        return None


@dataclass(frozen=True, slots=True)
class _Section:
    offset: int
    size: int
    link: int


def _sections(file: BinaryIO) -> Mapping[str, _Section]:
    head = _at(file, 0, 64)
    if head[:4] != b"\x7fELF" or head[4] != 2 or head[5] != 1:
        raise ValueError("no 64-bit little-endian ELF")
    (table,) = struct.unpack_from("<Q", head, 0x28)
    size, count, names = struct.unpack_from("<HHH", head, 0x3A)
    if size < 64 or not 0 < count <= _MAX_SECTIONS or names >= count:
        raise ValueError("no table of sections")
    data = _at(file, table, size * count)
    entries = []
    for i in range(count):
        name, _, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", data, i * size)
        entries.append((name, _Section(offset, length, link)))
    texts = _at(file, entries[names][1].offset, min(entries[names][1].size, _MAX_TABLE))
    return {_text(texts, name): section for name, section in entries}


def _needed(file: BinaryIO, sections: Mapping[str, _Section]) -> tuple[str, ...]:
    dynamic, strings = sections.get(".dynamic"), sections.get(".dynstr")
    if dynamic is None or strings is None:
        return ()
    texts = _at(file, strings.offset, min(strings.size, _MAX_TABLE))
    data = _at(file, dynamic.offset, min(dynamic.size, _MAX_TABLE) // 16 * 16)
    tags = struct.iter_unpack("<QQ", data)
    return tuple(_text(texts, value) for tag, value in tags if tag == _DT_NEEDED)


def _architectures(file: BinaryIO, sections: Mapping[str, _Section]) -> tuple[int, ...]:
    section = sections.get(".nv_fatbin")
    if section is None:
        return ()
    found: set[int] = set()
    position, end = section.offset, section.offset + section.size
    for _ in range(_MAX_GROUPS):
        if position + 16 > end:
            break
        magic, _, head, size = struct.unpack("<IHHQ", _at(file, position, 16))
        if magic != _FATBIN or head < 16:
            break
        record, stop = position + head, position + head + size
        for _ in range(_MAX_RECORDS):
            if record + 64 > min(stop, end):
                break
            data = _at(file, record, 32)
            _, _, record_head, length = struct.unpack_from("<HHIQ", data)
            (sm,) = struct.unpack_from("<I", data, 28)
            if not 10 <= sm < 1000 or record_head == 0:
                break
            found.add(sm)
            record += record_head + length
        position = (stop + 7) // 8 * 8
    return tuple(sorted(found))


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends early")
    return data


def _text(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    return table[start : end if end >= 0 else None].decode("ascii", "replace")
