"""The tracebacks of a launch attempt as texts that rules are matched against. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpdoctor.log.types import Event, Line, Traceback
from mtpdoctor.records import dataclass

MOST_TEXT = 128 << 10  # characters of one traceback, from its end


@dataclass(frozen=True, slots=True)
class Place:
    """A traceback of the attempt with its text; ``outer`` is the one raised from it, if any."""

    traceback: Traceback
    lines: Sequence[Line]
    text: str
    outer: Traceback | None


def places_of(events: Iterable[Event]) -> list[Place]:
    """Every traceback of the events, inner ones of chains too, each once."""
    seen: dict[int, Place] = {}
    for event in events:
        node, outer = event.traceback, None
        while node is not None and id(node) not in seen:
            lines = _each_once(node.lines)
            text = "\n".join(line.body for line in lines)[-MOST_TEXT:] or _rebuilt(node)
            seen[id(node)] = Place(node, lines, text, outer)
            node, outer = node.inner, node
    return list(seen.values())


def owners_of(places: Iterable[Place]) -> dict[tuple[int, int, int], Place]:
    """Which traceback a line belongs to: the innermost."""
    owner: dict[tuple[int, int, int], Place] = {}
    for place in places:  # inner ones come later and win
        lines = place.traceback.lines or (place.traceback.head, place.traceback.exception)
        owner.update((line.key, place) for line in lines if line is not None)
    return owner


def root_line(root: str, line: Line, place: Place | None) -> Line:
    if place is None:
        return line
    if root == "match":
        inside = _leads_there(line, place.traceback)
        return (place.traceback.exception or line) if inside else line
    if root == "exception":
        return place.traceback.exception or line
    last = place
    outermost = last.outer
    return (outermost.exception if outermost else last.traceback.exception) or line


def is_source(line: Line, traceback: Traceback) -> bool:
    """A line of source code that a traceback quotes."""
    return _leads_there(line, traceback) and not line.body.lstrip().startswith('File "')


def _leads_there(line: Line, traceback: Traceback) -> bool:
    """A frame of a traceback or the source that it quotes: what leads to the exception, not what is said of it."""
    if traceback.exception is not None and line.key >= traceback.exception.key:
        return False
    return line.key != traceback.head.key and line.body.startswith(" ")


def line_at(place: Place, offset: int) -> Line:
    """The log line on which a character of the traceback's text stands."""
    lines = place.lines
    if not lines:
        return place.traceback.exception or place.traceback.head
    position = sum(len(line.body) + 1 for line in lines) - 1 - len(place.text)  # cut at the front
    target = offset + max(0, position)
    at = 0
    for line in lines:
        at += len(line.body) + 1
        if target < at:
            return line
    return lines[-1]


def _each_once(lines: Sequence[Line]) -> Sequence[Line]:
    """Without what the line before says too: ranks that fail alike may write line by line into each other."""
    return [line for n, line in enumerate(lines) if not n or line.body != lines[n - 1].body]


def _rebuilt(node: Traceback) -> str:
    """The text of a traceback whose lines were not kept."""
    parts = ["Traceback (most recent call last):"]
    for frame in node.frames:
        parts.append(f'  File "{frame.path}", line {frame.lineno}, in {frame.function}')
        if frame.code:
            parts.append(f"    {frame.code}")
    if node.type or node.message:
        parts.append(f"{node.type}: {node.message}")
    return "\n".join(parts)
