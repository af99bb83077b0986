"""Logs inside archives: .zip and .tar, plain or compressed, read as a stream.

Members that may be logs are copied to a private folder under numbers of our own, never under the names that the
archive gives, so no name leads out of it. What an archive unpacks to is bounded, by size and by ratio; the folder
goes when the triage ends.
"""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from mtpdoctor.errors import UserError
from mtpdoctor.log.binary import compression_of
from mtpdoctor.triage.gather import Item
from mtpdoctor.triage.opening import RATIO, Limits
from mtpdoctor.triage.peek import HEAD, TAIL, Peek, peek_of

SUFFIXES = (".zip", ".tar", ".tgz", ".txz", ".tzst", ".tbz2", ".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2")
MAX_MEMBERS = 200_000
_TOTAL = 4  # times the limit of one log: what all of an archive may unpack to
_SMALL = 256 << 20  # bytes that any archive may unpack to
_PIECE = 1 << 18


@dataclass(slots=True)
class Unpacked:
    """The logs of one archive. ``places``: member -> the file that holds it."""

    items: list[Item] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    peeks: dict[str, Peek] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def skip(self, what: str) -> None:
        self.skipped[what] = self.skipped.get(what, 0) + 1


def is_archive(path: str) -> bool:
    """By its name, for files met in folders."""
    return path.lower().endswith(SUFFIXES)


def looks_like_archive(head: bytes, unpack: Callable[[str, bytes], bytes]) -> bool:
    """By its content, for files given by name. ``unpack`` gives the beginning of compressed data."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return True
    kind = compression_of(head)
    return (unpack(kind, head) if kind else head)[257:262] == b"ustar"


def unpack(
    name: str,
    stream: IO[bytes],
    size: int | None,
    folder: str,
    limits: Limits,
    *,
    wanted: Callable[[str], str | None],
) -> Unpacked:
    """The logs of the archive ``name`` that ``stream`` gives, copied into ``folder``.

    ``wanted`` says of a member's name what makes it no log, or None. Raises UserError when nothing can be read.
    """
    out = Unpacked()
    total = min(_TOTAL * limits.unpacked, max(_SMALL, RATIO * size)) if size else _TOTAL * limits.unpacked
    copier = _Copier(name, folder, limits, total, out, wanted)
    head = stream.read(4)
    stream.seek(0)
    try:
        for member, data, packed in _zip(stream, out) if head[:2] == b"PK" else _tar(stream, name, size, out):
            if not copier.take(member, data, packed):
                break
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        if not out.items:
            raise UserError(f"{name}: the archive cannot be read: {error}", hint="copy it again") from None
        out.notes.append(f"{name}: the archive is damaged, read up to there: {error}")
    return out


class _Copier:
    def __init__(
        self,
        archive: str,
        folder: str,
        limits: Limits,
        left: int,
        out: Unpacked,
        wanted: Callable[[str], str | None],
    ) -> None:
        self._archive = archive
        self._folder = tempfile.mkdtemp(dir=folder)
        self._limits = limits
        self._left = left
        self._out = out
        self._wanted = wanted
        self._seen: set[str] = set()

    def take(self, member: str, data: IO[bytes], packed: int | None) -> bool:
        """Copies one member if it may be a log. False: nothing more of this archive."""
        out = self._out
        why = self._wanted(member)
        if why is not None:
            out.skip(why)
            return True
        if len(out.items) >= MAX_MEMBERS:
            out.notes.append(f"{self._archive}: more than {MAX_MEMBERS} logs, the rest is left out")
            return False
        path = f"{self._archive}!{shown_member(member)}"
        while path in self._seen:  # a tar may hold a name twice
            path += "'"
        self._seen.add(path)
        head = data.read(HEAD)
        if not head:
            out.skip("empty")
            return True
        look = peek_of(head, name=member)
        if look.no_log:
            out.skip(look.no_log)
            return True
        limit = min(self._limits.of(packed) if packed is not None else self._limits.unpacked, self._left)
        place = os.path.join(self._folder, f"{len(out.places):07d}.log")
        size, tail, cut = _copy(head, data, place, limit)
        self._left -= size
        if not compression_of(head):
            look = peek_of(head, tail, name=member)
        out.items.append(Item(path, size, given=False))
        out.places[path] = place
        out.peeks[path] = look
        if cut:
            out.notes.append(f"{path}: it unpacks to more than {limit >> 20} MiB: the rest is left out")
        if self._left <= 0:
            out.notes.append(f"{self._archive}: it unpacks to too much, the rest of it is left out")
        return self._left > 0


def _copy(head: bytes, data: IO[bytes], place: str, limit: int) -> tuple[int, bytes, bool]:
    """Size, last bytes, and whether it was cut."""
    size, tail = 0, b""
    piece = head
    try:
        with open(place, "xb") as file:
            while piece:
                room = limit - size
                file.write(piece[:room])
                size += min(len(piece), room)
                tail = (tail + piece[:room])[-TAIL:]
                if len(piece) > room:
                    return size, tail, True
                piece = data.read(_PIECE)
    except OSError as error:
        if isinstance(error, (EOFError, zipfile.BadZipFile)):
            raise
        raise UserError(
            f"archives cannot be unpacked to {os.path.dirname(place)}: {error.strerror or error}",
            hint="free some space, or point TMPDIR to a larger disk",
        ) from None
    return size, tail, False


def shown_member(name: str) -> str:
    """The member's name as it is shown: parts that lead out of the archive are gone."""
    parts = [p for p in name.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    return "/".join(parts) or "member"


def _zip(stream: IO[bytes], out: Unpacked) -> Iterator[tuple[str, IO[bytes], int | None]]:
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                out.skip("encrypted")
                continue
            try:
                with archive.open(info) as data:
                    yield info.filename, data, info.compress_size
            except NotImplementedError:
                out.skip("packed in a way that Python's zipfile does not know")


def _tar(
    stream: IO[bytes], name: str, size: int | None, out: Unpacked
) -> Iterator[tuple[str, IO[bytes], int | None]]:
    head = stream.read(8)
    stream.seek(0)
    kind = compression_of(head)
    raw: Any = stream
    if kind:
        raw = _Unpacking(kind, stream, name, out, max(_SMALL, RATIO * size) if size else None)
    with tarfile.open(fileobj=raw, mode="r|", errorlevel=1) as archive:
        for info in archive:
            if not info.isreg():  # links and devices are never followed
                if not info.isdir():
                    out.skip("links and devices")
                continue
            data = archive.extractfile(info)
            if data is not None:
                with contextlib.closing(data):
                    yield info.name, data, None


class _Unpacking:
    """A compressed stream as the plain one inside it; it ends where the data is damaged, and after ``most`` bytes."""

    def __init__(self, kind: str, stream: IO[bytes], name: str, out: Unpacked, most: int | None) -> None:
        from mtpdoctor.log.decompress import Damage, decompressed

        self._damage = Damage()
        self._pieces = decompressed(kind, iter(lambda: stream.read(_PIECE), b""), self._damage)
        self._rest = b""
        self._most = most
        self._given = 0
        self._name = name
        self._out = out

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                if self._damage.text:
                    self._out.notes.append(f"{self._name}: {self._damage.text}")
                    self._damage.text = None
                break
            self._rest += piece
        data, self._rest = self._rest[:size], self._rest[size:]
        self._given += len(data)
        if self._most is not None and self._given > self._most:
            raise tarfile.ReadError(f"it unpacks to more than {RATIO} times its size")
        return data
