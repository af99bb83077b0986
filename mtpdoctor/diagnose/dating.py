"""Which SGLang release a log is from, where no line names it."""

from __future__ import annotations

from dataclasses import dataclass

from mtpdoctor.log.types import Attempt, EventKind, LogReading
from mtpdoctor.release import Release
from mtpdoctor.sglang.usage import flags_of_usage, releases_of_usage

MAX_USAGE_LINES = 900  # longer than the usage text of any release


@dataclass(frozen=True, slots=True)
class Dating:
    """Releases the log can be from, oldest first, and by what."""

    releases: tuple[Release, ...]
    reason: str

    @property
    def certain(self) -> bool:
        return len(self.releases) == 1

    def in_words(self) -> str:
        first, last = self.releases[0], self.releases[-1]
        span = f"{first}" if self.certain else f"{first} to {last}"
        return f"the log names no SGLang release; by {self.reason} it is {span}"


def date_log(reading: LogReading, attempt: Attempt) -> Dating | None:
    """None when nothing in the attempt tells."""
    for event in attempt.events:
        if event.kind is EventKind.ARGPARSE:
            first = max(attempt.first[1], event.line.number - MAX_USAGE_LINES)
            lines = reading.hits.window(event.line.file, first, event.line.number - 1)
            starts = [i for i, line in enumerate(lines) if "usage:" in line.text]
            usage = lines[starts[-1] :] if starts else []
            releases = releases_of_usage(flags_of_usage(line.text for line in usage))
            if releases:
                return Dating(releases, "the options in its usage text")
    return None
