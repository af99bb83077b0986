"""A reading of clean text for tests of matching: one attempt, one logical line a physical line."""

from __future__ import annotations

import re
from collections.abc import Collection

from mtpdoctor.log.types import (
    Attempt,
    Event,
    EventKind,
    FileInfo,
    Frame,
    Line,
    Link,
    LogReading,
    Stage,
    Traceback,
)

_PREFIX = re.compile(r"\[[^\]]*\] ")
_FRAME = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class TextHits:
    """Where texts occur in a list of lines."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines

    def among(self, literals: Collection[str]) -> list[str]:
        return [literal for literal in literals if self.count(literal)]

    def lines(self, literal: str) -> list[Line]:
        return [line for line in self._lines if literal in line.text]

    def count(self, literal: str) -> int:
        return sum(line.text.count(literal) for line in self._lines)

    def line(self, file: int, number: int) -> tuple[Line, ...]:
        return tuple(line for line in self._lines if line.number == number)

    def window(self, file: int, first: int, last: int) -> list[Line]:
        return [line for line in self._lines if first <= line.number <= last]


def read(text: str, first: int = 1, last: int | None = None) -> LogReading:
    """The reading; the attempt covers lines ``first`` to ``last``."""
    lines = [
        Line(0, i, 0, "", None, None, t, _PREFIX.sub("", t, count=1) if t.startswith("[") else t)
        for i, t in enumerate(text.rstrip("\n").split("\n"), 1)
    ]
    last = last or len(lines)
    inside = [line for line in lines if first <= line.number <= last]
    events = tuple(
        Event(EventKind.TRACEBACK, t.exception or t.head, Stage.ENV, None, t.type, t, fatal=True)
        for t in _tracebacks(inside)
    )
    attempt = Attempt(0, (0, first), (0, last), (), events, (), None, None, Stage.ENV, None)
    return LogReading((FileInfo("test.log", len(text), len(lines)),), (attempt,), TextHits(lines), True)


def _tracebacks(lines: list[Line]) -> list[Traceback]:
    """Tracebacks; one after "The above exception was the direct cause" has the one before as inner."""
    found: list[Traceback] = []
    link: Link | None = None
    at = 0
    while at < len(lines):
        if "direct cause of the following" in lines[at].text:
            link = Link.CAUSE
        if not lines[at].text.endswith("Traceback (most recent call last):"):
            at += 1
            continue
        end = at + 1
        while end < len(lines) and lines[end].body.startswith(" "):
            end += 1
        exception = lines[end] if end < len(lines) else None
        own = tuple(lines[at : end + 1])
        frames = tuple(
            Frame(m["path"], int(m["line"]), m["function"], "", line)
            for line in own
            if (m := _FRAME.match(line.body))
        )
        kind, _, message = exception.body.partition(": ") if exception else ("", "", "")
        inner = found.pop() if link and found else None
        found.append(
            Traceback(own[0], frames, exception, kind, message, None, "", link, inner, exception is None, own)
        )
        link = None
        at = end + 1
    return found
