"""What a launch would run, in words for the confirmation. Nothing is run here, and no Textual."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpdoctor.errors import UserError
from mtpdoctor.tui.shown import cleaner_of

if TYPE_CHECKING:
    from mtpdoctor.tui.session import Session


@dataclass(frozen=True, slots=True)
class PlanWords:
    """``problem``: why it cannot be launched from here; the rest is then empty. All masked."""

    command: str = ""  # the words as they are handed to the system, quoted for reading
    sets: tuple[str, ...] = ()  # "NAME=value", "-NAME" against the doctor's own environment
    folder: str = ""  # where it runs
    problem: str | None = None


def plan_words(session: Session, command: str) -> PlanWords:
    """What ``command`` comes to on this machine."""
    from mtpdoctor.records import replace
    from mtpdoctor.tui.launch.starting import launched_document
    from mtpdoctor.watch.plan import plan_of

    clean = cleaner_of(session)
    try:
        plan = plan_of(replace(session.given, document=launched_document(session, command)))
    except UserError as error:
        return PlanWords(problem=f"{error}" + (f"\n{error.hint}" if error.hint else ""))
    return PlanWords(
        command=clean.text(shlex.join(plan.argv)),
        sets=tuple(clean.text(entry) for entry in plan.sets),
        folder=clean.line(plan.cwd or os.getcwd()),
    )
