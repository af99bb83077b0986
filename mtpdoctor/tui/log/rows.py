"""Which lines are shown: all of them, those of one rank, or with what all ranks say shown once.

Building a choice reads the whole file (some seconds for a gigabyte), so it is done beside the screen.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import TypeVar

from mtpdoctor.log.clean import strip_bytes
from mtpdoctor.tui.log.document import Cancelled, LogDocument

T = TypeVar("T")

# SGLang's "[2026-01-31 12:00:00 TP3] ", as in mtpdoctor.log.lines, on bytes
_RECORD = re.compile(
    rb"\[(?:(?:\d{4}-)?\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d+)?((?: [A-Z][A-Z_]*\d+| encode_[a-z_]+\[\d+\])*)\]"
)
_NEAR = 240  # bytes within which the prefix begins, wrappers before it
_RECENT = 512  # lines of ranks among which the same is looked for
_DIGITS = b"0123456789"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows count from 0, lines from 1. ``numbers`` None: every line of ``count``."""

    count: int
    numbers: array[int] | None = None
    folded: dict[int, int] = field(default_factory=dict)  # line -> how many ranks said the same

    def __len__(self) -> int:
        return self.count if self.numbers is None else len(self.numbers)

    def number(self, row: int) -> int:
        return row + 1 if self.numbers is None else self.numbers[row]

    def row(self, number: int) -> int:
        """The row of a line; of a hidden one the row after it."""
        if self.numbers is None:
            return min(max(number - 1, 0), max(self.count - 1, 0))
        return min(bisect_left(self.numbers, number), max(len(self.numbers) - 1, 0))

    def holds(self, number: int) -> bool:
        if self.numbers is None:
            return 1 <= number <= self.count
        at = bisect_left(self.numbers, number)
        return at < len(self.numbers) and self.numbers[at] == number


def all_rows(document: LogDocument) -> Rows:
    return Rows(document.count)


def chosen_rows(
    document: LogDocument,
    *,
    rank: str | None = None,
    fold: bool = False,
    keep: Set[int] = frozenset(),
    stop: Callable[[], bool] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Rows:
    """The lines of ``rank`` and of no rank at all; with ``fold``, what several ranks say only once. Lines in
    ``keep`` are always shown. Raises Cancelled once ``stop`` says so."""
    if rank is None and not fold:
        return all_rows(document)
    numbers = array("Q")
    folded: dict[int, int] = {}
    folder = _Folder(folded)
    wanted = rank.encode() if rank is not None else None
    current = b""  # the rank that the lines without a prefix belong to
    for number, raw in _lines(document, stop, progress):
        found = _RECORD.search(raw, 0, _NEAR)
        if found is not None:
            current = found[1].strip()
        show = not current or wanted is None or current == wanted
        if show and fold:
            show = not folder.same(number, current if found else None, raw[found.end() :] if found else raw)
        if show or number in keep:
            numbers.append(number)
    return Rows(document.count, numbers, folded)


def _lines(
    document: LogDocument, stop: Callable[[], bool] | None, progress: Callable[[float], None] | None
) -> Iterator[tuple[int, bytes]]:
    done = 0
    for first, data in document.blocks(1, True):
        if stop is not None and stop():
            raise Cancelled
        text = strip_bytes(data)
        lines = text.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        yield from enumerate(lines, first)
        done += len(data)
        if progress is not None:
            progress(done / max(document.size, 1))


class _Folder:
    """Tells lines that another rank has said a moment ago, numbers apart."""

    def __init__(self, folded: dict[int, int]) -> None:
        self._folded = folded
        self._ranked: OrderedDict[bytes, tuple[int, set[bytes]]] = OrderedDict()
        self._plain: OrderedDict[bytes, None] = OrderedDict()
        self._inside = False  # behind a folded line: its traceback goes with it

    def same(self, number: int, rank: bytes | None, body: bytes) -> bool:
        key = body.translate(None, _DIGITS)
        if rank is None:
            known = key in self._plain
            _remember(self._plain, key, None)
            return self._inside and known
        if not rank:
            self._inside = False
            return False
        first = self._ranked.get(key)
        if first is not None and rank not in first[1]:
            first[1].add(rank)
            self._folded[first[0]] = len(first[1])
            self._inside = True
            return True
        _remember(self._ranked, key, (number, {rank}))
        self._inside = False
        return False


def _remember(recent: OrderedDict[bytes, T], key: bytes, value: T) -> None:
    recent[key] = value
    recent.move_to_end(key)
    if len(recent) > _RECENT:
        recent.popitem(last=False)
