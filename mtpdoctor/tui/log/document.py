"""One log file, however large, for reading a screenful at a time. No Textual here.

The end can be shown before anything else of the file is read; line numbers are known once the index is
(about a second for a gigabyte). Nothing is kept of the file but the sparse index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mtpdoctor.errors import UserError
from mtpdoctor.log.index import FileIndex
from mtpdoctor.log.source import LogSource, open_source
from mtpdoctor.log.transport import Transports

AT_ONCE = 4 << 20  # bytes that are indexed while the file is opened: milliseconds
_TAIL = 1 << 20  # bytes at the end that are shown before the index is there
_TAIL_LINES = 5000
_READ = 1 << 20
_BLOCK = 1 << 20  # bytes that are searched at a time
_PIECE = 64 << 10  # bytes of a huge line that are looked at


class Cancelled(Exception):
    """Whoever asked wants it no longer."""


class LogDocument:
    """``count`` lines, or, until ``index`` is set, only the last few (``tail``), not numbered yet."""

    def __init__(self, source: LogSource, file: int) -> None:
        from mtpdoctor.log.scan import learn_from

        self.source = source
        self.file = file
        self.name = source.name
        self.size = source.size
        self.transports: Transports = learn_from(source)
        self.index: FileIndex | None = None
        self.tail: list[bytes] = []
        if source.size <= AT_ONCE:
            self.index = self.build()
        else:
            self.tail = _tail_of(source)

    @staticmethod
    def open(path: str, file: int) -> LogDocument:
        """Raises UserError when the file cannot be read. Compressed files are unpacked first."""
        return LogDocument(open_source(path), file)

    def build(
        self, progress: Callable[[float], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> FileIndex:
        """The index of the whole file; to be set by whoever shows it. ``progress`` is told the share done.

        Raises Cancelled once ``stop`` says so."""
        return self._filled(FileIndex(self.source), progress, stop)

    def _filled(
        self,
        index: FileIndex,
        progress: Callable[[float], None] | None,
        stop: Callable[[], bool] | None,
    ) -> FileIndex:
        """``index`` from its last entry on to the end of the file."""
        offset, number = index.offsets[-1], index.numbers[-1]
        while offset < self.source.size:
            if stop is not None and stop():
                raise Cancelled
            data = self.source.read_at(offset, _READ)
            if not data:
                break
            number += index.add(data, len(data), offset, number)
            offset += len(data)
            if progress is not None:
                progress(offset / self.source.size)
        index.finish(number)
        return index

    def grown(self) -> FileIndex | None:
        """The index with what was written to the file since, to be set by whoever shows it; None where nothing
        was. Only what is new is read. Raises UserError where the file was begun anew."""
        if self.index is None:
            return None
        more = self.source.grown()
        if more < 0:
            raise UserError("the file was begun anew", hint="F5 reads it again")
        if not more:
            return None
        self.size = self.source.size
        index = FileIndex(self.source)
        index.offsets, index.numbers = self.index.offsets[:], self.index.numbers[:]
        return self._filled(index, None, None)

    @property
    def count(self) -> int:
        return self.index.line_count if self.index is not None else len(self.tail)

    @property
    def numbered(self) -> bool:
        return self.index is not None

    def raw(self, number: int) -> tuple[bytes, int]:
        """The bytes of a line (of a huge one its beginning), and how many more there are."""
        if self.index is None:
            return (self.tail[number - 1], 0) if 1 <= number <= len(self.tail) else (b"", 0)
        try:
            return self._raw(self.index, number)
        except UserError as error:  # the disk it lies on has gone away
            return str(error).encode(), 0

    def _raw(self, index: FileIndex, number: int) -> tuple[bytes, int]:
        for _, raw in index.raw_lines(number, number):
            if raw is not None:
                return raw, 0
            start = index.start(number)
            if start is not None:
                end = index.end(start)
                piece = self.source.read_at(start, min(_PIECE, end - start))
                return piece, end - start - len(piece)
        return b"", 0

    def blocks(self, number: int, forward: bool) -> Iterator[tuple[int, bytes]]:
        """(number of its first line, bytes) of stretches of whole lines, from the one that holds line
        ``number`` on, to the end or (not ``forward``) to the beginning. Safe in any thread."""
        from bisect import bisect_right

        index = self.index
        if index is None:
            return
        count = len(index.offsets)
        at = max(bisect_right(index.numbers, number) - 1, 0)
        while 0 <= at < count:
            first = last = at
            while forward and last + 1 < count and index.offsets[last] - index.offsets[first] < _BLOCK:
                last += 1
            while not forward and first > 0 and index.offsets[last] - index.offsets[first] < _BLOCK:
                first -= 1
            start = index.offsets[first]
            end = index.offsets[last + 1] if last + 1 < count else self.source.size
            # of a stretch with a line of many megabytes only the beginning
            yield index.numbers[first], self.source.read_at(start, min(end - start, 8 * _BLOCK))
            at = last + 1 if forward else first - 1

    def close(self) -> None:
        self.source.close()


def _tail_of(source: LogSource) -> list[bytes]:
    start = max(source.size - _TAIL, 0)
    data = source.read_at(start, source.size - start)
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    if start and len(lines) > 1:
        lines = lines[1:]  # begins inside a line
    return lines[-_TAIL_LINES:]
