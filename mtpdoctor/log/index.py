"""Random access to the lines of a source through a sparse index."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from mtpdoctor.log.lines import TEXT_CAP, make_line, parts_of, peel
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.transport import Peeled, Transports
from mtpdoctor.log.types import Line

_BLOCK = 64 << 10  # bytes between index entries
_HUGE = 1 << 20  # a physical line longer than this is read at its two ends only
_HUGE_END = 256 << 10
_CACHED = 4096
_PIECES = 64  # records of one cut line that are put together at most
_AROUND = 8 << 10
_HUGE_HITS = 100


class FileIndex:
    """Where lines begin: ``offsets[i]`` is where line ``numbers[i]`` begins. One entry per 64 KiB."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.offsets = array("Q", [0])
        self.numbers = array("Q", [1])
        self.line_count = 0
        self._open = False  # the last byte seen was no newline

    def add(self, body: bytes, offset: int, number: int, skip: int) -> int:
        """Takes in ``body``, which begins at ``offset`` in line ``number``; its first ``skip`` bytes
        were seen before (and hold no newline). Returns how many newlines it holds."""
        at, seen = 0, 0
        size = len(body)
        while size - at > _BLOCK:
            cut = body.find(b"\n", at + _BLOCK) + 1
            if not cut or cut == size:
                break
            seen += body.count(b"\n", at, cut)
            self.offsets.append(offset + cut)
            self.numbers.append(number + seen)
            at = cut
        seen += body.count(b"\n", at)
        if size:
            self._open = not body.endswith(b"\n")
            if not self._open and offset + size < self.source.size:
                self.offsets.append(offset + size)
                self.numbers.append(number + seen)
        return seen

    def finish(self, number: int) -> None:
        self.line_count = number if self._open else number - 1

    def locate(self, number: int) -> tuple[int, int]:
        """(offset, number) of the nearest indexed line at or before ``number``."""
        i = bisect_right(self.numbers, number) - 1
        return self.offsets[i], self.numbers[i]

    def blocks_from_end(self) -> Iterator[tuple[int, int, int]]:
        """(offset, first line number, size) of the blocks between entries, last first."""
        end = self.source.size
        for i in range(len(self.offsets) - 1, -1, -1):
            start = self.offsets[i]
            yield start, self.numbers[i], end - start
            end = start


class LineReader:
    """Cuts lines out of a source and makes them logical. ``cut`` holds numbers of lines shown in part."""

    def __init__(self, index: FileIndex, file: int, transports: Transports) -> None:
        self._index = index
        self._source = index.source
        self._file = file
        self._transports = transports
        self._cache: OrderedDict[int, tuple[Line, ...]] = OrderedDict()
        self._at = (0, 1)  # offset and number of a line start met lately
        self.cut: set[int] = set()

    # -- physical lines

    def _start(self, number: int) -> int | None:
        """Offset of a line, None when there is no such line."""
        if not 1 <= number <= self._index.line_count:
            return None
        offset, at = self._index.locate(number)
        if self._at[1] <= number and self._at[1] >= at:
            offset, at = self._at
        while at < number:
            data = self._source.read_at(offset, _BLOCK)
            if not data:
                return None
            missing = number - at
            here = data.count(b"\n")
            if here < missing:
                at += here
                offset += len(data)
                continue
            cut = 0
            for _ in range(missing):
                cut = data.find(b"\n", cut) + 1
            offset += cut
            at = number
        self._at = (offset, number)
        return offset

    def _end(self, offset: int) -> int:
        """Offset of the newline that ends the line beginning at ``offset`` (or of the end)."""
        step = 4096
        while offset < self._source.size:
            data = self._source.read_at(offset, step)
            cut = data.find(b"\n")
            if cut >= 0:
                return offset + cut
            if not data:
                break
            offset += len(data)
            step = min(step * 4, 1 << 20)
        return min(offset, self._source.size)

    def _peeled(self, number: int) -> Peeled | None:
        offset = self._start(number)
        if offset is None:
            return None
        end = self._end(offset)
        if end - offset > _HUGE:
            return None
        return peel(self._source.read_at(offset, end - offset), self._transports)

    # -- logical lines

    def lines(self, number: int) -> tuple[Line, ...]:
        known = self._cache.get(number)
        if known is None:
            known = self._make(number)
            self._cache[number] = known
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return known

    def _make(self, number: int) -> tuple[Line, ...]:
        offset = self._start(number)
        if offset is None:
            return ()
        end = self._end(offset)
        if end - offset > _HUGE:
            return self._huge(number, offset, end)
        return self._finished(number, peel(self._source.read_at(offset, end - offset), self._transports))

    def _finished(self, number: int, peeled: Peeled) -> tuple[Line, ...]:
        if self._transports.may_split:
            if self._goes_on(number - 1):
                return ()
            if peeled.partial:
                peeled = self._joined(number, peeled)
        if len(peeled.rest) > TEXT_CAP:
            self.cut.add(number)
        return parts_of(peeled, number, self._file)

    def _goes_on(self, number: int) -> bool:
        before = self._peeled(number)
        return before is not None and before.partial and before.rest != ""

    def _joined(self, number: int, peeled: Peeled) -> Peeled:
        texts = [peeled.rest]
        for n in range(number + 1, number + _PIECES):
            piece = self._peeled(n)
            if piece is None:
                break
            texts.append(piece.rest)
            if not piece.partial:
                break
        return Peeled(peeled.stream, peeled.time, "".join(texts))

    def _huge(self, number: int, offset: int, end: int) -> tuple[Line, ...]:
        """Both ends of a very long line. Parts of its later end are numbered by their distance from
        the start, so that they stay in order with ``holding``'s parts between."""
        self.cut.add(number)
        head = peel(self._source.read_at(offset, _HUGE_END), self._transports)
        left_out = end - offset - 2 * _HUGE_END
        head = Peeled(head.stream, head.time, f"{head.rest} ...[{left_out} bytes left out]...")
        tail = self._source.read_at(end - _HUGE_END, _HUGE_END)
        first = parts_of(head, number, self._file)
        rest = peel(tail.decode("utf-8", "replace"))
        rest = Peeled(head.stream, head.time, rest.rest)
        return first + parts_of(rest, number, self._file, end - offset - _HUGE_END)

    def holding(self, number: int, literal: str) -> list[Line]:
        """The logical lines of line ``number`` whose text holds ``literal``. Where a text was cut, a
        line that shows the surroundings of the literal stands in."""
        while number > 1 and self._transports.may_split and not self.lines(number) and self._start(number):
            number -= 1
        lines = self.lines(number)
        out = [line for line in lines if literal in line.text]
        if out or number not in self.cut:
            return out
        return self._around(number, literal, lines)

    def _around(self, number: int, literal: str, lines: tuple[Line, ...]) -> list[Line]:
        offset = self._start(number)
        if offset is None or not lines:
            return []
        end = self._end(offset)
        out: list[Line] = []
        at = offset
        step = _HUGE_END
        while at < end and len(out) < _HUGE_HITS:
            data = self._source.read_at(at, min(step, end - at))
            if not data:
                break
            text = peel(data.decode("utf-8", "replace"), self._transports).rest
            for piece in text.replace("\r", "\n").split("\n"):
                hit = piece.find(literal)
                if hit >= 0 and len(out) < _HUGE_HITS:
                    around = piece[max(hit - _AROUND // 2, 0) : hit + len(literal) + _AROUND // 2]
                    out.append(
                        make_line(
                            around,
                            number,
                            self._file,
                            len(lines) + at - offset + len(out),
                            lines[0].stream,
                            lines[0].time,
                        )
                    )
            at += max(len(data) - _AROUND, 1) if at + len(data) < end else len(data)
        return out

    def window(self, first: int, last: int) -> list[Line]:
        first, last = max(first, 1), min(last, self._index.line_count)
        out: list[Line] = []
        number = first
        while number <= last:
            offset = self._start(number)
            if offset is None:
                break
            data = self._source.read_at(offset, 1 << 18)
            end = data.rfind(b"\n")
            if end < 0 or self._transports.may_split:
                out.extend(self.lines(number))
                number += 1
                continue
            for raw in data[:end].split(b"\n"):
                if number > last:
                    break
                known = self._cache.get(number)
                out.extend(
                    known if known is not None else self._finished(number, peel(raw, self._transports))
                )
                number += 1
        return out
