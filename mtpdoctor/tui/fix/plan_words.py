"""What a launch would run, in words for the confirmation. Nothing is run here, and no Textual."""

from __future__ import annotations

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
    from mtpdoctor.launch.document import read_launch
    from mtpdoctor.records import replace
    from mtpdoctor.watch.plan import plan_of

    clean = cleaner_of(session)
    chosen = session.chosen.document or session.base
    try:
        # A container's command line alone is not what starts it: the form it is written in counts.
        contained = chosen is not None and chosen.command.container
        document = chosen if chosen is not None and contained else read_launch(command)
        plan = plan_of(replace(session.given, document=document))
    except UserError as error:
        return PlanWords(problem=f"{error}" + (f"\n{error.hint}" if error.hint else ""))
    import os

    return PlanWords(
        command=clean.text(shlex.join(plan.argv)),
        sets=tuple(clean.text(entry) for entry in plan.sets),
        folder=clean.line(plan.cwd or os.getcwd()),
    )
