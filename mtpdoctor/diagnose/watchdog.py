"""A step that the watchdog ended: what the log itself shows of it, and no advice that the log has followed already. Pure.

The watchdog's own line only detects that a step did not end. Where stacks stand in the log, they say where each rank was,
and asking for them again helps nobody; what the command asked for that alone lets that code run is worth a launch without
it. Where the server had served before, no first compilation was slow.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.gated import gated_by_frames, others_than
from mtpdoctor.diagnose.types import Diagnosis, Fix
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.launch.types import EditOp
from mtpdoctor.log.stacks import Stack, frames_of, stacks_in
from mtpdoctor.log.types import Attempt, Line, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

BEFORE, AFTER = 3000, 400  # lines around the watchdog's own that are looked at
RANKS, FRAMES = 6, 3  # told of the stacks
MOST = 2  # options that are worth a launch without them
_SAID = lazy(r"(?i)watchdog timeout \(self\.watchdog_timeout=(?P<limit>[\d.]+)")
_BUILDS = lazy(
    r"(?i)\bcompil|\bJIT\b|autotun|\bnvcc\b|\bninja\b|warmup for|Loading JIT ops|tvm_ffi|deep_?gemm"
)
_OUTSIDE = lazy(r"(?i)(?:torch|threading|selectors|asyncio|zmq|socket|concurrent|multiprocessing)/")
_LONG_S = 60.0  # a limit of less is no hang


_STEPS = (
    "compare the stacks of all ranks: one that is elsewhere than the others is what they wait for",
    "an error that a rank printed before, and dmesg (Xid), may tell why it did not come along",
)


def as_the_log_shows(
    diagnosis: Diagnosis,
    reading: LogReading,
    attempt: Attempt,
    case: Case,
    knowledge: Knowledge,
    *,
    known: bool,
) -> Diagnosis:
    """The diagnosis with where the ranks were, and without fixes that the log makes pointless. ``known``: the cause is,
    and what lets the code run need not be guessed."""
    said = _SAID.search(diagnosis.root.body)
    if said is None:
        return diagnosis
    lines = _around(reading, diagnosis.root)
    stacks = [s for s in stacks_in(lines) if s.frames]
    cause, fixes = diagnosis.cause, diagnosis.fixes
    if stacks:
        cause = f"{cause} By the stacks in the log {'; '.join(_where(s) for s in stacks[:RANKS])}."
        fixes = tuple(f for f in fixes if not any("py-spy dump" in run for run in f.run))
        if not known:
            fixes = _with_gated(fixes, stacks, case, knowledge)
    if (
        float(said["limit"]) >= _LONG_S
        and _had_served(attempt, diagnosis.root)
        and not _builds(lines, diagnosis.root)
    ):
        cause = f"{cause} Steps before it took no such time and nothing was being compiled, so that a longer limit does not help."
        fixes = tuple(f for f in fixes if not _only_waits(f))
    if (cause, fixes) == (diagnosis.cause, diagnosis.fixes):
        return diagnosis
    steps = diagnosis.next_steps if fixes else (*diagnosis.next_steps, *_STEPS)
    return replace(diagnosis, cause=cause, fixes=fixes, next_steps=steps)


def _with_gated(
    fixes: tuple[Fix, ...], stacks: Sequence[Stack], case: Case, knowledge: Knowledge
) -> tuple[Fix, ...]:
    """In front: without what was asked for and alone lets the code run in which a rank stands."""
    new: dict[str, Fix] = {}
    for stack in stacks:
        gated = gated_by_frames(frames_of(stack), case, knowledge, what="waits")
        for fix in others_than(fixes, gated.asked):
            new.setdefault(fix.title, fix)
    return (*tuple(new.values())[:MOST], *fixes)


def _around(reading: LogReading, root: Line) -> list[Line]:
    return reading.hits.window(root.file, max(root.number - BEFORE, 1), root.number + AFTER)


def _where(stack: Stack) -> str:
    return f"{stack.who} {place_of(stack)}"


def place_of(stack: Stack) -> str:
    """ "was in recv_object (...) < event_loop_pp (...)": its innermost frames that are not those of libraries for waiting."""
    frames = [f for f in reversed(stack.frames) if not _OUTSIDE.search(f)] or list(reversed(stack.frames))
    return f"was in {' < '.join(frames[:FRAMES])}"


def _had_served(attempt: Attempt, root: Line) -> bool:
    """Had a batch been run before, in a server that was ready?"""
    return attempt.ready is not None and attempt.ready.key < root.key


def _builds(lines: Sequence[Line], root: Line) -> bool:
    """Do the last lines before the watchdog's tell of something being compiled?"""
    before = [x for x in lines if x.key < root.key]
    return any(_BUILDS.search(x.body) for x in before[-40:])


def _only_waits(fix: Fix) -> bool:
    """Does it only give the watchdog more time? What else had to be fixed for that stands behind."""
    return bool(fix.edits) and fix.edits[0].op is EditOp.SET and fix.edits[0].name == "--watchdog-timeout"
