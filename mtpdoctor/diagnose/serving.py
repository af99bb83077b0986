"""What goes wrong with a server that is ready, by its lines alone: transfers from another server, an address that nobody
answers at. It takes no process down, but may end threads of it. Where such lines come again and the server has never served
anything - or nothing since its threads ended - it is the launch that has failed all the same; else it is told as what works
not as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.causality import Causality, Cause, best_match
from mtpdoctor.diagnose.failures import Failure, event_lines, keys_of
from mtpdoctor.kb.types import Match, Role
from mtpdoctor.log.stages import ROUTER_UP
from mtpdoctor.log.types import Attempt, Event, Frame, Line, LogReading, Stage
from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    import re

LOOKED_AT = 400  # physical lines after the one in question, and at the log's end
AGAIN = 2  # lines of trouble from which a server that never served is broken
_WORKS = lazy(r"\b(?:Decode|Prefill) batch\b|\"POST /\S* HTTP/[\d.]+\" 200\b")
_ANSWERS = lazy(
    r"\bDecode batch\b|\"POST /\S* HTTP/[\d.]+\" 200\b"
)  # a prefill server goes on without its threads


def still_broken(match: Match, reading: LogReading, attempt: Attempt) -> bool:
    """Does the match tell of such a trouble, and no later line that requests are served again?"""
    rule, ready, line = match.rule, _ready(attempt), match.line
    if rule.role is not Role.CAUSE or rule.stage is not Stage.SERVING:
        return False
    if ready is None or line.key < ready.key or not match.certain:
        return False
    if match.traceback is not None:
        return _ends_thread(match) and not _works_after(line, reading, attempt, _ANSWERS)
    return not _works_after(line, reading, attempt)


def _ready(attempt: Attempt) -> Line | None:
    """Where the server says that it is ready, or a router that it is up."""
    if attempt.ready is not None:
        return attempt.ready
    serving = (m.line for m in attempt.marks if m.stage is Stage.SERVING)
    return next((line for line in serving if ROUTER_UP in line.body), None)


def _ends_thread(match: Match) -> bool:
    """Does the traceback go out of a thread other than the main one, which it then ended?"""
    return match.traceback is not None and _out_of_thread(match.traceback.frames)


def _out_of_thread(frames: Sequence[Frame]) -> bool:
    return (
        bool(frames) and frames[0].function == "_bootstrap_inner" and frames[0].path.endswith("threading.py")
    )


def without_symptoms(matches: Sequence[Match]) -> tuple[Match, ...]:
    """The matches without those that only name the symptom, where another names the cause."""
    return tuple(m for m in matches if not m.rule.generic) or tuple(matches)


def never_served(matches: Sequence[Match], reading: LogReading, attempt: Attempt) -> Causality | None:
    """The causes where the trouble came again and again, and nothing has been served since the server was ready."""
    ready = _ready(attempt)
    lines = {m.line.key: m.line for m in matches}
    if ready is None or len(lines) < AGAIN:
        return None
    if not all(_ends_thread(m) for m in matches) and _works_after(ready, reading, attempt):
        return None
    first = without_symptoms(matches)[0]
    failure = Failure(None, (first,), (first.line,), first.line.rank, True, first.line)
    ranks = dict.fromkeys(m.line.rank for m in matches if m.rule.id == first.rule.id and m.line.rank)
    cause = Cause(first, failure, first.line, tuple(ranks), (first.line,))
    return Causality((cause,), tuple(line for key, line in sorted(lines.items()) if key != first.line.key))


def dead_transfers(reading: LogReading, attempt: Attempt, matches: Sequence[Match]) -> Causality | None:
    """The cause where threads that hand requests from one server to the other ended one after the other, by an exception
    that no rule for servers knows, and nobody got an answer since."""
    ready = attempt.ready
    if ready is None or attempt.shutdown is not None:
        return None
    dead = [e for e in attempt.events if e.line.key > ready.key and _of_transfer(e)]
    if len(dead) < AGAIN or _works_after(dead[-1].line, reading, attempt, _ANSWERS):
        return None
    silent = keys_of(matches, Role.NOISE) | keys_of(matches, Role.CONSEQUENCE)
    if any(e.line.key in silent for e in dead):
        return None
    first = dead[0]
    known = tuple(m for m in matches if m.rule.role is Role.CAUSE and m.line.key in event_lines(first))
    failure = Failure(first, known, (first.line,), first.rank, True, first.line)
    ranks = dict.fromkeys(e.rank for e in dead if e.rank)
    cause = Cause(best_match(failure), failure, first.line, tuple(ranks), (first.line,))
    return Causality((cause,), tuple(e.line for e in dead[1:]))


def _of_transfer(event: Event) -> bool:
    frames = event.traceback.frames if event.traceback is not None else ()
    return _out_of_thread(frames) and any("/sglang/srt/disaggregation/" in frame.path for frame in frames)


def _works_after(line: Line, reading: LogReading, attempt: Attempt, works: re.Pattern[str] = _WORKS) -> bool:
    last = attempt.last[1] if attempt.last[0] == line.file else line.number + LOOKED_AT
    after = reading.hits.window(line.file, line.number + 1, min(last, line.number + LOOKED_AT))
    if last > line.number + LOOKED_AT:
        after += reading.hits.window(line.file, max(line.number + LOOKED_AT, last - LOOKED_AT), last)
    return any(works.search(other.body) for other in after)
