"""Tracebacks that a library has dressed up: rich's boxes, IPython's and Jupyter's listings.

Both say where a frame is in a form of their own and show the code around it; the exception's line is a
plain one. Forms: ``rich.traceback`` and ``IPython.core.ultratb`` (its ``File path:12, in f(x)`` since
IPython 8, ``path in f(x)`` before).
"""

from __future__ import annotations

from mtpdoctor.log.tracelines import OpenTraceback, exception_of
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

RICH, IPYTHON = "rich", "ipython"
_PATH_MOST = 1000

_RICH_HEAD = lazy(r"^\s*[╭┌+][─-]+ *Traceback \(most recent call last\)")
_IPYTHON_HEAD = lazy(r"^[A-Za-z_][\w.]* {2,}Traceback \(most recent call last\)\s*$")
_RICH_END = lazy(r"^\s*[╰└+][─-]{8,}[╯┘+]?\s*$")
_RICH_SIDES = lazy(r"^\s*[│┃|](.*?)[│┃|]?\s*$")
_RICH_FRAME = lazy(r"^(\S.{0,500}?|<.{1,200}?>):(\d{1,9})(?: in (.{1,300}))?$")
_RICH_FUNCTION = lazy(r"^in (\S{1,300})$")
_RICH_CODE = lazy(r"^❱\s*(\d{1,9})\b[ │]*(.*)$")
_RICH_OTHER = lazy(r"^\s*(?:\d{1,9}\b.*)?$|[│╭╰❱]")
_FILE = lazy(
    r"^(?:File (?P<file>.{1,500}?):(?P<line>\d{1,9})(?:, in (?P<function>[^(\n]{1,300}).*)?"
    r"|(?P<cell>(?:Cell |Input )?In ?\[\d+\])(?:, line (?P<cell_line>\d{1,9})|, in .{1,300})"
    r"|(?P<old>(?:[~/]|<ipython-input)\S{1,500}) in (?P<old_function>[^(\n]{1,300}).*)\s*$"
)
_ARROW = lazy(r"^-{1,12}> ?(\d{1,9})(?: (.*))?$")
_AROUND = lazy(r"^\s*\d{1,9}(?: .*)?$")


def dress_of(head: str) -> str | None:
    """RICH or IPYTHON where the line that holds the head of a traceback is one of theirs."""
    if _RICH_HEAD.match(head):
        return RICH
    return IPYTHON if _IPYTHON_HEAD.match(head) else None


def take(node: OpenTraceback, line: Line, body: str) -> bool:
    """Reads one line of a dressed traceback into ``node``; False when it is none of its lines."""
    return _rich(node, line, body) if node.dress == RICH else _ipython(node, line, body)


def _rich(node: OpenTraceback, line: Line, body: str) -> bool:
    if _RICH_END.match(body):
        node.flush()
        node.dress = None  # the exception's line follows
        return True
    sides = _RICH_SIDES.match(body)
    text = (sides[1] if sides else body).strip()
    if m := _RICH_CODE.match(text):
        if node.pending and node.pending[1] == int(m[1]):
            node.flush(m[2])
        return True
    if node.pending and not node.pending[2] and (m := _RICH_FUNCTION.match(text)):
        node.pending = (node.pending[0], node.pending[1], m[1], node.pending[3])
        return True
    if m := _RICH_FRAME.match(node.begun + text):
        node.flush()
        node.pending = (m[1], int(m[2]), m[3] or "", line)
        node.begun = ""
        return True
    if sides is None and not _RICH_OTHER.search(body):
        return False
    # a path longer than the box goes on in its next line
    begins = text[:1] in ("/", "~", "<") or (node.begun and text)
    node.begun = (node.begun + text)[:_PATH_MOST] if begins else ""
    return True


def _ipython(node: OpenTraceback, line: Line, body: str) -> bool:
    if m := _FILE.match(body):
        path = m["file"] or m["cell"] or m["old"]
        function = (m["function"] or m["old_function"] or "<module>").strip()
        node.flush()
        function = function if function[:1] == "<" else function.rsplit(".", 1)[-1]  # without the class
        node.pending = (path, int(m["line"] or m["cell_line"] or 0), function, line)
        return True
    if m := _ARROW.match(body):
        if node.pending and node.pending[1] in (0, int(m[1])):
            node.pending = (node.pending[0], int(m[1]), node.pending[2], node.pending[3])
            node.flush(m[2] or "")
        return True
    if exception_of(body) is not None:
        node.flush()
        node.dress = None
        return False
    return _AROUND.match(body) is not None
