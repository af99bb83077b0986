"""What to say and where to look when no rule knows a failure. Never a guess."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import chain
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.log.types import EventKind, Frame, Traceback
from mtpdoctor.patterns import lazy


def title_of(cause: Cause) -> str:
    """The exception by its type, or the kind of event, and nothing that is not in the log."""
    event = cause.failure.event
    if event is None:
        return "A failure no rule knows"
    traceback = root_traceback(cause)
    if traceback is not None and traceback.type:
        return f"{traceback.type} at {event.stage.value}, which no rule knows"
    names = {
        EventKind.ARGPARSE: "The command line was refused",
        EventKind.NATIVE: "A crash in native code",
        EventKind.CUDA: "A GPU error",
        EventKind.OOM_KILL: "Killed by the kernel for memory",
        EventKind.EXIT: "A process ended",
    }
    return f"{names.get(event.kind, 'An error')} at {event.stage.value}, which no rule knows"


def cause_of(cause: Cause) -> str:
    """What the traceback alone tells of the cause: whose code failed, and at what. No guess at the reason."""
    return f"{UNKNOWN_CAUSE} {whose_code(cause)}".rstrip()


def whose_code(cause: Cause) -> str:
    """The function that failed and its line, where it is SGLang's own or called by it; "" where nothing is known."""
    traceback = root_traceback(cause)
    if traceback is None or not traceback.frames:
        return ""
    last, own = traceback.frames[-1], deciding_frame(traceback)
    if "sglang/" not in own.path:
        return ""
    place = f"{own.function} ({own.path[own.path.rfind('sglang/') :].removeprefix('sglang/')})"
    code = f' at "{own.code}"' if own.code else ""
    kind, said = traceback.type.rsplit(".", 1)[-1], " ".join(traceback.message.split())
    if own is not last:
        found = _PACKAGE.search(last.path)
        where = f"in {found[1]}" if found else "outside of SGLang"
        return f"It was raised {where}, which {place} called{code}. What it says is the reason as far as the log tells."
    if kind not in PROGRAMMING and "values to unpack" not in said:
        return ""
    why = " Something that should have been there is None." if _NONE.search(said) else ""
    return (
        f"It is an error of programming in SGLang's own code: {place} meets a case that it was not written for "
        f"(this model, option or platform){code}.{why}"
    )


UNKNOWN_CAUSE = "No rule knows this failure. The line above is the earliest error that nothing else explains."
PROGRAMMING = frozenset(
    [
        "AttributeError",
        "TypeError",
        "KeyError",
        "NameError",
        "UnboundLocalError",
        "IndexError",
        "ZeroDivisionError",
        "RecursionError",
    ]
)
_PACKAGE = lazy(r"(?:site|dist)-packages/([A-Za-z0-9_]+)")
_NONE = lazy(r"'?NoneType'?")


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
    own = [f for f in traceback.frames if "/sglang/" in f.path and "site-packages/torch" not in f.path]
    return (own or list(traceback.frames))[-1]
