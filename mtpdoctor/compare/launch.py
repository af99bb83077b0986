"""One launch, read as far as a comparison needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mtpdoctor.case import Case
from mtpdoctor.compare.types import Side
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.types import Report
from mtpdoctor.errors import UserError
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.log.types import Attempt, Line, LogReading

_MOST_LINES = 20_000  # of each file looked at for messages: half from its front, half from its end


@dataclass(frozen=True, slots=True)
class Launch:
    reading: LogReading
    attempt: Attempt
    case: Case
    report: Report

    @property
    def side(self) -> Side:
        first = self.report.diagnoses[0] if self.report.diagnoses else None
        return Side(
            name=", ".join(self.report.files),
            outcome=self.report.outcome,
            stage=self.report.stage,
            release=self.report.sglang_version or self.report.release_range,
            rule=first.rule if first else None,
            title=first.title if first else None,
            root=(first.root.number, first.root.text) if first else None,
        )

    def lines(self) -> Iterator[Line]:
        """The lines of the last attempt; of very many its first and last ones."""
        for span in self.attempt.spans:
            half = _MOST_LINES // 2
            ranges = [(span.first, span.last)]
            if span.last - span.first > _MOST_LINES:
                ranges = [(span.first, span.first + half), (span.last - half, span.last)]
            for first, last in ranges:
                for start in range(first, last + 1, 2000):
                    yield from self.reading.hits.window(span.file, start, min(start + 1999, last))


def read_launch_log(reading: LogReading, knowledge: Knowledge, given: Given) -> Launch:
    """Raises UserError where the log holds no launch."""
    attempt = reading.attempt
    if attempt is None:
        names = ", ".join(f.name for f in reading.files)
        raise UserError(f"{names}: nothing in it", hint="was the log written elsewhere?")
    return Launch(reading, attempt, case_of(reading, attempt, given)[0], diagnose(reading, knowledge, given))
