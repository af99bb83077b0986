"""What the Fix region offers: remedies with the edits they are made of, and which of them are on. No Textual here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpdoctor.launch.types import Edit

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.tui.session import Session

ON, PARTLY, OFF = "on", "partly", "off"


@dataclass(frozen=True, slots=True)
class Offer:
    """One remedy. ``about`` names the problem: its rule, or its title where no rule knows it; remedies of
    one problem are alternatives."""

    fix: Fix
    about: str
    title: str  # of the problem

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.fix.edits


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list: a remedy (``edit`` and ``run`` None), one edit of it, or a command to type elsewhere."""

    offer: int
    edit: Edit | None = None
    run: str | None = None


def offers_of(session: Session) -> tuple[Offer, ...]:
    """The remedies for what is looked at: the chosen diagnosis; where the launch came up, what it does
    silently wrong; without a log, what the check of the command foresees."""
    report = session.report
    if report is not None and report.diagnoses:
        diagnosis = report.diagnoses[min(session.diagnosis, len(report.diagnoses) - 1)]
        about = diagnosis.rule or diagnosis.title
        return tuple(Offer(fix, about, diagnosis.title) for fix in diagnosis.fixes)
    if report is not None:
        return tuple(Offer(fix, f.rule, f.title) for f in report.findings for fix in f.fixes)
    if session.check is None:
        return ()
    return tuple(
        Offer(fix, p.rule or p.title, p.title) for p in session.check.problems if p.certain for fix in p.fixes
    )


def rows_of(offers: tuple[Offer, ...]) -> tuple[Row, ...]:
    """Every remedy, and below it its edits and commands."""
    return tuple(row for i, offer in enumerate(offers) for row in _rows(i, offer))


def _rows(index: int, offer: Offer) -> Iterator[Row]:
    yield Row(index)
    yield from (Row(index, edit=edit) for edit in offer.edits)
    yield from (Row(index, run=run) for run in offer.fix.run)


def state_of(offer: Offer, edits: tuple[Edit, ...]) -> str:
    """Whether all, some or none of a remedy's edits are on."""
    on = sum(e in edits for e in offer.edits)
    return OFF if not on else ON if on == len(offer.edits) else PARTLY


def with_offer(offers: tuple[Offer, ...], index: int, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """``edits`` after choosing a remedy: its edits on, those of the same problem's other remedies off.
    Choosing one that is on switches it off."""
    from mtpdoctor.diagnose.trial import switched

    offer = offers[index]
    on = state_of(offer, edits) != ON
    rivals = {e for o in offers if o.about == offer.about for e in o.edits}
    kept = tuple(e for e in edits if e not in rivals)
    for edit in offer.edits if on else ():
        kept = switched(kept, edit, True)
    return kept


def first_choice(offers: tuple[Offer, ...]) -> tuple[Edit, ...]:
    """What is switched on at first: for every problem its first remedy that is safe and proven to be writable.
    What costs something is never switched on unasked."""
    edits: tuple[Edit, ...] = ()
    seen: set[str] = set()
    for index, offer in enumerate(offers):
        if offer.about in seen or offer.fix.safety != "safe" or offer.fix.document is None:
            continue
        seen.add(offer.about)
        edits = with_offer(offers, index, edits)
    return edits
