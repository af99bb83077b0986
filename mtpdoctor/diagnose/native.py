"""A crash in native code below which Python's faulthandler printed where Python was: what runs there is told, and what the
command asked for that alone lets it run is worth a launch without it. Pure."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.gated import NEAR, gated_by_frames, others_than
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.diagnose.watchdog import place_of
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.log.stacks import Stack, frames_of, stacks_in
from mtpdoctor.log.types import EventKind, Frame, Line, LogReading
from mtpdoctor.records import replace

BELOW = 300  # lines below the crash that are looked at


def as_the_stack_shows(
    diagnosis: Diagnosis, at: Line, reading: LogReading, case: Case, knowledge: Knowledge, *, known: bool
) -> Diagnosis:
    """``at``: the line of the crash. ``known``: the cause is, and what lets the code run need not be guessed."""
    stack = _stack_below(at, reading)
    if stack is None:
        return diagnosis
    told = f"{diagnosis.cause} Python {place_of(stack)} when it died."
    fixes = tuple(f for f in diagnosis.fixes if not any("faulthandler" in run for run in f.run))
    if not known:
        gated = gated_by_frames(frames_of(stack), case, knowledge, near=NEAR, what="crashed")
        fixes = (*others_than(fixes, gated.asked), *fixes, *others_than(fixes, gated.chosen))
    return replace(diagnosis, cause=told, fixes=fixes or diagnosis.fixes)


def frames_at_death(cause: Cause, reading: LogReading) -> tuple[Frame, ...]:
    """Where Python was, innermost last; empty where no native code crashed, or nothing tells."""
    event = cause.failure.event
    if event is None or event.kind is not EventKind.NATIVE:
        return ()
    stack = _stack_below(event.line, reading)
    return () if stack is None else frames_of(stack)


def _stack_below(at: Line, reading: LogReading) -> Stack | None:
    """The first stack with SGLang's own code in it: faulthandler prints the thread that crashed first."""
    lines = [x for x in reading.hits.window(at.file, at.number, at.number + BELOW) if x.stream == at.stream]
    return next((s for s in stacks_in(lines) if any("sglang/" in frame for frame in s.frames)), None)
