"""What to try next after a launch died. Pure: a report and the history in, a step or a reason to stop out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpdoctor.diagnose.types import Fix, Report
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit
from mtpdoctor.log.types import Stage
from mtpdoctor.watch.types import AttemptRecord, End


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
    allowed in all (``--retry N``).

    Only proven, safe fixes of the root cause that are wholly edits of the command are taken; none is taken twice,
    no option or variable is edited twice, and no cause is fought twice: so that it ends, and never swings.
    """
    if not history or report is None:
        return Stop("there is no diagnosis to go by")
    last, before = history[-1], history[:-1]
    if last.how is not End.DIED:
        return Stop(_ENDED[last.how])
    if not report.diagnoses:
        return Stop("no failure was found in its log", "look at the log: it ended without saying why")
    diagnosis = report.diagnoses[0]
    if any(_cause(last) == _cause(earlier) for earlier in before):
        return Stop(
            f"the same cause again: {last.cause}",
            "the fix did not help here; see the other fixes of the diagnosis",
        )
    furthest = max((earlier.stage for earlier in before), key=lambda s: s.order, default=None)
    if furthest is not None and last.stage.order < furthest.order:
        return Stop(
            f"attempt {last.number} got only to {_words(last.stage)}, an earlier one to {_words(furthest)}",
            "go on by hand from the attempt that got further",
        )
    if len(before) >= limit:
        return Stop(
            f"{limit} retr{'y is' if limit == 1 else 'ies are'} used up" if limit else "no retry asked for"
        )
    touched = {name for record in history for edit in record.edits if (name := _touches(edit))}
    skipped = []
    for fix in diagnosis.fixes:
        refused = _refusal(fix, touched)
        if refused is None:
            fixed = _applied(fix, document)
            if fixed is not None:
                return Step(fixed, fix.edits, fix.title, fix)
            refused = "changes nothing, or cannot be written into this command"
        skipped.append(f"{fix.title} ({refused})")
    hint = f"offered, and not applied by itself: {'; '.join(skipped[:2])}" if skipped else None
    return Stop(f"no safe fix for: {diagnosis.title}", hint)


_ENDED = {
    End.STOPPED: "it was stopped by the person",
    End.DETACHED: "it runs on by itself",
    End.REFUSED: "it was not launched",
}


def _cause(record: AttemptRecord) -> tuple[str, Stage]:
    """Two failures are one cause where the same rule (or, without one, the same line) says so at the same stage."""
    return record.rule or record.cause, record.stage


def _words(stage: Stage) -> str:
    return stage.value.replace("_", " ")


def _touches(edit: Edit | str) -> str:
    """The option or variable that an edit (or its text in the history) is about."""
    words = str(edit).split()
    if len(words) < 2:
        return str(edit)
    return words[1].partition("=")[0]


def _refusal(fix: Fix, touched: set[str]) -> str | None:
    if fix.safety != "safe":
        return fix.safety
    if not fix.edits or fix.run:
        return "needs something done outside the command"
    if fix.verified == "none":
        return "not proven"
    again = [name for edit in fix.edits if (name := _touches(edit)) in touched]
    if again:
        return f"{again[0]} was edited before"
    return None


def _applied(fix: Fix, document: LaunchDocument) -> LaunchDocument | None:
    fixed: LaunchDocument | None
    try:
        fixed = document.apply(fix.edits)
    except UserError:
        fixed = fix.document
    return fixed if fixed is not None and fixed.text != document.text else None
