"""What SGLang makes of the typed arguments, computed from data (``knowledge/resolution/``).

A release resolves its arguments in a fixed order: an algorithm's alias, defaults that depend on the
GPU and the model, values that one option forces on another. That order is written down as *blocks*
of *steps*; here they are run over the facts of a launch. Three-valued like every condition: what a
step would set under a condition that is not known becomes unknown, never a guess.

Steps may also set ``step.*`` facts: intermediate results of SGLang's own computation, so that a rule
can ask what an argument was at the moment SGLang looked at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source, make_facts
from mtpdoctor.kb.conditions import evaluate, unknown_facts
from mtpdoctor.kb.templates import computed
from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.records import dataclass, field
from mtpdoctor.release import Release, ReleaseRange, release_or_none
from mtpdoctor.sglang.options import same_options

EVERY = ReleaseRange.parse("*")
PREFIXES = ("arg.", "step.")
MODEL = "model.architecture"  # the fact that tells the kinds of models apart


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``sets`` (fact, value), then ``steps`` in order, then the first of ``first`` that holds.

    A value is plain data, ``$fact`` (that fact's value at this moment), ``{fact|filter:..}`` (computed),
    None (absent) or UNKNOWN.
    """

    when: Condition = ALWAYS
    releases: ReleaseRange = EVERY
    sets: tuple[tuple[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()
    first: tuple[Step, ...] = ()
    note: str = ""
    origin: str = ""  # file:line


@dataclass(frozen=True, slots=True)
class Resolution:
    """The blocks, for ranges of releases the order in which they run, and the kinds of models."""

    blocks: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    orders: tuple[tuple[ReleaseRange, tuple[str, ...]], ...] = ()
    kinds: tuple[Mapping[str, Any], ...] = ()  # facts of each kind of model that the steps tell apart

    def steps(self, release: Release) -> tuple[Step, ...]:
        """The steps of a release in their order, those of other releases left out."""
        for releases, names in self.orders:
            if release in releases:
                return tuple(
                    kept for name in names for step in self.blocks[name] if (kept := _of(step, release))
                )
        return ()


def _of(step: Step, release: Release) -> Step | None:
    """The step without the parts that are of other releases."""
    if release not in step.releases:
        return None
    if not step.steps and not step.first:
        return step
    return Step(
        step.when,
        EVERY,
        step.sets,
        tuple(kept for s in step.steps if (kept := _of(s, release))),
        tuple(kept for s in step.first if (kept := _of(s, release))),
        step.note,
        step.origin,
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """Facts with ``arg.*`` as SGLang would resolve them (the value is UNKNOWN where a fact is missing).
    ``decided`` holds, for every fact that a step
    set, that step; ``because`` for every fact that became unknown the facts that are missing."""

    facts: Facts
    decided: Mapping[str, Step] = field(default_factory=dict)
    because: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def missing(self, condition: Condition) -> tuple[str, ...]:
        """The facts that a person could give to decide the condition."""
        found: dict[str, None] = {}
        for name in unknown_facts(condition, self.facts):
            found.update(dict.fromkeys(self.because.get(name, (name,))))
        return tuple(found)


def resolved(facts: Facts, resolution: Resolution) -> Resolved:
    """Run the resolution of the release that the facts name; without one, the facts as they are.

    Where the model is not known, what holds for every kind of model is known all the same."""
    each = by_kind(facts, resolution)
    return each[0] if len(each) == 1 else _common(facts, each)


def by_kind(facts: Facts, resolution: Resolution) -> tuple[Resolved, ...]:
    """The resolution for each kind of model that the launch may have: one where the model is known."""
    return tuple(each_kind(facts, resolution))


def each_kind(facts: Facts, resolution: Resolution) -> Iterator[Resolved]:
    """``by_kind`` one after another: whoever stops early spares the rest."""
    named = facts.look("release")
    release = release_or_none(named) if isinstance(named, str) else None
    if release is None:
        yield Resolved(facts)
        return
    steps = resolution.steps(release)
    facts = _under_every_name(facts)
    named = facts.look(MODEL)
    if not resolution.kinds or named is not UNKNOWN:
        kind = next((k for k in resolution.kinds if k.get(MODEL) == named), None)
        if kind is not None:  # what follows from the architecture, where no configuration tells
            facts = facts.merged(make_facts(kind, Source.DERIVED, f"architecture {named}"))
        yield _run(facts, steps)
        return
    for kind in resolution.kinds:
        yield _run(facts.merged(make_facts(kind, Source.DERIVED, "a kind of model")), steps)


def _run(facts: Facts, steps: Iterable[Step]) -> Resolved:
    bench = _Bench(facts)
    for step in steps:
        bench.run(step, certain=True, because=())
    return bench.result()


def _common(facts: Facts, each: tuple[Resolved, ...]) -> Resolved:
    known: dict[str, Fact] = {name: fact for name in facts if (fact := facts.fact(name))}
    because: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(name for one in each for name in one.facts if name.startswith(PREFIXES)):
        values = [one.facts.look(name) for one in each]
        fact = next(f for one in each if (f := one.facts.fact(name)))
        if any(not _alike(values[0], value) for value in values):
            missing = (m for one in each for m in one.because.get(name, ()) if not m.startswith("model."))
            because[name] = tuple(dict.fromkeys((*missing, MODEL)))
            fact = Fact(name, UNKNOWN, Source.DERIVED, fact.where)
        known[name] = fact
    return Resolved(Facts(known, facts.contradictions, each[0].facts.closed), dict(each[0].decided), because)


def _under_every_name(facts: Facts) -> Facts:
    """Every argument also under the names it has in other releases."""
    known = {name: fact for name in facts if (fact := facts.fact(name))}
    alike = same_options()
    for name, fact in list(known.items()):
        if name.startswith("arg."):
            for dest in alike.get(name[4:], ()):
                known.setdefault(f"arg.{dest}", fact)
    # A step.* fact that no step has set is absent, not unknown; and so is, once the release's
    # arguments are there, one that the release does not have.
    closed = facts.closed | ({"step.", "arg."} if "arg.tp_size" in known else {"step."})
    return Facts(known, facts.contradictions, closed)


class _Bench(Facts):
    """The facts while they are being resolved."""

    __slots__ = ("_alike", "because", "decided")

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts._facts, facts.contradictions, facts.closed)
        self._alike = same_options()
        self.decided: dict[str, Step] = {}
        self.because: dict[str, tuple[str, ...]] = {}

    def run(self, step: Step, *, certain: bool, because: tuple[str, ...]) -> bool | None:
        """Whether the step's condition holds (None: not known). Not ``certain``: whether the step runs
        at all is not known, for want of the facts ``because``."""
        holds = evaluate(step.when, self)
        if holds is False:
            return False
        if holds is None:
            because = (*because, *self._missing(step.when))
        certain = certain and holds is True
        for name, value in [(name, self._value(value)) for name, value in step.sets]:
            self._put(name, value, step, certain, because)
        for inner in step.steps:
            self.run(inner, certain=certain, because=because)
        if step.first:
            self._first(step.first, certain, because)
        return holds

    def _first(self, steps: Iterable[Step], certain: bool, because: tuple[str, ...]) -> None:
        # All conditions are asked before anything is set: the branches of one question.
        asked = [(step, evaluate(step.when, self)) for step in steps]
        for step, holds in asked:
            if holds is False:
                continue
            if holds is None:
                because = (*because, *self._missing(step.when))
            open_step = Step(ALWAYS, EVERY, step.sets, step.steps, step.first, step.note, step.origin)
            self.run(open_step, certain=certain and holds is True, because=because)
            if holds:
                return
            certain = False

    def _missing(self, condition: Condition) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for name in unknown_facts(condition, self):
            found.update(dict.fromkeys(self.because.get(name, (name,))))
        return tuple(found)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith("$") and len(value) > 1:
                return self.look(value[1:])
            if value.startswith("{"):
                return computed(value, self)
        return value

    def _put(self, name: str, value: Any, step: Step, certain: bool, because: tuple[str, ...]) -> None:
        names = [name]
        if name.startswith("arg.") and (alike := self._alike.get(name[4:])):
            names = [f"arg.{dest}" for dest in alike]
        for each in names:
            old = self.look(each)
            if not certain and _alike(old, value):
                continue
            if not certain or value is UNKNOWN:
                self._facts[each] = Fact(each, UNKNOWN, Source.DERIVED, step.origin)
                self.because[each] = tuple(dict.fromkeys(because)) or (each,)
            else:
                self._facts[each] = Fact(each, value, Source.DERIVED, step.origin)
                self.because.pop(each, None)
            self.decided[each] = step

    def result(self) -> Resolved:
        return Resolved(
            Facts(self._facts, self.contradictions, self.closed), dict(self.decided), dict(self.because)
        )


def _alike(old: Any, value: Any) -> bool:
    if old is UNKNOWN or value is UNKNOWN:
        return False
    return old == value or (old is not None and value is not None and str(old) == str(value))
