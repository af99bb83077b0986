"""What the rules foresee for a launch that has not happened yet (``predicts`` over the case)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.knowledge import Knowledge, Prediction
from mtpdoctor.kb.resolution import MODEL, Resolved, by_kind, each_kind
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Condition, Rule
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, release_or_none


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A problem a rule foresees. ``certain`` is False when facts that decide it (``unknown``) are missing."""

    rule: Rule
    title: str
    severity: str
    certain: bool
    unknown: tuple[str, ...] = ()
    facts: Facts | None = None  # with which the rule's texts are filled, where they are more than the case's


Summing = Callable[[Facts], Facts]  # adds the facts memory.* to those of one launch


def foreseen(knowledge: Knowledge, facts: Facts, memory: Summing | None = None) -> tuple[Foreseen, ...]:
    """The problems of the launch these facts describe, certain ones first.

    Rules see ``arg.*`` as SGLang would resolve them; what was typed stays in ``flag.*``. Where the model
    is not known, a problem is certain that every kind of model would have. Rules that ask for the memory
    sum are left out without ``memory``."""
    named = facts.look("release")
    release = release_or_none(named) if named is not UNKNOWN else None
    launches = by_kind(facts, knowledge.resolution)
    memory = once(memory) if memory is not None else None
    out = []
    for each in knowledge.predictions(release):
        if each.memory:
            found = _of_memory(each, knowledge, launches, memory)
            if found is not None:
                out.append(found)
            continue
        truths = [evaluate(each.condition, launch.facts) for launch in launches]
        if not any(truth is not False for truth in truths):
            continue
        certain = all(truths) and each.releases.holds(release) is True
        missing = () if certain else _missing(each.condition, launches, truths)
        rule = knowledge.by_id[each.rule_id]
        out.append(Foreseen(rule, fill(rule.title, launches[0].facts), rule.severity, certain, missing))
    return tuple(sorted(out, key=lambda f: (not f.certain, f.severity != "fatal")))


def _of_memory(
    prediction: Prediction, knowledge: Knowledge, launches: Sequence[Resolved], memory: Summing | None
) -> Foreseen | None:
    """A problem of memory: only where the sum can be made, and then it is certain."""
    if memory is None or len(launches) != 1:
        return None
    facts = memory(launches[0].facts)
    if not evaluate(prediction.condition, facts):
        return None
    rule = knowledge.by_id[prediction.rule_id]
    return Foreseen(rule, fill(rule.title, facts), rule.severity, True, facts=facts)


def surely_fatal(knowledge: Knowledge, facts: Facts, memory: Summing | None = None) -> tuple[Foreseen, ...]:
    """The certain fatal ones of ``foreseen``, without weighing what else there is: asked for every fix."""
    named = facts.look("release")
    release = release_or_none(named) if named is not UNKNOWN else None
    launches = each_kind(facts, knowledge.resolution)
    first = next(launches)
    surely = [p for p in knowledge.predictions(release) if _is_fatal_in(p, release)]
    fatal = [p for p in surely if not p.memory and evaluate(p.condition, first.facts)]
    for launch in launches if fatal else ():  # few have any: most fixes need no further kind of model
        fatal = [p for p in fatal if evaluate(p.condition, launch.facts)]
    rules = [knowledge.by_id[p.rule_id] for p in fatal]
    out = [Foreseen(rule, fill(rule.title, first.facts), rule.severity, True) for rule in rules]
    if not out and memory is not None and facts.look("model.architecture") is not UNKNOWN:
        one = once(memory)
        of_memory = (_of_memory(p, knowledge, (first,), one) for p in surely if p.memory)
        out = [f for f in of_memory if f is not None]
    return tuple(out)


def _is_fatal_in(prediction: Prediction, release: Release | None) -> bool:
    return prediction.severity == "fatal" and prediction.releases.holds(release) is True


def once(memory: Summing) -> Summing:
    """The sum of one launch, made when the first rule asks."""
    made: list[Facts] = []

    def summed(facts: Facts) -> Facts:
        if not made:
            made.append(memory(facts))
        return made[0]

    return summed


def _missing(
    condition: Condition, launches: Sequence[Resolved], truths: Sequence[bool | None]
) -> tuple[str, ...]:
    """The facts that would decide: those that every launch lacks, and the model where kinds differ."""
    found = [name for launch in launches for name in launch.missing(condition)]
    if len(launches) > 1 and len(set(truths)) > 1:
        found.insert(0, MODEL)
    return tuple(dict.fromkeys(found))
