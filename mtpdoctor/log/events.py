"""Events out of single lines and tracebacks, before it is known to which attempt and stage they belong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.log.event_patterns import PATTERNS, Pattern, Weight
from mtpdoctor.log.traceback_stream import Found
from mtpdoctor.log.tracelines import exception_of, is_record
from mtpdoctor.log.typed import looks
from mtpdoctor.log.types import EventKind, Line, Traceback
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class RawEvent:
    kind: EventKind
    line: Line
    summary: str
    weight: Weight
    rank: str | None
    traceback: Traceback | None = None
    main: bool = False  # an uncaught exception of the launching process
    logged: bool = (
        False  # a record that tells of an error stands above the traceback: it was caught, and told
    )
    stack: tuple[tuple[str, str], ...] = ()  # path and function of faulthandler's dump, innermost first

    @property
    def first(self) -> Line:
        """The first line that belongs to the event."""
        node = self.traceback.root if self.traceback is not None else None
        return min((node.head, self.line), key=lambda x: x.key) if node else self.line

    @property
    def end(self) -> Line:
        if self.traceback is not None and self.traceback.lines:
            return self.traceback.lines[-1]
        return self.line


_ARGPARSE = lazy(r"^(?P<prog>[\w./+ -]{1,80}): error: (?P<message>.+)$", re.S)
_ARGPARSE_TEXT = lazy(
    r"^(?:argument |unrecognized arguments|the following arguments are required|ambiguous option|one of the arguments"
    r"|invalid choice|expected |not allowed with|Missing value|too few arguments)"
)
_OTHER_TOOLS = lazy(
    r"(?:^|[/ ])(?:srun|slurmstepd|nvcc|gcc|g\+\+|cc|c\+\+|clang\+*|ld|collect2|ptxas|ninja|cmake|git|pip|uv|docker)$"
)
_SERIOUS_INTRO = lazy(
    r"hit an exception|Initialization failed|failed to (?:start|launch|initialize)|Process \S+:\s*$", re.I
)
# Said on the line above a traceback, or in the record that it belongs to.
_HARMLESS_INTRO = lazy(
    r"Exception ignored in|Task exception was never retrieved|Exception in ASGI application|--- Logging error ---|^future: <Task"
    r"|Error processing request|Error in request|while handling request|Error while loading conda"
    r"|Can not initialize OpenAIServingResponses|retry\(\) failed once|tool call parsing error",
    re.I,
)
_DEAD_CHILD = (
    "crashed with exit code",
    "terminated with",
    "xit code",
    "xited with",
    "xitcode",
    "exit status",
)
_STATUS = lazy(r"(?:code|with|status|exitcode)\s*[:=]?\s*\(?(-?\d{1,3})\b|status=(\d+)/", re.I)
_STOPPED = {-15, 143, -2, 130}
_UNIMPORTANT = lazy(
    r"Ignore import error when loading|NCCL_ASYNC_ERROR|error_correction|^\s*--\w|\berror rate\b|0 error|no error",
    re.I,
)


def line_event(line: Line, after_usage: bool = False) -> RawEvent | None:
    """The event at one line outside tracebacks, None when it is none. ``after_usage``: argparse's usage text
    stood above."""
    body = line.body
    if not body or "server_args=" in body[:200] or body.startswith(("Decode batch", "Prefill batch")):
        return None
    parsed = _ARGPARSE.match(body.strip()) if ": error: " in body and not is_record(line) else None
    if (
        parsed
        and not _OTHER_TOOLS.search(parsed["prog"])
        and (_ARGPARSE_TEXT.match(parsed["message"]) or after_usage)
    ):
        return RawEvent(EventKind.ARGPARSE, line, parsed["message"].strip()[:500], Weight.DIES, line.rank)
    if _UNIMPORTANT.search(body):
        return None
    if body.startswith("Stopping ") and "systemd" in line.stream:
        return RawEvent(EventKind.SHUTDOWN, line, body.strip()[:500], Weight.STOPPED, line.rank)
    for pattern in PATTERNS:
        if pattern.literal in body and (pattern.regex is None or pattern.regex.search(body)):
            if looks(body):
                return None
            if pattern.weight is Weight.NONE and (exception := _bare_exception(line, body)) is not None:
                return exception
            return RawEvent(pattern.kind, line, body.strip()[:500], _weight(pattern, line, body), line.rank)
    return _bare_exception(line, body)


_ASKS_STATUS = lazy(r"[$#%>] *echo (?:\"?[\w =:]*)?\$\??\{?\?\}?\"?\s*$")
_ANSWERS_STATUS = lazy(r"^\s*(?:\w[\w =:]{0,20}[=: ])?(\d{1,3})\s*$")


def status_event(question: Line | None, line: Line) -> RawEvent | None:
    """The answer to ``echo $?`` below a launch that has failed; None for any other line."""
    if question is None or "echo" not in question.body or not _ASKS_STATUS.search(question.body):
        return None
    m = _ANSWERS_STATUS.match(line.body)
    if m is None or int(m[1]) == 0:
        return None
    weight = (
        Weight.STOPPED if int(m[1]) in _STOPPED else Weight.LIKELY
    )  # of a server that is up: another command
    return RawEvent(EventKind.EXIT, line, f"exit status {m[1]}", weight, line.rank)


_DUMPED = lazy(r'^\s*File "([^"]+)", line \d+ in (\S+)')
_DUMP_LINES = 300
# A record of PyTorch's or glog's own level W, I or V: an exception that was caught and told.
_BELOW_ERROR = lazy(r"(?:\[rank\d+\]:)?\[?[WIV]\d{4} \d\d:\d\d:\d\d")


def with_stacks(events: Sequence[RawEvent], lines: Sequence[Line]) -> list[RawEvent]:
    """The events, native crashes with the Python stack that faulthandler printed below them."""
    out: list[RawEvent] = []
    place: dict[tuple[int, int, int], int] | None = None
    for event in events:
        if event.kind is EventKind.NATIVE and "Fatal Python error" in event.line.body:
            if place is None:
                place = {line.key: i for i, line in enumerate(lines)}
            at = place.get(event.line.key)
            if at is not None:
                event = replace(event, stack=_stack(event.line, lines[at + 1 : at + 1 + _DUMP_LINES]))
        out.append(event)
    return out


def _stack(start: Line, lines: Sequence[Line]) -> tuple[tuple[str, str], ...]:
    """The calls of the thread that crashed; of the first thread where none is said to be the current one."""
    first: list[tuple[str, str]] = []
    current: list[tuple[str, str]] | None = None
    block = first
    for line in lines:
        if (line.file, line.stream) != (start.file, start.stream):
            continue
        m = _DUMPED.match(line.body)
        if m:
            block.append((m[1], m[2]))
        elif line.body.startswith("Current thread"):
            block = current = []
        elif line.body.startswith("Thread 0x") and block:
            block = []
    return tuple(current or first)


def exit_status(text: str) -> int | None:
    """The exit status or signal that the text tells of, as printed."""
    found = list(_STATUS.finditer(text))
    return int(found[-1][1] or found[-1][2]) if found else None


def _weight(pattern: Pattern, line: Line, body: str) -> Weight:
    if pattern.kind is EventKind.EXIT:
        status = exit_status(body)
        if status == 0:
            return Weight.NONE
        if status in _STOPPED or "status=15" in body or re.search(r": tasks? [\d,-]+: Terminated", body):
            return Weight.STOPPED
        if "code=exited, status=0" in body:
            return Weight.NONE
    if pattern.kind is EventKind.CUDA and pattern.literal == "CUDA error" and "WARN" in body[:40].upper():
        return Weight.NONE
    if pattern.literal == "Health check failed" and "Force exiting" in body:
        return Weight.STOPPED
    return pattern.weight


def _bare_exception(line: Line, body: str) -> RawEvent | None:
    """An exception line whose traceback is not in the log (cut, quoted, or never printed)."""
    if body[:1].isspace() or len(body) > 4000:
        return None
    found = exception_of(body.removeprefix("- "))
    if found is None or found[0].endswith("Warning"):
        return None
    name, message = found
    if not message and name not in (
        "AssertionError",
        "NotImplementedError",
        "EOFError",
        "KeyboardInterrupt",
        "MemoryError",
    ):
        return None
    if name.rsplit(".", 1)[-1] in ("KeyboardInterrupt",):
        return RawEvent(EventKind.SHUTDOWN, line, body.strip()[:500], Weight.STOPPED, line.rank)
    if not re.search(r"(?:Error|Exception|Interrupt|Exit|OutOfResources|Timeout)$", name):
        return None
    weight = Weight.NONE if is_record(line) else Weight.LIKELY
    return RawEvent(EventKind.ERROR, line, body.strip()[:500], weight, line.rank)


def traceback_event(found: Found) -> RawEvent:
    """The event of a traceback (the outermost of its chain)."""
    traceback = found.traceback
    line = traceback.exception or (traceback.lines[-1] if traceback.lines else traceback.head)
    kind = EventKind.TRACEBACK
    name = traceback.type.rsplit(".", 1)[-1]
    intro = _intro(found)
    main = _is_main(traceback)
    if name in ("KeyboardInterrupt", "SystemExit"):
        weight = Weight.STOPPED
        kind = EventKind.SHUTDOWN if name == "KeyboardInterrupt" else kind
    elif (
        name == "CancelledError"
        or _HARMLESS_INTRO.search(intro)
        or _BELOW_ERROR.match(traceback.root.head.text)
    ):
        weight = Weight.NONE
    elif _SERIOUS_INTRO.search(intro):
        weight = Weight.DIES
    elif is_record(traceback.root.head) and not main:
        weight = Weight.LIKELY
    else:
        weight = Weight.DIES if main else Weight.LIKELY
    summary = (
        f"{traceback.type}: {traceback.message}" if traceback.message else traceback.type
    ) or "traceback, cut"
    logged = not main and weight is Weight.LIKELY and _told(found)
    return RawEvent(
        kind, line, summary.strip()[:2000], weight, traceback.rank, traceback, main, logged=logged
    )


_ERROR_TOLD = lazy(
    r"(?i)\b(?:fail(?:ed|ure|s)?|error|exception|could not|unable|skipp(?:ed|ing)|ignor(?:ed|ing))\b"
)


def _told(found: Found) -> bool:
    """Is the traceback one that a logger wrote below its own line?"""
    line = found.intro
    return line is not None and is_record(line) and _ERROR_TOLD.search(line.body) is not None


def _intro(found: Found) -> str:
    """What the log says just before the traceback."""
    line = found.intro
    return line.body.split("Traceback (most", 1)[0] if line is not None else ""


def _is_main(traceback: Traceback) -> bool:
    """An uncaught exception of the process that was launched, not of a child."""
    if is_record(traceback.head) or not traceback.frames:
        return False
    paths = [f.path for f in traceback.frames[:8]]
    if any("multiprocessing" in p for p in paths[:4]) or traceback.frames[0].function == "_bootstrap":
        return False
    return (
        any(f.function == "<module>" for f in traceback.frames[:4])
        or traceback.frames[0].function == "_run_module_as_main"
    )
