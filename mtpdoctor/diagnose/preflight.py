"""What the rules foresee for a launch that has not happened yet (``predicts`` over the case)."""

from __future__ import annotations

from dataclasses import dataclass

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.conditions import evaluate, unknown_facts
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Rule
from mtpdoctor.release import release_or_none


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A problem a rule foresees. ``certain`` is False when facts that decide it (``unknown``) are missing."""

    rule: Rule
    title: str
    severity: str
    certain: bool
    unknown: tuple[str, ...] = ()


def foreseen(knowledge: Knowledge, facts: Facts) -> tuple[Foreseen, ...]:
    """The problems of the launch these facts describe, certain ones first."""
    named = facts.look("release")
    release = release_or_none(named) if named is not UNKNOWN else None
    out = []
    for rule in knowledge.predicting():
        holds = rule.releases.holds(release)
        if holds is False or rule.predicts is None:
            continue
        truth = evaluate(rule.predicts, facts)
        if truth is False:
            continue
        certain = truth is True and holds is True
        missing = () if certain else unknown_facts(rule.predicts, facts)
        out.append(Foreseen(rule, fill(rule.title, facts), rule.severity, certain, missing))
    return tuple(sorted(out, key=lambda f: (not f.certain, f.severity != "fatal")))
