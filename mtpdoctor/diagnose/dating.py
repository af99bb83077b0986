"""Which SGLang release a log is from, where no line names it."""

from __future__ import annotations

from mtpdoctor.diagnose.failures import chain
from mtpdoctor.log.types import Attempt, EventKind, LogReading
from mtpdoctor.sglang.dating import Dating, date

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
    dating = date(server_args=arguments, frames=frames, usage=_usage_text(reading, attempt))
    return dating if dating.releases else None


def _usage_text(reading: LogReading, attempt: Attempt) -> tuple[str, ...]:
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
    return f"the log names no SGLang release; it is {dating.text}: {'; '.join(dating.reasons)}"
