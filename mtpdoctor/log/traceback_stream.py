"""The tracebacks of one stream of lines: open, closed, final."""

from __future__ import annotations

from typing import NamedTuple

from mtpdoctor.log.tracelines import HEAD, OpenTraceback
from mtpdoctor.log.types import Line, Link, Traceback
from mtpdoctor.patterns import lazy

_STALE_LINES = 150
_DIGIT = lazy(r"\d")
_AFTER_PREFIX = lazy(r'^(\S.{0,119}?)  File "[^"]{1,1000}", line \d+, in ')


class Found(NamedTuple):
    """A finished traceback (the outermost of its chain) and the line printed just before its chain."""

    traceback: Traceback
    intro: Line | None


class Stream:
    """What is open in one stream of lines, what is closed and may yet be chained into a later one, and where
    in the text the stream stands. What is final goes to ``found``."""

    __slots__ = (
        *("done", "found", "gap", "indent", "link", "mute", "open"),
        *("prefix", "prefixed", "previous"),
    )

    def __init__(self, found: list[Found]) -> None:
        self.found = found
        self.open: list[OpenTraceback] = []
        self.done: list[tuple[OpenTraceback, Traceback]] = []  # closed, perhaps inner of a later one
        # chain line seen, head to come: link, inner, intro, when
        self.link: tuple[Link, Traceback | None, Line | None, int] | None = None
        self.previous: Line | None = None  # last line outside tracebacks
        self.mute = False  # inside a stack print that is no failure
        # spaces before every line of the traceback: a log inside a notebook's, a pod's description or a report's text
        self.indent = 0
        # what a logger put before the head, digits made alike; and whether it stood before a later line too
        self.prefix, self.prefixed = "", False
        # a message that has come to an empty line, and may go on behind it: whose, the empty lines
        self.gap: tuple[OpenTraceback, list[Line]] | None = None

    def begins_with(self, body: str) -> None:
        """Notes what stands before the head of a traceback."""
        before = body[: body.index(HEAD)]
        form = _DIGIT.sub("0", before) if before.strip(" |+") else ""
        if form != self.prefix:
            self.prefix, self.prefixed = form, False

    def without_prefix(self, body: str) -> str | None:
        """The line without what also stood before the head; None where it does not begin so."""
        if not self.prefixed and (m := _AFTER_PREFIX.match(body)) is not None:
            part = _DIGIT.sub("0", m[1])  # a record's own words may stand between it and the head
            if self.prefix.startswith(part):
                self.prefix = part
        size = len(self.prefix)
        if _DIGIT.sub("0", body[:size]) == self.prefix:
            self.prefixed = True
            return body[size:]
        if body.strip() and _DIGIT.sub("0", body.rstrip()) == self.prefix.rstrip():
            return ""
        return None

    def end_messages(self) -> None:
        """No more lines of messages: what has come to its exception is closed."""
        for node in list(self.open):
            if node.exception is not None:
                self.close(node, False)

    def drop_stale(self, clock: int) -> None:
        """Close what no line has touched for long; ``clock`` counts lines."""
        for node in [n for n in self.open if clock - n.touched > _STALE_LINES and n.touched]:
            self.close(node, node.exception is None)

    def close(self, node: OpenTraceback, cut: bool) -> None:
        """``cut``: its end was not seen."""
        if node not in self.open:
            return
        if node.group:
            for member in [n for n in self.open if n.parent is node]:
                self.close(member, member.exception is None)
        self.open.remove(node)
        node.cut = node.cut or cut
        traceback = node.build(node.head.stream)
        if node.parent is not None:
            self.done = [d for d in self.done if d[1] is not node.inner]
            if node.parent.inner is None or node.parent.inner is node.inner:
                node.parent.inner = traceback
                node.parent.link = node.parent.link or Link.CAUSE
            node.parent.lines.extend(node.lines)
            self.done.append((node, traceback))
            return
        if len(node.lines) == 1 and node.exception is None and not node.frames and HEAD not in node.head.body:
            return
        self.done.append((node, traceback))
        if len(self.done) > 8:
            self._emit(self.done.pop(0))

    def settle(self) -> None:
        """What is closed and not chained into a later one is final."""
        if self.link:
            if self.link[1] is not None:
                self.found.append(Found(self.link[1], self.link[2]))
            self.link = None
        for item in self.done:
            self._emit(item)
        self.done = []

    def _emit(self, item: tuple[OpenTraceback, Traceback]) -> None:
        node, traceback = item
        if node.parent is None:
            self.found.append(Found(traceback, node.intro))
