"""Trouble in a log and silence after it: somebody else's launch has died, or one's own has failed and does not end.

A server whose port is taken waits two minutes for its own warm-up before it gives up; one whose other node has died
waits for ever. What its log says by then is enough to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mtpdoctor.watch.postmortem import is_trouble
from mtpdoctor.watch.types import Lingers

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Report

QUIET = 2.0  # seconds without output after trouble in somebody else's log until it is diagnosed
LINGERS = 10.0  # the same for one's own launch, whose end is seen anyway
OVERDUE = 60.0  # seconds without output after which one that has failed is ended, where nobody sits before it
SURE = 0.9  # confidence of the cause from which a running launch is said to have failed
_SELDOM = 50  # times as long as the last diagnosis took, until the next


class Trouble:
    """``look`` makes the diagnosis of the log as it is now; ``clock`` tells seconds since the launch."""

    def __init__(self, look: Callable[[], Report], clock: Callable[[], float]) -> None:
        self._look, self._clock = look, clock
        self._seen = False  # trouble that was not looked into yet
        self._spoke = self._not_before = 0.0
        self._told = False  # it was said that it lingers, and it has not spoken since
        self.report: Report | None = None  # the last one

    def spoke(self) -> bool:
        """It wrote something. True: it was said to have failed, and goes on."""
        self._spoke = self._clock()
        told, self._told = self._told, False
        return told

    def note(self, body: str) -> None:
        """A line that it wrote."""
        if is_trouble(body):
            self._seen = True

    def died(self) -> bool:
        """Of somebody else's log, which leaves no exit code: whether its launch has failed."""
        report = self._looked(QUIET)
        return report is not None and report.outcome == "failed"

    def lingers(self) -> Lingers | None:
        """Of one's own launch that still runs: that it has failed for a cause that is sure, told once."""
        report = self._looked(LINGERS)
        if report is None or report.outcome != "failed" or not report.diagnoses:
            return None
        cause = report.diagnoses[0]
        if cause.rule is None or cause.confidence < SURE:
            return None
        self._told = True
        now = self._clock()
        return Lingers(now, cause.rule, cause.title, cause.root.body, now - self._spoke)

    @property
    def overdue(self) -> bool:
        """It was said to have failed long ago, and has not written a line since."""
        return self._told and self._clock() - self._spoke > OVERDUE

    def _looked(self, quiet: float) -> Report | None:
        now = self._clock()
        if not self._seen or now - self._spoke < quiet or now < self._not_before:
            return None
        self._seen = False
        self.report = self._look()
        self._not_before = self._clock() + _SELDOM * (self._clock() - now)  # of a long log it takes long
        return self.report
