"""The line that says why, where an exception or an exit status only says that.

A library tells its trouble (a refused address, a card, a missing option) in a line of its own and gives an error
code back; what is raised of it names nothing. Such a line, just before the exception and of the same rank, says more
than the exception does. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from mtpdoctor.diagnose.failures import Failure
from mtpdoctor.log.tracelines import exception_of
from mtpdoctor.log.types import Attempt, Event, EventKind, Line, Traceback
from mtpdoctor.patterns import lazy

NEAR = (
    60  # physical lines between the line and what followed from it (other ranks and NCCL INFO stand between)
)
BELOW = 8  # lines below a banner

_TROUBLE = lazy(
    r"(?i)\b(?:fail(?:ed|ure|s)?|error|cannot|can't|could not|couldn't|unable|invalid|refused|denied|unreachable|no such|not found|"
    r"not (?:support\w*|exist|available|permitted)|does not|doesn't|timed? ?out|unknown|missing|unrecognized|illegal|bad address|exhausted)"
)
# What an exception can be about: an address, a file, an option, a device, a quoted name.
_OBJECT = lazy(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\bhttps?://|\b\w[\w.-]*:\d{2,5}\b|(?<![\w.])/[\w.-]+(?:/[\w.-]+)+|(?<![\w-])--[a-z][\w-]+|\b(?:mlx5|bnxt_re|hns|irdma|ib|eth|bond|ens|enp|eno|hsn)_?\d+\w*\b"
    r"|/dev/\w+|\b0x[0-9a-f]{6,}\b|'[^']{2,80}'|\"[^\"]{2,80}\"|`[^`]{2,80}`|\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+=|\b[A-Z]{2,}[A-Z0-9]*\b instruction"
)
# Said by the exception itself, though the name of a class or attribute is no object.
_PLAIN = lazy(
    r"^(?:'\w+' object has no attribute|'\w+' object is not|unsupported operand|object of type|cannot unpack|not enough values|too many values"
    r"|.{0,40}unhandled (?:system|cuda) error|.{0,60}internal error|.{0,60}remote process exited|$)"
)
_BANNER = lazy(r"^[\W_]*(?:\[?(?:ERROR|FATAL|WARN(?:ING)?|Triton|BEG|BEGIN|START)\]?[\W_]*)+$", re.I)
_CLOSES = lazy(r"(?i)\[?END\]?[\W_]*$")
_EXIT = lazy(
    r"(?i)\bexited with (?:an? )?(?:exit )?code (?!0\b)-?\d+|\bexit(?:ed)? (?:code|status):? ?(?!0\b)-?\d+|exitcode\W{1,4}(?!0\b)-?\d+"
)


def line_that_says_why(
    failure: Failure, attempt: Attempt, silent: Collection[tuple[int, int, int]]
) -> Line | None:
    """The line before ``failure`` that names what it does not, else None. ``silent``: lines known to mean nothing."""
    event = failure.event
    said = _message(failure)
    bare_exit = bool(_EXIT.search(said))
    if not bare_exit:
        if event is None or event.kind is not EventKind.TRACEBACK:
            return None
        if not _PLAIN.search(said) and not _vague(said):
            return None
    found: Event | None = None
    others = (t.traceback for t in attempt.events if t.traceback is not None and t is not event)
    begun = (traceback.lines[0] for traceback in others if traceback.lines)
    begins = {(first.file, first.number) for first in begun}
    for other in attempt.events:
        line = other.line
        if (line.file, line.number + 1) in begins:  # the heading of another exception
            continue
        if line.key >= failure.start.key:
            break
        if line.file != failure.start.file or failure.start.number - line.number > NEAR:
            continue
        if other is event or line.key in silent or other.kind not in (EventKind.ERROR, EventKind.CUDA):
            continue
        if other.rank is not None and failure.rank is not None and other.rank != failure.rank:
            continue
        if _TROUBLE.search(line.body) and (_OBJECT.search(line.body) or bare_exit):
            found = other
    return found.line if found is not None else None


def _vague(said: str) -> bool:
    """NCCL's and other libraries' codes, which name an address or option only as advice."""
    return bool(
        re.search(r"(?i)unhandled (?:system|cuda) error|internal error|ncclSystemError|returned -?\d+$", said)
    )


def _message(failure: Failure) -> str:
    event = failure.event
    if event is not None and event.traceback is not None:
        return event.traceback.root.message.strip()
    return failure.start.body


def below_banner(line: Line, traceback: Traceback | None) -> Line:
    """``line``, or where it is a banner or an exception without a message: the first line below that says something."""
    if traceback is None or not (_BANNER.match(line.body.strip()) or _empty(line)):
        return line
    for below in [x for x in traceback.lines if x.key > line.key][:BELOW]:
        text = below.body.strip()
        if not text or _BANNER.match(text):
            continue
        if _CLOSES.search(text) and not re.search(r"[a-z]{3}", text):
            return line
        if text.endswith(":") or not _TROUBLE.search(text):
            continue
        return below
    return line


def _empty(line: Line) -> bool:
    found = exception_of(line.body.strip())
    return found is not None and not found[1].strip() and line.body.rstrip().endswith(":")
