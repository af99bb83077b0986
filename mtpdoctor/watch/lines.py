"""From a growing log to logical lines, piece by piece; of a flood only the lines that tell the stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mtpdoctor.log import stages as _stages
from mtpdoctor.log.lines import logical_lines
from mtpdoctor.log.rawtext import search_keys
from mtpdoctor.log.transport import PLAIN, Transports, learn
from mtpdoctor.log.types import Line

_LONGEST = 1 << 20  # bytes of one physical line; what is longer is cut
_LEARN_AT = (1, 4 << 10, 64 << 10)  # bytes seen at which the transports are learned (again)
_CAPTURES = (
    "Capturing batches",
    "Capturing num tokens",
    "Compiling num tokens",
    "Multi-thread loading shards",
)
# what the watch acts on: looked for in a flood, in which lines are not read one by one
TELLING: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *_stages.LITERALS,
            *_CAPTURES,
            "Traceback (most recent call last)",
            "Received sigquit",
            "SIGTERM received",
        )
    )
)


class Cut(NamedTuple):
    """Lines of one piece of a log. ``skipped``: lines that were not read, in a flood."""

    lines: tuple[Line, ...]
    skipped: int = 0


class LineCutter:
    """Bytes in, logical lines out. A physical line is given when it is whole; the bars of a line that is still
    being written over (``\\r``) as they come."""

    def __init__(self, file: int = 0) -> None:
        self._file = file
        self._number = 1
        self._rest = b""
        self._shown = b""  # of the rest: what a bar has been given for
        self._seen = b""  # the beginning of the log, to learn the transports from
        self._transports: Transports = PLAIN
        self._learned = 0
        self._find: Callable[[bytes], list[tuple[int, int]]] | None = None

    def feed(self, data: bytes) -> Cut:
        self._learn(data)
        whole, self._rest = self._split(data)
        if whole is None:
            return Cut(())
        out: list[Line] = []
        for raw in whole.split(b"\n"):
            out += logical_lines(raw, self._number, self._file, self._transports)
            self._number += 1
        return Cut(tuple(out))

    def skim(self, data: bytes) -> Cut:
        """The same for a flood: only the lines that tell something."""
        self._learn(data)
        whole, self._rest = self._split(data)
        if whole is None:
            return Cut(())
        out: list[Line] = []
        at = number = 0  # ``number`` lines end before ``at``
        for _, hit in self._telling(whole):
            if hit < at:
                continue
            start = whole.rfind(b"\n", at, hit) + 1 or at
            end = whole.find(b"\n", hit)
            end = len(whole) if end < 0 else end
            number += whole.count(b"\n", at, start)
            out += logical_lines(whole[start:end], self._number + number, self._file, self._transports)
            number += 1
            at = end + 1
        total = whole.count(b"\n") + 1
        self._number += total
        return Cut(tuple(out), total - len({line.number for line in out}))

    def unfinished(self) -> tuple[Line, ...]:
        """The line that is being written: a progress bar, or a line before its end. Given once for each change;
        not to be shown as a line of its own."""
        if not self._rest or self._rest == self._shown:
            return ()
        self._shown = self._rest
        tail = self._rest[-4096:]
        return logical_lines(tail, self._number, self._file, self._transports)[-1:]

    def last(self) -> Cut:
        """What is left when nothing more comes."""
        return self.feed(b"\n") if self._rest else Cut(())

    def again(self) -> None:
        """The file begins anew: line numbers too."""
        self._rest, self._number = b"", 1

    def _split(self, data: bytes) -> tuple[bytes | None, bytes]:
        """Whole lines without the last ``\\n`` (None: no line has ended), and the rest. The ends of a very long line count as one."""
        end = data.rfind(b"\n")
        if end < 0:
            rest = self._rest + data
            if len(rest) > _LONGEST:
                half = _LONGEST // 2
                rest = rest[:half] + rest[-half // 2 :]
            return None, rest
        return self._rest + data[:end], data[end + 1 :]

    def _telling(self, data: bytes) -> list[tuple[int, int]]:
        if self._find is None:
            from mtpdoctor.log.engines import HYPERSCAN_FROM, make_engine

            json = self._transports.json_levels
            keys = sorted({key for text in TELLING for key in search_keys(text, json)})
            self._find = make_engine(keys, size=HYPERSCAN_FROM).find
        return self._find(data)

    def _learn(self, data: bytes) -> None:
        if self._learned >= len(_LEARN_AT):
            return
        self._seen = (self._seen + data)[: 2 * _LEARN_AT[-1]]
        due = self._learned
        while due < len(_LEARN_AT) and len(self._seen) >= _LEARN_AT[due]:
            due += 1
        if due != self._learned and b"\n" in self._seen:
            self._learned = due
            self._transports = learn([self._seen[: self._seen.rfind(b"\n")]])
            self._find = None
            if due == len(_LEARN_AT):
                self._seen = b""
