"""Where to look when no rule knows a failure, and the traceback that counts. Never a guess."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import chain
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.log.types import EventKind, Frame, Traceback
from mtpdoctor.patterns import lazy


def root_traceback(cause: Cause) -> Traceback | None:
    """The traceback of the chain that ends in the root line."""
    event = cause.failure.event
    if event is None or event.traceback is None:
        return None
    for member in chain(event.traceback):
        if member.exception is not None and member.exception.key == cause.root.key:
            return member
    return event.traceback.root


def next_steps(cause: Cause, case: Case) -> tuple[str, ...]:
    """Concrete places to look at, from the traceback and what is known of the launch."""
    steps: list[str] = []
    traceback = root_traceback(cause)
    if traceback is not None and traceback.frames:
        frame = deciding_frame(traceback)
        code = f": {frame.code}" if frame.code else ""
        steps.append(f"read the source at {frame.path}:{frame.lineno}, in {frame.function}{code}")
    elif traceback is not None and traceback.cut:
        steps.append("the traceback is cut: get the whole log (both its ends)")
    if traceback is not None and traceback.type:
        message = " ".join(traceback.message.split())[:120]
        steps.append(f"search SGLang's issues for: {traceback.type} {message}".rstrip())
    if case.release is None:
        steps.append(
            "name the release with --sglang RELEASE (pip show sglang), so that rules can be narrowed"
        )
    if case.document is None or case.reconstructed:
        steps.append("give the launch command with --command '...', so that a fix can be tried on it")
    if cause.failure.event is not None and cause.failure.event.kind in (EventKind.NATIVE, EventKind.EXIT):
        nvidia = case.facts.look("host.platform") in (UNKNOWN, "cuda")
        what = (
            "an OOM kill or an Xid error" if nvidia else "an OOM kill or an error of the accelerator's driver"
        )
        steps.append(f"look at the kernel's log (dmesg -T | tail -50) for {what}")
    steps.append("draft a rule from this log: mtpdoctor kb new LOG (docs/contributing-knowledge.md)")
    return tuple(steps)


def deciding_frame(traceback: Traceback) -> Frame:
    """The last frame in SGLang's own code, else the last frame."""
    own = [f for f in traceback.frames if is_own(f.path)]
    return (own or list(traceback.frames))[-1]


def is_own(path: str) -> bool:
    """Does the file belong to SGLang, not to a package in an environment of that name, or to another program's part
    for SGLang?"""
    at = path.rfind("/sglang/") if not path.startswith("sglang/") else 0
    return at >= 0 and not _OTHERS.search(path[max(at - 6, 0) :])


_OTHERS = lazy(r"^dynamo/|-packages/(?!sglang/)|lib(?:64)?/python\d")
