"""The compiler's own error, where an exception only says that ninja's build failed."""

from __future__ import annotations

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import event_lines
from mtpdoctor.log.types import Attempt, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

ABOVE = 600  # physical lines above the exception in which the build's output stands, if not in its message
_BEGINS, _ENDS = "FAILED:", "ninja: build stopped"
_ERROR = lazy(
    r"(?:^|[\s:)])(?:fatal )?error(?: C\d+)?\s?:\s|\bfatal\s*:\s|\b(?:nvcc|ptxas) fatal\b|\bcannot find -l|: undefined reference to "
    r"|: not found$|\bNo such file or directory$|^Killed\b|: Killed$|: Permission denied$|\bNo space left on device"
)
_COMMAND = lazy(r"\s-[co]\s\S|\s-MF\s")  # the line that was run, with the compiler's own options


def of_a_build(cause: Cause) -> bool:
    """Does the cause only say that a build by ninja failed?"""
    if cause.match is not None and not cause.match.rule.generic:
        return False
    return any(
        "ninja" in line.text.lower() or "building extension" in line.text
        for line in (cause.root, *cause.chain)
    )


def with_compilers_error(cause: Cause, reading: LogReading, attempt: Attempt) -> Cause:
    """The cause with the compiler's first error as its root; as it is where none is shown."""
    start, event = cause.failure.start, cause.failure.event
    numbers = [n for file, n, *_ in event_lines(event) if file == start.file] if event is not None else []
    last = max([start.number, *numbers])
    first = max(attempt.first[1] if attempt.first[0] == start.file else 1, start.number - ABOVE)
    inside, found = False, None
    for line in reading.hits.window(start.file, first, last):
        text = line.body.strip()
        if text.startswith(_BEGINS):
            if not inside:
                found = None  # of several builds the last one counts, which the exception came from
            inside = True
        elif text.startswith(_ENDS):
            inside = False
        elif inside and found is None and _ERROR.search(text) and not _COMMAND.search(text):
            found = line
    return cause if found is None else replace(cause, root=found)
