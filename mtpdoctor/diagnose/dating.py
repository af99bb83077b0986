"""Which SGLang release a log is from, where no line names it."""

from __future__ import annotations

from mtpdoctor.diagnose.failures import chain
from mtpdoctor.log.types import Attempt, EventKind, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.release import Release
from mtpdoctor.sglang.dating import Dating, date

_UNKNOWN = lazy(r"error: unrecognized arguments: (.+)")
_AMBIGUOUS = lazy(r"error: ambiguous option: (--[\w-]+)")
_FLAG = lazy(r"(?:^|\s)(--[a-zA-Z][\w-]*)")
MAX_USAGE_LINES = 900  # longer than the usage text of any release


def date_log(reading: LogReading, attempt: Attempt) -> Dating | None:
    """Releases the attempt can be from: by the usage text argparse printed, the fields of the server
    arguments, or the lines its tracebacks go through. None when nothing in it tells."""
    frames = [
        (frame.path, frame.lineno, frame.function)
        for event in attempt.events
        if event.traceback is not None
        for member in chain(event.traceback)
        for frame in member.frames
        if "/sglang/" in frame.path
    ]
    arguments = next((o.line.text for o in attempt.observations if o.name.startswith("arg.")), None)
    unknown, ambiguous = refused_flags(attempt)
    usage = usage_text(reading, attempt)
    dating = date(server_args=arguments, frames=frames, usage=usage, unknown=unknown, ambiguous=ambiguous)
    return dating if dating.releases else None


def refused_flags(attempt: Attempt) -> tuple[tuple[str, ...], str | None]:
    """The flags that a parser called unknown, and the one it called ambiguous."""
    for event in attempt.events:
        if event.kind is EventKind.ARGPARSE:
            if found := _AMBIGUOUS.search(event.line.text):
                return (), found[1]
            if found := _UNKNOWN.search(event.line.text):
                return tuple(dict.fromkeys(_FLAG.findall(found[1]))), None
    return (), None


def disagreement(reading: LogReading, attempt: Attempt, named: Release) -> str | None:
    """Where the flags of the usage text are not those of the release that the log names: that in words."""
    unknown, ambiguous = refused_flags(attempt)
    usage = usage_text(reading, attempt)
    dating = date(usage=usage, unknown=unknown, ambiguous=ambiguous) if usage else None
    if dating is None or not dating.releases or dating.releases[0] <= named <= dating.releases[-1]:
        return None
    return f"the log names SGLang {named}, but {'; '.join(dating.reasons)}: another build may be installed"


def usage_text(reading: LogReading, attempt: Attempt) -> tuple[str, ...]:
    """The lines from ``usage:`` to the error that argparse printed after them."""
    for event in attempt.events:
        if event.kind is EventKind.ARGPARSE:
            first = max(attempt.first[1], event.line.number - MAX_USAGE_LINES)
            lines = reading.hits.window(event.line.file, first, event.line.number - 1)
            starts = [i for i, line in enumerate(lines) if "usage:" in line.text]
            if starts:
                return tuple(line.text for line in lines[starts[-1] :])
    return ()


def in_words(dating: Dating) -> str:
    """The note that goes with a release that was worked out."""
    said = f"it is {dating.text}" if dating.release is not None else f"it is one of {dating.text}"
    return f"the log names no SGLang release; {said}: {'; '.join(dating.reasons)}"
