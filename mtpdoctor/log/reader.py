"""Logical lines of a scanned file by their number, put together and cut to size on demand."""

from __future__ import annotations

from collections import OrderedDict

from mtpdoctor.log.clean import decode
from mtpdoctor.log.index import HUGE, FileIndex
from mtpdoctor.log.kinds import Peeled
from mtpdoctor.log.lines import TEXT_CAP, make_line, parts_of, peel
from mtpdoctor.log.transport import Transports
from mtpdoctor.log.types import Line

_HUGE_END = 256 << 10  # bytes read of each end of a huge line
_CACHED = 4096  # physical lines
_PIECES = 64  # records of one cut line that are put together at most
_PIECE_LEAST = 2000  # a record shorter than this was not cut by a container runtime
_AROUND = 4 << 10  # characters shown on each side of a literal inside what was left out
_HUGE_HITS = 100


class LineReader:
    """``shortened`` holds the numbers of the lines met that are shown in part."""

    def __init__(self, index: FileIndex, file: int, transports: Transports) -> None:
        self._index = index
        self._source = index.source
        self._file = file
        self._transports = transports
        self._cache: OrderedDict[int, tuple[Line, ...]] = OrderedDict()
        self.shortened: set[int] = set()

    def lines(self, number: int) -> tuple[Line, ...]:
        """The logical lines of one physical line; none for the later records of a cut line."""
        known = self._cache.get(number)
        if known is None:
            known = tuple(self.window(number, number))
            self._cache[number] = known
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return known

    def window(self, first: int, last: int) -> list[Line]:
        out: list[Line] = []
        may_split = self._transports.may_split
        goes_on = may_split and self._partial(max(first, 1) - 1)
        for number, raw in self._index.raw_lines(first, last):
            if raw is None:
                out.extend(self._huge(number))
                goes_on = False
                continue
            peeled = peel(raw, self._transports)
            if may_split:
                later, goes_on = goes_on, peeled.partial
                if later:
                    continue
                if peeled.partial:
                    peeled = self._joined(number, peeled)
            if len(peeled.rest) > TEXT_CAP:
                self.shortened.add(number)
            out.extend(parts_of(peeled, number, self._file))
        return out

    def _record(self, number: int) -> Peeled | None:
        for _, raw in self._index.raw_lines(number, number):
            if raw is not None:
                return peel(raw, self._transports)
        return None

    def _partial(self, number: int) -> bool:
        """Whether the program's line goes on after record ``number``."""
        for _, raw in self._index.raw_lines(number, number):
            if raw is not None and len(raw) >= _PIECE_LEAST:
                return peel(raw, self._transports).partial
        return False

    def _joined(self, number: int, peeled: Peeled) -> Peeled:
        texts = [peeled.rest]
        for later in range(number + 1, number + _PIECES):
            record = self._record(later)
            if record is None:
                break
            texts.append(record.rest)
            if not record.partial:
                break
        return Peeled(peeled.stream, peeled.time, "".join(texts))

    def _huge(self, number: int) -> tuple[Line, ...]:
        """Both ends of a very long line. Parts of the later end are numbered by their distance from
        the start, so that they stay in order with those of ``_around``."""
        start = self._index.start(number)
        if start is None:
            return ()
        end = self._index.end(start)
        self.shortened.add(number)
        head = peel(self._source.read_at(start, _HUGE_END), self._transports)
        left_out = end - start - 2 * _HUGE_END
        first = parts_of(
            head._replace(rest=f"{head.rest} ...[{left_out} bytes left out]..."), number, self._file
        )
        rest = head._replace(rest=decode(self._source.read_at(end - _HUGE_END, _HUGE_END)))
        return first + parts_of(rest, number, self._file, end - start - _HUGE_END)

    def holding(self, number: int, literal: str) -> list[Line]:
        """The logical lines of line ``number`` whose text holds ``literal``. Where a text was cut, a
        line that shows the surroundings of the literal stands in for it."""
        lines = self.lines(number)
        while not lines and number > 1 and self._transports.may_split:  # hit in a later record
            number -= 1
            lines = self.lines(number)
        out = [line for line in lines if literal in line.text]
        if out or number not in self.shortened or not lines:
            return out
        return self._around(number, literal, lines)

    def _around(self, number: int, literal: str, lines: tuple[Line, ...]) -> list[Line]:
        start = self._index.start(number)
        if start is None:
            return []
        end = self._index.end(start)
        out: list[Line] = []
        if end - start <= HUGE:
            record = self._record(number)
            if record is not None and record.partial:
                record = self._joined(number, record)
            self._excerpts(record.rest if record else "", literal, number, len(lines), lines[0], out)
            return out
        at = start
        while at < end and len(out) < _HUGE_HITS:
            data = self._source.read_at(at, min(_HUGE_END, end - at))
            if not data:
                break
            text = decode(data)
            self._excerpts(text, literal, number, len(lines) + at - start, lines[0], out)
            at += len(data) if at + len(data) >= end else len(data) - _AROUND
        return out

    def _excerpts(self, text: str, literal: str, number: int, part: int, like: Line, out: list[Line]) -> None:
        for piece in text.replace("\r", "\n").split("\n"):
            hit = piece.find(literal)
            if hit >= 0 and len(out) < _HUGE_HITS:
                around = piece[max(hit - _AROUND, 0) : hit + len(literal) + _AROUND]
                out.append(make_line(around, number, self._file, part + len(out), like.stream, like.time))
