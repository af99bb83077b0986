"""The log files of one launch, as pieces of lines: what was there before, then what comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from mtpdoctor.errors import UserError
from mtpdoctor.log.types import Line
from mtpdoctor.watch.follow import FileFollower
from mtpdoctor.watch.lines import LineCutter

_PIECE = 64 << 10  # bytes read at once, line by line
_FLOOD_PIECE = 1 << 20
_FLOOD = 4 << 20  # bytes behind from which only the telling lines are read
_LAST = 10  # lines of what was there before that are shown
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class Piece:
    lines: tuple[Line, ...] = ()
    bars: tuple[Line, ...] = ()  # of a line that is still being written over
    skipped: int = 0
    read: int = 0  # bytes
    old: bool = False  # it stood there before the watch began
    old_end: tuple[Line, ...] = ()  # the end of what did, once it was all read

    def shown(self) -> tuple[Line, ...]:
        """Lines for a person: not what stood there long ago, nor states of a bar that a later one took over."""
        if self.old:
            return ()
        last = {line.number: line.part for line in self.lines if line.part}
        new = (x for x in self.lines if "%|" not in x.body or last.get(x.number, x.part) == x.part)
        return (*self.old_end, *new)


class Source:
    """``own``: the log of a launch of ours, empty at first, secrets masked. Else it is somebody else's, and what
    already stands in it is read but for its end not shown.

    Raises UserError when a file cannot be read.
    """

    def __init__(self, paths: Sequence[str], *, own: bool) -> None:
        self.own = own
        self.paths = tuple(paths)
        for path in paths:
            if path.endswith(_COMPRESSED):
                raise UserError(
                    f"{path} is compressed, so nothing writes to it", hint=f"mtpdoctor diagnose {path}"
                )
        self._files = [FileFollower(path, must_exist=not own) for path in paths]
        self._cutters = [LineCutter(i) for i in range(len(paths))]
        self._turns = [0] * len(paths)
        self._next = 0
        self.old = not own and self.behind > 0
        self._last: deque[Line] = deque(maxlen=_LAST)

    @property
    def behind(self) -> int:
        return sum(f.behind() for f in self._files)

    def next(self) -> Piece:
        """What is new in one of the files, of each in turn."""
        for _ in self._files:
            at, self._next = self._next, (self._next + 1) % len(self._files)
            piece = self._of(at)
            if piece.read:
                return piece
        if self.old:
            self.old = False
            return Piece(old_end=tuple(self._last), lines=(), read=1)
        return Piece()

    def last(self) -> tuple[Line, ...]:
        """Lines without an end, when nothing more comes."""
        return tuple(line for cutter in self._cutters for line in cutter.last().lines)

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _of(self, at: int) -> Piece:
        file, cutter = self._files[at], self._cutters[at]
        flood = file.behind() > _FLOOD
        data = file.read(_FLOOD_PIECE if flood else _PIECE)
        if not data:
            return Piece()
        if file.turns != self._turns[at]:
            self._turns[at] = file.turns
            cutter.again()
        cut = cutter.skim(data) if flood else cutter.feed(data)
        if self.old:
            self._last.extend(cut.lines)
        bars = cutter.unfinished() if not flood else ()
        return Piece(cut.lines, bars, cut.skipped, len(data), self.old)
