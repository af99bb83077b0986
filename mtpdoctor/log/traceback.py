"""Python tracebacks out of a stream of clean log lines.

One ``TracebackParser`` is fed every line in reading order and says of each whether it belongs to a
traceback. Several tracebacks may be open at once: ranks of one launch print into the same stream
without a prefix on anything but the first line, so a frame goes to the open traceback it fits best.
"""

from __future__ import annotations

import re

from mtpdoctor.log.dressed import dress_of, take
from mtpdoctor.log.traceback_stream import Found, Stream
from mtpdoctor.log.tracelines import (
    BREAK,
    CARET,
    CONTINUES,
    EXCEPTION,
    FRAME,
    HEAD,
    MARGIN,
    NOT_FAILING,
    REPEATED,
    RULE,
    STACKS,
    OpenTraceback,
    exception_of,
    goes_past_gap,
    indent_of_head,
    is_record,
    names_a_class,
    plain,
)
from mtpdoctor.log.types import Line, Link

GROUP_HEAD = "Exception Group Traceback (most recent call last)"
CAUSE_LINE = "The above exception was the direct cause of the following exception"
CONTEXT_LINE = "During handling of the above exception, another exception occurred"
_MESSAGE_LINES = 200
LITERALS = (HEAD, CAUSE_LINE, CONTEXT_LINE)


class TracebackParser:
    """Feed lines in reading order; ``finish`` gives the tracebacks in the order of their heads."""

    def __init__(self) -> None:
        self._streams: dict[tuple[int, str], Stream] = {}
        self._found: list[Found] = []
        self._clock = 0

    @property
    def busy(self) -> bool:
        """Is a traceback still open (more lines are needed to see its end)?"""
        return any(s.open or s.link for s in self._streams.values())

    def feed(self, line: Line) -> bool:
        """True when the line is part of a traceback."""
        self._clock += 1
        stream = self._streams.setdefault((line.file, line.stream), Stream(self._found))
        used = self._feed(stream, line)
        if not used and line.body.strip():
            stream.previous = line
        return used

    def cut_off(self) -> None:
        """The next line does not follow the last one: close what is open."""
        for stream in self._streams.values():
            for node in list(stream.open):
                stream.close(node, node.exception is None)
            stream.settle()
            stream.link = None
            stream.previous = None
            stream.mute = False
            stream.gap = None

    def finish(self) -> list[Found]:
        """Close everything and return all tracebacks found, outermost of each chain only."""
        self.cut_off()
        return sorted(self._found, key=lambda f: f.traceback.head.key)

    # -- one line ---------------------------------------------------------------------------------

    def _feed(self, stream: Stream, line: Line) -> bool:
        tag, body = plain(line)
        stream.drop_stale(self._clock)
        if stream.link and self._clock - stream.link[3] > 12:
            stream.settle()
        if HEAD in body:
            stream.begins_with(body)
        elif stream.prefix:
            told = stream.without_prefix(body)
            if told is None and stream.prefixed and body.strip():
                if any(n.exception is None for n in stream.open):
                    return False  # another writer's, in the middle of it
                stream.end_messages()
                stream.prefix, stream.prefixed = "", False
            body = body if told is None else told
        record = is_record(line) and not stream.prefixed
        if stream.gap is not None and self._over_gap(stream, line, tag, body, record):
            return True
        if HEAD in body:
            stream.indent = indent_of_head(body)
            return self._head(stream, line, tag, body[stream.indent :])
        body = body[stream.indent :] if body[: stream.indent].isspace() else body
        margin = False
        if stream.open and (m := MARGIN.match(body)) and any(n.margin for n in stream.open):
            if RULE.match(body):
                self._rule(stream, line)
                return True
            body, margin = body[m.end() :], True
        if CAUSE_LINE in body or CONTEXT_LINE in body:
            return self._chain(stream, line, Link.CAUSE if CAUSE_LINE in body else Link.CONTEXT)
        if any(text in body for text in NOT_FAILING):
            stream.end_messages()
            stream.mute = any(text in body for text in STACKS)
            stream.previous = line
            return False
        if not stream.open and not FRAME.match(body):
            if body.strip() and not body.startswith(" "):
                stream.mute = False
            return False
        if not body.strip():
            return self._blank(stream, line, margin)
        if record:
            stream.end_messages()
            return False
        dressed = self._latest([n for n in stream.open if n.dress])
        if dressed is not None and take(dressed, line, body):
            self._take(dressed, line)
            return True
        frame = FRAME.match(body)
        if frame:
            return self._frame(stream, line, tag, margin, frame)
        return self._other(stream, line, tag, margin, body)

    def _head(self, stream: Stream, line: Line, tag: str | None, body: str) -> bool:
        if is_record(line) and any(
            n.head.text == line.text and len(n.lines) == 1 for n in stream.open
        ):  # a log whose lines are doubled
            return True
        before = body[: body.index(HEAD)]
        group = GROUP_HEAD in body
        margin = group or (bool(MARGIN.match(body)) and any(n.margin for n in stream.open))
        parent = None
        if margin:
            groups = [n for n in stream.open if n.group]
            parent = groups[-1] if groups else None
        chained = stream.link if not is_record(line) else None
        for node in list(stream.open):
            if node is parent or (node.group and margin):
                continue
            if node.exception is not None or (is_record(line) and node.rank == line.rank and node.tag == tag):
                stream.close(node, node.exception is None)
        if chained is None:
            stream.settle()
        rank = line.rank
        intro = stream.previous
        inner = None
        if chained:
            inner, intro = chained[1], chained[2]
            if rank is None and inner is not None:
                rank = inner.rank
            stream.link = None
        node = OpenTraceback(line, rank if rank is not None else tag, tag, margin)
        node.group, node.intro, node.parent = group, intro, parent
        if not margin:
            stream.previous = None  # said of this traceback, not of the next one
        node.link = chained[0] if chained else None
        node.inner = inner
        node.touched = self._clock
        node.dress = dress_of(body)
        node.lines.append(line)
        stream.open.append(node)
        stream.mute = False
        # A head that continues a record ("... hit an exception: Traceback") says what it was in its own text.
        if before.strip(" |+") and not margin:
            node.intro = line
        return True

    def _chain(self, stream: Stream, line: Line, link: Link) -> bool:
        node = self._latest([n for n in stream.open if n.exception is not None and not n.group])
        if node is not None:
            stream.close(node, False)
        if stream.done:
            last, traceback = stream.done.pop()
            stream.settle()
            stream.link = (link, traceback, last.intro, self._clock)
        else:
            stream.settle()
            stream.link = (link, None, stream.previous, self._clock)
        return True

    def _blank(self, stream: Stream, line: Line, margin: bool) -> bool:
        node = self._latest([n for n in stream.open if n.exception is not None and n.margin == margin])
        if node is None:
            return False
        if node.message == [""] and node.lines[-1] is node.exception and not node.group:
            # "ImportError:" followed by a blank line and the message; only messages of that shape go on.
            node.lines.append(line)
            node.message.append("")
            return True
        if not node.group:
            if margin:
                stream.close(node, False)
            else:
                stream.gap = (node, [line])
        return True

    def _over_gap(self, stream: Stream, line: Line, tag: str | None, body: str, record: bool) -> bool:
        """The line after the empty one in or behind a message."""
        assert stream.gap is not None
        body = body[stream.indent :] if body[: stream.indent].isspace() else body
        node, empty = stream.gap
        if node in stream.open and not body.strip() and len(empty) < 4:
            empty.append(line)
            return True
        stream.gap = None
        if node not in stream.open:
            return False
        if not record and FRAME.match(body) and "ray::" in "\n".join(node.message):
            return False  # the remote traceback inside Ray's message
        if record or tag != node.tag or not goes_past_gap(body, len(empty)):
            stream.close(node, False)
            return False
        for blank in empty:
            self._say(node, blank, "")
        self._say(node, line, body)
        return True

    def _rule(self, stream: Stream, line: Line) -> None:
        """The line between members of an exception group."""
        for node in list(stream.open):
            if node.margin and not node.group:
                stream.close(node, node.exception is None)
        stream.settle()
        for node in stream.open:
            if node.group:
                node.lines.append(line)
                node.touched = self._clock

    def _frame(self, stream: Stream, line: Line, tag: str | None, margin: bool, m: re.Match[str]) -> bool:
        path, lineno, function = m[2], int(m[3]), (m[4] or "").strip()
        cut = False
        nodes = [
            n for n in stream.open if n.exception is None and n.margin == margin and n.tag in (tag, None)
        ]
        node = self._fitting(nodes, path, lineno)
        if node is None:
            talking = self._latest([n for n in stream.open if n.exception is not None and n.margin == margin])
            if talking is not None and len(talking.message) < _MESSAGE_LINES:
                if "ray::" in "\n".join(talking.message) and not talking.group:
                    node = self._nested(stream, talking)
                else:
                    self._say(talking, line, line.body)
                    return True
            elif stream.mute:
                return True
            else:
                node = OpenTraceback(line, line.rank or tag, tag, margin)
                node.cut, node.intro = True, stream.previous
                cut = True
                stream.indent = 0 if margin else max(len(m[1]) - 2, 0)
                stream.settle()
                stream.open.append(node)
        node.flush()
        node.pending = (path, lineno, function, line)
        node.indent = min(len(m[1]), 2) if cut else len(m[1])
        self._take(node, line)
        return True

    def _nested(self, stream: Stream, outer: OpenTraceback) -> OpenTraceback:
        """A remote traceback printed inside the message of the local one (Ray)."""
        assert outer.exception is not None
        node = OpenTraceback(outer.exception, outer.rank, outer.tag, outer.margin)
        node.parent, node.touched = outer, self._clock
        outer.group = True  # stays open until its member is finished
        stream.open.append(node)
        return node

    def _other(self, stream: Stream, line: Line, tag: str | None, margin: bool, body: str) -> bool:
        reading = [
            n for n in stream.open if n.exception is None and n.margin == margin and n.tag in (tag, None)
        ]
        node = self._latest(reading)
        if node is not None:
            if CARET.match(body) or REPEATED.match(body):
                self._take(node, line)
                return True
            indent = len(body) - len(body.lstrip())
            found = exception_of(body) if indent <= max(node.indent - 2, 0) else None
            if found is None and indent > node.indent:
                if node.pending is None and node.lines[-1].body == line.body:  # ranks that fail alike
                    node = self._latest([n for n in reading if n.pending]) or node
                node.flush(body)
                self._take(node, line)
                return True
            if found is not None:
                return self._exception(reading, line, found)
            if node.indent == 0 and node.pending:  # indentation was stripped on the way
                node.flush(body)
                self._take(node, line)
                return True
            if node.frames or node.pending:
                loose = EXCEPTION.match(body)
                named = loose is not None and names_a_class(loose[1], node.pending is not None)
                if loose and named and indent == 0 and not BREAK.match(body):
                    return self._exception(reading, line, (loose[1], loose[2] or ""))
        talking = self._latest(
            [
                n
                for n in stream.open
                if n.exception is not None and n.margin == margin and n.tag in (tag, None)
            ]
        )
        if talking is None:
            if not margin:
                for n in [n for n in stream.open if n.margin]:
                    stream.close(n, n.exception is None)
                stream.settle()
            return False
        if (BREAK.match(body) and not CONTINUES.match(body)) or len(talking.message) >= _MESSAGE_LINES:
            stream.close(talking, False)
            return False
        self._say(talking, line, body)
        return True

    def _exception(self, nodes: list[OpenTraceback], line: Line, found: tuple[str, str]) -> bool:
        ready = [n for n in nodes if n.frames or n.pending] or nodes
        node = self._latest(ready)
        assert node is not None
        node.flush()
        node.exception = line
        node.type, first = found
        node.message.append(first)
        self._take(node, line)
        return True

    # -- choosing and closing -----------------------------------------------------------------------

    def _fitting(self, nodes: list[OpenTraceback], path: str, lineno: int) -> OpenTraceback | None:
        """The open traceback a frame belongs to: not one that already has it, else the latest."""
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        fresh = [n for n in nodes if not n.holds(path, lineno)]
        # A sibling whose last frame is followed by this one elsewhere is the better home.
        for other in nodes:
            for before, after in zip(other.frames, other.frames[1:], strict=False):
                if (after.path, after.lineno) == (path, lineno):
                    better = [n for n in fresh if n is not other and n.last == (before.path, before.lineno)]
                    if better:
                        return better[0]
        return self._latest(fresh or nodes)

    @staticmethod
    def _latest(nodes: list[OpenTraceback]) -> OpenTraceback | None:
        return max(nodes, key=lambda n: n.touched) if nodes else None

    def _take(self, node: OpenTraceback, line: Line) -> None:
        node.lines.append(line)
        node.touched = self._clock
        if node.rank is None and node.tag is None and line.rank is not None:
            node.rank = line.rank

    def _say(self, node: OpenTraceback, line: Line, body: str) -> None:
        node.message.append(body)
        self._take(node, line)
