"""The upgrade, the way back and the development image as fixes, from what is known of other releases (``diagnose.later``)."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.later import Outlook, outlook_of_message
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.types import Remedy, Safety
from mtpdoctor.log.types import Traceback
from mtpdoctor.release import Release


def sentence(outlook: Outlook) -> str:
    """What is known of later releases, for a person."""
    how = outlook.how + (f" ({outlook.between})" if outlook.between else "")
    if outlook.differs is None and outlook.alike:
        return f"{how}: an upgrade is not known to help"
    if outlook.differs is None:
        return f"{how}; whether a later release gives it other values is not known"
    if outlook.mended:
        return f"{how}, which is what this failure misses"
    return f"{how}; whether that mends this failure is not known"


def later_remedies(outlook: Outlook, case: Case) -> list[Remedy]:
    """An upgrade, as far as the tables give a reason for it; none where the statement that refuses stands unchanged, or where it
    looks only at what was given and is in the newest release too."""
    release, newest = case.release, outlook.newest
    if outlook.given or outlook.standing:
        return []
    if outlook.differs is not None:
        first = outlook.first
        return [
            Remedy(
                title=f"Upgrade SGLang from {release} to " + (f"{first} or later" if first else str(newest)),
                safety=Safety.MANUAL,
                why=sentence(outlook),
                run=(
                    f'pip install --upgrade "sglang>={first}"' if first else f"pip install sglang=={newest}",
                ),
                risk="options may have changed; check the command for the new release",
            )
        ]
    return [development(newest, None if release == newest else sentence(outlook))]


def development(newest: Release, why: str | None = None) -> Remedy:
    """What is newer than the newest known release; ``why`` in place of the launch being that release's."""
    return Remedy(
        title=f"Try SGLang's development image, newer than release {newest}",
        safety=Safety.MANUAL,
        why=why or f"{newest} is the newest release known here; a fix may be merged and not released",
        run=("docker pull lmsysorg/sglang:dev",),
        risk="a development state is less tested",
    )


def back_remedies(outlook: Outlook) -> list[Remedy]:
    """Going back, where the code that fails is young and the error one of programming."""
    if outlook.back is None:
        return []
    return [
        Remedy(
            title=f"Or go back to SGLang {outlook.back}, the last with another form of the code that fails",
            safety=Safety.MANUAL,
            why=f"{outlook.back_why}; whether the fault came with that is not known",
            run=(f"pip install sglang=={outlook.back}",),
            risk="what came since is lost; check the command for that release",
        )
    ]


def later_fixes(outlook: Outlook, case: Case) -> tuple[Fix, ...]:
    """Both, to go behind all other fixes; nothing where the failure is not SGLang's own."""
    remedies = [*later_remedies(outlook, case), *back_remedies(outlook)] if outlook.speaks else []
    return _fixes(remedies)


def last_resort(outlook: Outlook) -> tuple[Fix, ...]:
    """Where no fix is known at all and every known release refuses alike."""
    if outlook.given:
        return _fixes([_other_values(outlook)])
    return _fixes([development(outlook.newest, sentence(outlook))] if outlook.standing else [])


def _other_values(outlook: Outlook) -> Remedy:
    return Remedy(
        title=f"Give the launch what the check accepts - every release up to {outlook.newest} has it",
        safety=Safety.MANUAL,
        why=f"it looks at options, variables or the checkpoint's configuration, not at a fault of SGLang: {outlook.how}",
    )


def _fixes(remedies: list[Remedy]) -> tuple[Fix, ...]:
    return tuple(Fix(r.title, r.safety.value, r.why, r.risk, (), r.run, None, "none") for r in remedies)


def mended_fixes(traceback: Traceback | None, case: Case) -> tuple[Fix, ...]:
    """The upgrade, where the sources leave no doubt that a later release has what the exception misses: goes behind what a rule
    knows."""
    outlook = outlook_of_message(traceback, case)
    return _fixes(later_remedies(outlook, case)) if outlook is not None else ()
