"""What rules foresee of a launch whose log just stops: it has not failed yet, or stands still where nothing is printed."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.preflight import surely_fatal
from mtpdoctor.diagnose.proof import launch_facts
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.log.types import Attempt


def foretold(case: Case, knowledge: Knowledge, attempt: Attempt) -> tuple[str, ...]:
    """Notes on certain, fatal problems of a stage that the launch has yet to pass; what it has passed, it proved wrong."""
    if case.document is None or not case.release_is_certain:
        return ()
    return tuple(
        f"{found.rule.id} foresees that this launch fails: {found.title} (mtpdoctor check shows what to change)"
        for found in surely_fatal(knowledge, launch_facts(case, knowledge))
        if found.rule.stage.order >= attempt.stage.order
    )
