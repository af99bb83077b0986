"""The line that a native stack stands for. Frames, registers and the words of a signal say where a process was when it
died, never why; why stands above them, in the message of the error that printed them."""

from __future__ import annotations

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import is_echo
from mtpdoctor.log.types import Attempt, EventKind, Line, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

ABOVE = 80  # physical lines
APART = 5  # lines between two of one message that say nothing of trouble
_STACK = lazy(
    r"^\s*(?:#\d+\s|frame #\d+: |\[?@?\s*0x[0-9a-f]{6,}|PC: @|\*\*\* |@\s+0x|\S*\([^)]*\+0x[0-9a-f]+\)\s*\[0x|-{3} |={8,}|Exception raised from "
    r"|Fatal Python error: (?:Aborted|Segmentation fault)|File \"<unknown>\"|(?:Current t|T)hread 0x|C\+\+ (?:CapturedT|t)raceback|$)"
)
_TROUBLE = lazy(
    r"(?i)\b(?:fail(?:ed|ure|s)?|error|ERR\d+|cannot|can't|could not|unable|invalid|refused|denied|unreachable|no such|timed? ?out|unknown|missing"
    r"|illegal|unsupported|exhausted|out of memory|aborting|assert\w*|mismatch\w*)\b|\bwhat\(\):|terminate called"
)


def with_error_above(cause: Cause, reading: LogReading, attempt: Attempt) -> Cause:
    """The cause with the beginning of the message above the stack as its root; as it is where none stands there."""
    event = cause.failure.event
    if event is None or not is_echo(event) or cause.root.key != event.line.key:
        return cause
    if cause.match is not None and not cause.match.rule.generic:
        return cause
    line = event.line
    first = max(attempt.first[1] if attempt.first[0] == line.file else 1, line.number - ABOVE)
    told = {e.line.key for e in attempt.events if e.kind in (EventKind.ERROR, EventKind.CUDA)}
    found, apart = None, 0
    for other in reversed(reading.hits.window(line.file, first, line.number)):
        if other.key >= line.key or other.stream != line.stream:
            continue
        if _STACK.match(other.body):
            continue
        if other.key in told or _TROUBLE.search(other.body[:400]):
            found, apart = other, 0
            continue
        apart += 1
        if apart > APART or (found is not None and is_healthy(other)):
            break
    return cause if found is None else replace(cause, root=found)


_HEALTHY = lazy(r"avail mem=|\d+%\||server_args=|\bNCCL INFO\b|\b(?:begin|end)s?\.|^(?:\$|\S+@\S+[$#]) ")


def is_healthy(line: Line) -> bool:
    """A line of a launch that goes well: a message does not reach beyond it."""
    return _HEALTHY.search(line.body) is not None
