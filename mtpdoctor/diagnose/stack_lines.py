"""The line that a native stack stands for, or the report of a death. Frames, registers and the words of a signal say where a
process was when it died, never why; why stands above them, in the message of the error that printed them, or in the last
thing that the process said went wrong."""

from __future__ import annotations

from collections.abc import Collection

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import PANIC, is_echo
from mtpdoctor.log.types import Attempt, EventKind, Line, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

ABOVE = 80  # physical lines
LAST_WORDS = 25  # physical lines above the report of an end
_WRONG = lazy(
    r"(?i)\b(?:fail(?:ed|ure)?|errors?|fatal|cannot|could not|unable to|not found|not supported|invalid)\b"
)
_AMISS = lazy(
    r"(?i)\b(?:not|no|does(?:n't)|mismatch\w*|must|timed? ?out|exceeds?|unsupported|missing|exception|unexpected|expected|terminated|dropping|lost"
    r"|refused|denied|illegal|abort\w*|dead|crash\w*)\b"
)
_GOES_ON = lazy(
    r"(?i)warning|deprecat|fall(?:ing)? ?back|ignor|retry|will be|instead|received sigquit|sigterm|scheduler is dead|exit ?code|disabled?\b"
)
APART = 5  # lines between two of one message that say nothing of trouble
_STACK = lazy(
    r"^\s*(?:#\d+\s|frame #\d+: |\[?@?\s*0x[0-9a-f]{6,}|PC: @|\*\*\* |@\s+0x|\S*\([^)]*\+0x[0-9a-f]+\)\s*\[0x|-{3} |={8,}|Exception raised from "
    r"|Fatal Python error: (?:Aborted|Segmentation fault)|File \"<unknown>\"|(?:Current t|T)hread 0x|C\+\+ (?:CapturedT|t)raceback|$)"
)
_TROUBLE = lazy(
    r"(?i)\b(?:fail(?:ed|ure|s)?|error|ERR\d+|cannot|can't|could not|unable|invalid|refused|denied|unreachable|no such|timed? ?out|unknown|missing"
    r"|illegal|unsupported|exhausted|out of memory|aborting|assert\w*|mismatch\w*)\b|\bwhat\(\):|terminate called"
)

# Said of modules of other models, at every start.
_OTHER_MODELS = lazy(r"Ignore import error when loading ")


def with_last_words(
    cause: Cause, reading: LogReading, attempt: Attempt, silent: Collection[tuple[int, int, int]]
) -> Cause:
    """Where nothing but the report of an end is known: the last line above it in which the server says that something went
    wrong. ``silent``: lines known to be harmless."""
    event = cause.failure.event
    if event is None or event.kind not in (EventKind.SIGNAL, EventKind.EXIT) or cause.match is not None:
        return cause
    line = event.line
    first = max(attempt.first[1] if attempt.first[0] == line.file else 1, line.number - LAST_WORDS)
    records = [
        other
        for other in reversed(reading.hits.window(line.file, first, line.number))
        if other.key < line.key and other.stream == line.stream and other.body != other.text
    ]
    said = [
        x
        for x in records
        if x.key not in silent and "server_args=" not in x.body and not _GOES_ON.search(x.body)
    ]
    telling = next((x for x in said if _WRONG.search(x.body[:300])), None)
    if telling is None and records and said and said[0] is records[0]:  # the very last thing that was said
        telling = said[0] if _AMISS.search(said[0].body[:300]) else None
    return cause if telling is None else replace(cause, root=telling)


def with_error_above(cause: Cause, reading: LogReading, attempt: Attempt) -> Cause:
    """The cause with the beginning of the message above the stack as its root; as it is where none stands there."""
    event = cause.failure.event
    if event is not None and PANIC.search(event.line.body) and cause.match is None:
        return _with_words_of_panic(cause, reading)
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
        if other.key in told or (_TROUBLE.search(other.body[:400]) and not _OTHER_MODELS.search(other.body)):
            found, apart = other, 0
            continue
        apart += 1
        if apart > APART or (found is not None and is_healthy(other)):
            break
    return cause if found is None else replace(cause, root=found)


def _with_words_of_panic(cause: Cause, reading: LogReading) -> Cause:
    """Rust says where on one line, and what on the next."""
    at = cause.root
    below = reading.hits.window(at.file, at.number + 1, at.number + 4)
    said = next((x for x in below if x.stream == at.stream and x.body.strip()), None)
    return cause if said is None or said.body.startswith("note: ") else replace(cause, root=said)


_HEALTHY = lazy(r"avail mem=|\d+%\||server_args=|\bNCCL INFO\b|\b(?:begin|end)s?\.|^(?:\$|\S+@\S+[$#]) ")


def is_healthy(line: Line) -> bool:
    """A line of a launch that goes well: a message does not reach beyond it."""
    return _HEALTHY.search(line.body) is not None
