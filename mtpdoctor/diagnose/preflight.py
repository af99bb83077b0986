"""What the rules foresee for a launch that has not happened yet (``predicts`` over the case)."""

from __future__ import annotations

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.resolution import resolved
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Rule
from mtpdoctor.records import dataclass
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
    """The problems of the launch these facts describe, certain ones first.

    Rules see ``arg.*`` as SGLang would resolve them; what was typed stays in ``flag.*``."""
    named = facts.look("release")
    release = release_or_none(named) if named is not UNKNOWN else None
    launch = resolved(facts, knowledge.resolution)
    out = []
    for rule in knowledge.predicting(release):
        holds = rule.releases.holds(release)
        if holds is False or rule.predicts is None:
            continue
        truth = evaluate(rule.predicts, launch.facts)
        if truth is False:
            continue
        certain = truth is True and holds is True
        missing = () if certain else launch.missing(rule.predicts)
        out.append(Foreseen(rule, fill(rule.title, launch.facts), rule.severity, certain, missing))
    return tuple(sorted(out, key=lambda f: (not f.certain, f.severity != "fatal")))
