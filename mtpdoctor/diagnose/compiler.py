"""The compiler's own error, where an exception (or pip) only says that a build failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import event_lines
from mtpdoctor.log.types import Attempt, Line, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

ABOVE = 600  # physical lines above the exception in which the build's output stands, if not in its message
NEAR = 30  # lines above in which a compiler called directly has written
BELOW = 60  # lines below: "Killed" by a shell ends what is read as the exception's message
_BEGINS, _ENDS = "FAILED:", "ninja: build stopped"
_PIP_BEGINS, _PIP_ENDS = "lines of output]", "[end of output]"
_ERROR = lazy(
    r"(?:^|[\s:)])(?:fatal )?error(?: C\d+|\[E\d+\])?\s*:\s|\bfatal\s*:\s|\b(?:nvcc|ptxas) fatal\b|\bcannot find -l|: undefined reference to "
    r"|: not found$|\bNo such file or directory$|^Killed\b|: Killed$|: Permission denied$|\bNo space left on device|^CMake Error\b"
    # of a file that another build, or a shared disk, took away or left half written
    r"|: file (?:not recognized|truncated)\b|: file format not recognized|\bStale file handle\b|: Text file busy$|: Input/output error$"
)
_COMMAND = lazy(r"\s-[co]\s\S|\s-MF\s")  # the line that was run, with the compiler's own options
_PIP = lazy(
    r"(?i)^\s*(?:ERROR: )?(?:Failed building wheel|Could not build wheels|Failed to build\b|error: subprocess-exited-with-error|error: metadata-generation-failed)"
)
_CALLED = lazy(
    r"\bPTXAS|CompileError\b|CompilationError\b|(?i:compilation (?:error|failed))|CalledProcessError: Command '?\[?'?\S*(?:cc|\+\+|clang|nvcc|hipcc)\b"
)


def of_a_build(cause: Cause) -> bool:
    """Does the cause only say that a build failed?"""
    if cause.match is not None and not cause.match.rule.generic:
        return False
    return any(
        "ninja" in line.text.lower()
        or "building extension" in line.text
        or _PIP.match(line.body)
        or _CALLED.search(line.text)
        for line in (cause.root, *cause.chain)
    )


def with_compilers_error(cause: Cause, reading: LogReading, attempt: Attempt) -> Cause:
    """The cause with the compiler's first error as its root; as it is where none is shown."""
    start, event = cause.failure.start, cause.failure.event
    own = event_lines(event) if event is not None else set()
    last = max([start.number, *(n for file, n, *_ in own if file == start.file)])
    first = max(attempt.first[1] if attempt.first[0] == start.file else 1, start.number - ABOVE)
    lines = reading.hits.window(start.file, first, last + BELOW)
    at = next((i for i, line in enumerate(lines) if line.number > last), len(lines))
    end = next((i for i, line in enumerate(lines[at:], at) if line.body.strip().startswith(_ENDS)), at)
    found = _between(lines[: max(at, end)], _BEGINS, _ENDS)
    if found is None and _PIP.match(cause.root.body):
        found = _between(lines[:at], _PIP_BEGINS, _PIP_ENDS)
    if found is None and _CALLED.search(" ".join(line.text for line in (cause.root, *cause.chain))):
        message = [line for line in lines[:at] if line.key in own and line.key > cause.root.key]
        above = [line for line in lines if start.number - NEAR <= line.number < start.number]
        found = _first(message) or _first(above)
    return cause if found is None else replace(cause, root=found)


def _between(lines: Sequence[Line], begins: str, ends: str) -> Line | None:
    """The first error of a build's output; of several builds the last one counts, which the exception came from."""
    inside, found = False, None
    for line in lines:
        text = line.body.strip()
        if begins in text[:80]:
            if not inside:
                found = None
            inside = True
        elif text.startswith(ends):
            inside = False
        elif inside and found is None and _is_error(text):
            found = line
    return found


def _first(lines: Iterable[Line]) -> Line | None:
    return next((line for line in lines if _is_error(line.body.strip())), None)


def _is_error(text: str) -> bool:
    return _ERROR.search(text) is not None and _COMMAND.search(text) is None
