"""Opening the files of a launch: where they lie, inside an archive, or behind a URL; bounded in all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtpdoctor.errors import UserError
from mtpdoctor.log.source import LogSource, open_source, open_stream

GIB = 1 << 30
RATIO = 500  # logs shrink to a hundredth at best; what grows beyond this is no log
_SMALL = 64 << 20  # bytes that anything may unpack to
_PIECE = 1 << 18

# Where a path lies that is not opened by its name: a local file, or its bytes.
Places = Mapping[str, "str | bytes"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one launch: bytes that a log unpacks to, seconds that its examination takes."""

    unpacked: int = 4 * GIB
    seconds: float = 120.0

    def of(self, size: int) -> int:
        """What ``size`` compressed bytes may unpack to."""
        return min(self.unpacked, max(_SMALL, RATIO * size))


@dataclass(frozen=True, slots=True)
class Opened:
    """One log as one source. ``parts`` gives, for each of its files, the line it begins with."""

    source: LogSource
    parts: tuple[tuple[int, str], ...]

    def place(self, line: int) -> tuple[str, int]:
        """The file that a line of the source stands in, and its number there."""
        first, path = next(part for part in reversed(self.parts) if part[0] <= line or part[0] == 1)
        return path, line - first + 1


def open_log(paths: Sequence[str], limits: Limits, places: Places | None = None) -> Opened:
    """The files ``paths``, one after another (rotated parts), as one log. Raises UserError."""
    places = places or {}
    if len(paths) == 1:
        return Opened(_open(paths[0], limits, places), ((1, paths[0]),))
    sources: list[LogSource] = []
    try:
        for path in paths:
            sources.append(_open(path, limits, places))
        reader = _OneAfterAnother(sources)
        joined = open_stream(paths[-1], reader, limit=limits.unpacked)  # type: ignore[arg-type]
        joined.truncated = next((s.truncated for s in sources if s.truncated), joined.truncated)
        return Opened(joined, tuple(zip(reader.begins, paths, strict=False)))
    finally:
        for source in sources:
            source.close()


def _open(path: str, limits: Limits, places: Places) -> LogSource:
    place = places.get(path)
    if isinstance(place, bytes):
        import io

        return open_stream(path, io.BytesIO(place), limit=limits.of(len(place)))
    if place is None and "://" in path:
        from mtpdoctor.triage.remote import open_remote

        stream, size = open_remote(path)
        with stream:
            return open_stream(path, stream, limit=limits.of(size) if size else limits.unpacked)
    real = place or path
    try:
        size = os.stat(real).st_size
    except OSError:
        size = 0  # open_source says what is wrong
    try:
        source = open_source(real, limit=limits.of(size))
    except UserError as error:
        if place is None:
            raise
        raise UserError(str(error).replace(real, path), hint=error.hint) from None
    source.name = path
    return source


class _OneAfterAnother:
    """Sources read as one stream; a line feed between them where the first does not end with one."""

    def __init__(self, sources: Sequence[LogSource]) -> None:
        self._sources = sources
        self._number = 0  # of the source being read
        self._offset = 0
        self._lines = 1  # of the line about to be read
        self._ends_open = False
        self.begins: list[int] = [1]

    def read(self, size: int) -> bytes:
        while self._number < len(self._sources):
            source = self._sources[self._number]
            data = source.read_at(self._offset, min(size, _PIECE))
            if data:
                self._offset += len(data)
                self._lines += data.count(b"\n")
                self._ends_open = not data.endswith(b"\n")
                return data
            self._number += 1
            self._offset = 0
            if self._number == len(self._sources):
                break
            if self._ends_open:
                self._ends_open = False
                self._lines += 1
                self.begins.append(self._lines)
                return b"\n"
            self.begins.append(self._lines)
        return b""
