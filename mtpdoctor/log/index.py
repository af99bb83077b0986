"""Where the lines of a source begin: a sparse index, and the cutting of physical lines by it."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from mtpdoctor.log.source import LogSource

_STEP = 64 << 10  # bytes between entries
_READ = 256 << 10  # bytes between entries that are cut into lines at once
_KEPT = 8  # stretches between entries that stay cut
_PLACES = 20_000  # lines of which a place is remembered
_AROUND = 4 << 10  # bytes read on either side of such a place: most lines are shorter
HUGE = 1 << 20  # a physical line longer than this is never read as a whole


class FileIndex:
    """``offsets[i]`` is where line ``numbers[i]`` begins; one entry about every 64 KiB (or one a line
    where lines are longer): some 2.5 MB for 10 GB."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.offsets = array("Q", [0])
        self.numbers = array("Q", [1])
        self.line_count = 0
        self._unended = False  # the last byte seen was no newline
        self._near = (0, 1)  # a line start met lately, (offset, number)
        self._kept: OrderedDict[int, list[bytes]] = OrderedDict()
        self._places: dict[int, int] = {}

    def place(self, number: int, offset: int) -> None:
        """Line ``number`` is one that will be asked for, and the byte at ``offset`` is in it: no need to cut
        the whole stretch around it into lines."""
        if len(self._places) < _PLACES:
            self._places[number] = offset

    def add(
        self, data: bytes, end: int, offset: int, number: int, marks: Sequence[tuple[int, int]] = ()
    ) -> int:
        """Takes in ``data[:end]``, which stands at ``offset`` in line ``number``. Returns how many
        newlines it holds. ``marks``: places in it, ascending, each with the number of its line, so
        that what lies before them need not be counted again."""
        at, seen, mark = 0, 0, 0

        def newlines(upto: int) -> int:
            nonlocal mark
            start, counted = at, seen
            while mark < len(marks) and marks[mark][0] <= upto:
                start, counted = marks[mark][0], marks[mark][1] - number
                mark += 1
            return counted + data.count(b"\n", start, upto)

        while end - at > _STEP:
            cut = data.find(b"\n", at + _STEP, end) + 1
            if not cut:
                break
            seen = newlines(cut)
            self._entry(offset + cut, number + seen)
            at = cut
        seen = newlines(end)
        if end:
            self._unended = data[end - 1] != 0x0A
            if not self._unended and offset + end - self.offsets[-1] > _STEP:
                self._entry(offset + end, number + seen)
        return seen

    def _entry(self, offset: int, number: int) -> None:
        if offset < self.source.size:
            self.offsets.append(offset)
            self.numbers.append(number)

    def finish(self, number: int) -> None:
        """``number`` is one more than there were newlines."""
        self.line_count = number if self._unended else number - 1
        self._kept.clear()

    def blocks_from_end(self) -> Iterator[tuple[int, int, int]]:
        """(offset, number of its first line, size) of the stretches between entries, last first."""
        end = self.source.size
        for i in range(len(self.offsets) - 1, -1, -1):
            yield self.offsets[i], self.numbers[i], end - self.offsets[i]
            end = self.offsets[i]

    def start(self, number: int) -> int | None:
        """Offset at which line ``number`` begins; None when there is no such line."""
        if not 1 <= number <= self.line_count:
            return None
        i = bisect_right(self.numbers, number) - 1
        offset, at = self.offsets[i], self.numbers[i]
        if at <= self._near[1] <= number:
            offset, at = self._near
        while at < number:
            data = self.source.read_at(offset, _STEP)
            if not data:
                return None
            newlines = data.count(b"\n")
            if at + newlines < number:
                at += newlines
                offset += len(data)
                continue
            cut = 0
            for _ in range(number - at):
                cut = data.find(b"\n", cut) + 1
            offset, at = offset + cut, number
        self._near = (offset, number)
        return offset

    def end(self, start: int) -> int:
        """Offset of the newline (or of the end of the source) that ends the line begun at ``start``."""
        step = 4096
        at = start
        while at < self.source.size:
            data = self.source.read_at(at, step)
            cut = data.find(b"\n")
            if cut >= 0:
                return at + cut
            if not data:
                break
            at += len(data)
            step = min(step * 4, HUGE)
        return min(at, self.source.size)

    def raw_lines(self, first: int, last: int) -> Iterator[tuple[int, bytes | None]]:
        """(number, bytes without newline) of the lines ``first``..``last``; None for huge ones."""
        number = max(first, 1)
        last = min(last, self.line_count)
        if number == last and number in self._places:
            line = self._line_around(self._places[number])
            if line is not None:
                yield number, line
                return
        while number <= last:
            i = bisect_right(self.numbers, number) - 1
            lines = self._lines(i)
            if lines is None:  # a stretch with a very long line in it
                offset = self.start(number)
                if offset is None:
                    return
                stop = self.end(offset)
                yield number, None if stop - offset > HUGE else self.source.read_at(offset, stop - offset)
                self._near = (stop + 1, number + 1)
                number += 1
                continue
            at = number - self.numbers[i]
            if at >= len(lines):  # the file shrank
                return
            for raw in lines[at : at + last - number + 1]:
                yield number, raw
                number += 1

    def _line_around(self, offset: int) -> bytes | None:
        """The line that holds the byte at ``offset``; None when it is a long one."""
        base = max(offset - _AROUND, 0)
        data = self.source.read_at(base, 2 * _AROUND)
        start = data.rfind(b"\n", 0, offset - base) + 1
        stop = data.find(b"\n", offset - base)
        if (not start and base) or offset - base >= len(data):
            return None
        if stop < 0:
            return data[start:] if base + len(data) >= self.source.size else None
        return data[start:stop]

    def _lines(self, i: int) -> list[bytes] | None:
        """The lines between entry ``i`` and the next, None when these are too many bytes. The last few
        stretches are kept: lines are asked for one by one, in order or nearly so."""
        known = self._kept.get(i)
        if known is not None:
            self._kept.move_to_end(i)
            return known
        is_last = i + 1 == len(self.offsets)
        end = self.source.size if is_last else self.offsets[i + 1]
        if end - self.offsets[i] > _READ:
            return None
        count = (self.line_count + 1 if is_last else self.numbers[i + 1]) - self.numbers[i]
        lines = self.source.read_at(self.offsets[i], end - self.offsets[i]).split(b"\n")[:count]
        self._kept[i] = lines
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return lines
