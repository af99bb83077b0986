"""Python stacks that stand in a log: dumps of py-spy and of faulthandler, and what Ctrl-C interrupted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mtpdoctor.log.types import Frame, Line, Traceback
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

FRAMES = 30
MOST = 64  # stacks of one log
_PROCESS = lazy(r"^\s*Process (\d+): (.{1,200})")
_THREAD = lazy(
    r'^\s*(?:Current t|T)hread (?:0x)?[0-9a-fA-F]+\b(?: \((active|idle)[^)]*\))?(?:: "?([^"\n]{0,80})"?)?'
)
_RECENT = lazy(r"\((most recent call first)\)")
_SPY_FRAME = lazy(r"^\s+([\w<>.$ -]{1,120}) \(([^()]{1,300}:\d+)\)\s*$")
_HANDLER_FRAME = lazy(r'^\s*File "([^"]{1,300})", line (\d+) in (\S{1,120})')
_RANKED = lazy(r"(?:scheduler|data_parallel)\w*?_((?:[A-Z][A-Z_]*\d+_?)+)")
_WRITTEN = lazy(r"(.*?) \((.*):(\d+)\)$")
_RANK_PART = lazy(r"[A-Z][A-Z_]*?\d+")


@dataclass(frozen=True, slots=True)
class Stack:
    """What one thread was doing. ``frames``: innermost last, "function (file:line)". ``busy``: None where not told."""

    who: str  # rank, else process or thread, as the dump names it
    frames: tuple[str, ...]
    busy: bool | None = None
    line: Line | None = None  # where it stands in the log


def stacks_in(lines: Iterable[Line]) -> tuple[Stack, ...]:
    """Stacks of py-spy (``Thread 1 (idle): "MainThread"``) and faulthandler (``most recent call first``) dumps."""
    out: list[Stack] = []
    for stack in _stacks(lines):
        if stack.frames and len(out) < MOST:
            out.append(stack)
    return tuple(out)


def _stacks(lines: Iterable[Line]) -> Iterator[Stack]:
    process = ""
    head: tuple[str, bool | None, Line] | None = None
    frames: list[str] = []
    for line in lines:
        text = line.body
        m = _PROCESS.match(text)
        if m:
            if head is not None:
                yield _made(head, frames)
            process, head, frames = f"{m[2].strip()[:80]} ({m[1]})", None, []
            continue
        m = _THREAD.match(text)
        if m and (m[1] or _RECENT.search(text)):
            if head is not None:
                yield _made(head, frames)
            busy = None if m[1] is None else m[1] == "active"
            head, frames = (line.rank or _who(process) or (m[2] or "").strip() or "a thread", busy, line), []
            continue
        if head is None:
            continue
        frame = _frame(text)
        if frame is not None:
            frames.append(frame)
        elif not text.strip() or not text[:1].isspace():
            yield _made(head, frames)
            head, frames = None, []
    if head is not None:
        yield _made(head, frames)


def frames_of(stack: Stack) -> tuple[Frame, ...]:
    """Its frames as those of a traceback, innermost last; the line of the log is that of its head."""
    head = stack.line
    found = [_WRITTEN.match(text) for text in stack.frames] if head is not None else []
    return tuple(Frame(m[2], int(m[3]), m[1], "", head) for m in found if m is not None and head is not None)


def is_stack(line: Line) -> bool:
    """A line of such a dump."""
    text = line.body
    return any(p.match(text) for p in (_SPY_FRAME, _HANDLER_FRAME, _THREAD, _PROCESS))


def _made(head: tuple[str, bool | None, Line], frames: Sequence[str]) -> Stack:
    who, busy, line = head
    return Stack(who, tuple(reversed(frames[:FRAMES])), busy, line)


def _frame(text: str) -> str | None:
    m = _SPY_FRAME.match(text)
    if m:
        return f"{m[1].strip()} ({m[2]})"
    m = _HANDLER_FRAME.match(text)
    return f"{m[3]} ({m[1]}:{m[2]})" if m else None


def _who(process: str) -> str:
    """ "TP1" of "sglang::scheduler_TP1 (4242)"."""
    m = _RANKED.search(process)
    return " ".join(_RANK_PART.findall(m[1])) if m else process


def interrupted(tracebacks: Iterable[Traceback]) -> tuple[Stack, ...]:
    """What was interrupted by Ctrl-C, by the tracebacks of ``KeyboardInterrupt``."""
    out: list[Stack] = []
    for traceback in tracebacks:
        if traceback.type.rsplit(".", 1)[-1] != "KeyboardInterrupt" or not traceback.frames:
            continue
        frames = tuple(f"{f.function} ({f.path}:{f.lineno})" for f in traceback.frames[-FRAMES:])
        out.append(Stack(traceback.rank or "the process", frames, None, traceback.frames[-1].line))
    return tuple(out[:MOST])
