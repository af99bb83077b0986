"""Tables that are read in parts: several gzip members in a row, the first of which says where the others lie."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError

FORMAT = 1
_GZIP = 31  # zlib's name for the gzip format
_KEPT = 64  # members that stay unpacked


def damaged(path: Path, how: object) -> UserError:
    """A table of the doctor's own that cannot be read."""
    return UserError(f"{path} is damaged: {how}", hint="restore the file, or reinstall mtpdoctor")


class Packed:
    """One file; empty (``head`` is ``{}``) where there is none. Raises UserError for one that is damaged, here or when a
    part of it is unpacked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = path.stat().st_mtime_ns if path.is_file() else 0
        self.head: dict[str, Any] = {}
        self._rest = b""
        self._members: dict[str, str] = {}
        if path.is_file():
            first = zlib.decompressobj(_GZIP)
            try:
                head = json.loads(first.decompress(path.read_bytes()))
                releases, members = head["releases"], head["members"]
                whole = max((start + size for start, size in members.values()), default=0)
            except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
                raise damaged(path, error) from None
            if (
                head.get("format") != FORMAT
                or not isinstance(releases, list)
                or len(first.unused_data) < whole
            ):
                raise damaged(path, "another format, or cut off")
            self.head, self._rest = head, first.unused_data

    @cached_property
    def groups(self) -> dict[str, str]:
        """File -> the member that has it, for tables whose members are of several files."""
        return {file: group for group, files in self.head.get("files", {}).items() for file in files}

    def names(self) -> tuple[str, ...]:
        return tuple(self.head.get("members", ()))

    def text(self, name: str) -> str:
        """A member, unpacked when first asked for. Raises KeyError for a name that there is not."""
        found = self._members.get(name)
        if found is None:
            start, size = self.head["members"][name]
            try:
                found = zlib.decompress(self._rest[start : start + size], _GZIP).decode()
            except (zlib.error, ValueError) as error:
                raise damaged(self.path, error) from None
            if len(self._members) >= _KEPT:
                self._members.clear()
            self._members[name] = found
        return found


@lru_cache(maxsize=16)  # there are eight
def _opened(path: Path, changed: int) -> Packed:
    return Packed(path)


def open_packed(path: Path) -> Packed:
    """Kept from one log to the next (a triage reads thousands), until the file changes."""
    try:
        return _opened(path, path.stat().st_mtime_ns)
    except OSError:
        return Packed(path)


def in_members(
    rows: Iterable[tuple[str, list[str]]], size: int
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The rows of files as members of about ``size`` characters, and which files each member has."""
    members: dict[str, str] = {}
    files: dict[str, list[str]] = {}
    held: list[str] = []
    length = 0
    for file, here in rows:
        if length > size:
            members[f"g{len(members):02}"] = "\n" + "\n".join(held) + "\n"
            held, length = [], 0
        files.setdefault(f"g{len(members):02}", []).append(file)
        held += [f"#{file}", *here]
        length += sum(map(len, here))
    if held:
        members[f"g{len(members):02}"] = "\n" + "\n".join(held) + "\n"
    return members, files


def write_packed(path: Path, head: Mapping[str, Any], members: Mapping[str, str]) -> None:
    """The same facts give the same bytes."""
    body, places = b"", {}
    for name, text in members.items():
        packed = _compressed(text)
        places[name] = [len(body), len(packed)]
        body += packed
    first = json.dumps({"format": FORMAT, **head, "members": places}, separators=(",", ":"))
    path.write_bytes(_compressed(first) + body)


def _compressed(text: str) -> bytes:
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)
