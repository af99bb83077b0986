"""What is said of a failure that no rule knows: which part of SGLang failed, at what, and which options led there.

All of it stands in the log or is read off the sources. Never a guess at the reason.
"""

from __future__ import annotations

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.components import component_of, native_library, package_of
from mtpdoctor.diagnose.plainly import shortened, what_of
from mtpdoctor.diagnose.reached import Reached
from mtpdoctor.diagnose.unknown import deciding_frame, is_own, root_traceback
from mtpdoctor.log.types import EventKind, Traceback
from mtpdoctor.patterns import lazy

NOTHING = Reached()
OPTIONS = "the check of the options"  # as components.json calls it
AS_TOLD = "What it says is the reason as far as the log tells."
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
_TELLING = lazy(r"(?!raise\b)[\w@(\[{\"'].*\w")
_FAILED = lazy(r"^(?:[Ff]ailed|[Ee]rror|[Cc]ould not|[Uu]nable)\b")
_NONE = lazy(r"'?NoneType'?")


def title_of(cause: Cause, reached: Reached = NOTHING, *, refuses: bool = False) -> str:
    """What part of SGLang failed, with which option, at what; nothing that is not in the log or the sources."""
    event = cause.failure.event
    if event is None:
        return "A failure no rule knows"
    traceback = root_traceback(cause)
    if traceback is not None and traceback.type:
        return _of_traceback(traceback, reached, refuses) or (
            f"{traceback.type} at {event.stage.value}: {what_of(traceback)}"
        )
    names = {
        EventKind.ARGPARSE: "The command line was refused",
        EventKind.NATIVE: "A crash in native code",
        EventKind.CUDA: "A GPU error",
        EventKind.OOM_KILL: "Killed by the kernel for memory",
        EventKind.EXIT: "A process ended",
    }
    what = f"{names.get(event.kind, 'An error')} at {event.stage.value}"
    said = cause.root.body.rpartition(" error: ")[2] if event.kind is EventKind.ARGPARSE else ""
    if said:
        return f"{what}: {shortened(said)}"
    if event.kind not in (EventKind.CUDA, EventKind.NATIVE, EventKind.ERROR):
        return f"{what}, which no rule knows"
    library = native_library(cause.root.body)
    return f"{what}{f' in {library}' if library else ''}: {shortened(cause.root.body)}"


def _of_traceback(traceback: Traceback, reached: Reached, refuses: bool) -> str:
    """Nothing where no part of SGLang and no package is known by name."""
    if not traceback.frames:
        return ""
    last, own = traceback.frames[-1], deciding_frame(traceback)
    part = component_of(own) if is_own(own.path) else ""
    package = package_of(last) if own is not last or not part else ""
    if not part and not package:
        return ""
    options = reached.asked or reached.chosen
    using = f" with {options[0]}" if options else ""
    if not part:
        return f"{_capital(package)} fails{using}: {what_of(traceback)}"
    refuses = (refuses or (not package and part == OPTIONS)) and not _FAILED.search(traceback.message)
    verb = "refuses this launch" if refuses else f"fails in {package}" if package else "fails"
    return f"{part[0].upper()}{part[1:]} {verb}{using}: {what_of(traceback)}"


def _capital(words: str) -> str:
    """With a capital at the beginning of a sentence; names keep theirs."""
    return words[0].upper() + words[1:] if words.startswith(("the ", "a ")) else words


def cause_of(cause: Cause, reached: Reached = NOTHING, asks: str = "") -> str:
    """What the traceback and the sources tell of the cause: which part failed, at what, and what leads there. No guess at
    the reason. ``asks``: a sentence on the conditions of the check that refuses."""
    return " ".join(part for part in (whose_code(cause), asks, str(reached), UNKNOWN_CAUSE) if part)


def whose_code(cause: Cause) -> str:
    """The part of SGLang that failed, its function and line; "" where nothing is known."""
    traceback = root_traceback(cause)
    if traceback is None or not traceback.frames:
        return ""
    last, own = traceback.frames[-1], deciding_frame(traceback)
    if not is_own(own.path):
        return ""
    place = f"{own.function} ({own.path[own.path.rfind('sglang/') :].removeprefix('sglang/')})"
    code = f' at "{own.code}"' if _TELLING.match(own.code) else ""
    kind, said = traceback.type.rsplit(".", 1)[-1], " ".join(traceback.message.split())
    part = component_of(own)
    whole = f"{part}, {place}," if part else place
    if own is not last:
        package = package_of(last)
        where = f"in {package}" if package else "outside of SGLang"
        return f"It was raised {where}, which {whole.rstrip(',')} called{code}. {AS_TOLD}"
    if kind not in PROGRAMMING and "values to unpack" not in said:
        return f"{part[0].upper()}{part[1:]} failed in {place}{code}." if part else ""
    why = " Something that should have been there is None." if _NONE.search(said) else ""
    return (
        f"It is an error of programming in SGLang's own code: {whole} meets a case that it was not written for "
        f"(this model, option or platform){code}.{why}"
    )
