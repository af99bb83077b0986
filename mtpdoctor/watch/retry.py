"""What to try next after a launch died. Pure: a report and the history in, a step or a reason to stop out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpdoctor.diagnose.types import Fix, Report
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit
from mtpdoctor.watch.types import AttemptRecord


@dataclass(frozen=True, slots=True)
class Step:
    """Launch ``document`` next."""

    document: LaunchDocument
    edits: tuple[Edit, ...]
    title: str  # of the fix
    fix: Fix


@dataclass(frozen=True, slots=True)
class Stop:
    """Do not launch again."""

    reason: str
    hint: str | None = None  # what the person can do


def next_attempt(
    report: Report | None, history: Sequence[AttemptRecord], document: LaunchDocument, *, limit: int = 3
) -> Step | Stop:
    """``history`` holds every attempt so far, the one that just died last; ``limit`` is how many retries are
    allowed in all (``--retry N``)."""
    raise NotImplementedError
