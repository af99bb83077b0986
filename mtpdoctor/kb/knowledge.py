"""The knowledge as a whole: rules by id, made into objects only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mtpdoctor.kb.checkpoints import Checkpoints
from mtpdoctor.kb.codec import condition_in
from mtpdoctor.kb.resolution import Resolution
from mtpdoctor.kb.types import Condition, Rule
from mtpdoctor.release import Release, ReleaseRange


class RuleHead(NamedTuple):
    """What is known of a rule without making its object."""

    id: str
    role: str
    predicts: bool
    literals: tuple[str, ...]  # of its match patterns
    releases: str = "*"
    scope: str = "launch"


class Prediction:
    """What a rule foresees, without its object: of a hundred that are weighed one comes true.

    ``memory``: it speaks of the memory sum. ``condition`` is what must hold.
    """

    __slots__ = ("_condition", "memory", "releases", "rule_id", "scope", "severity")

    def __init__(
        self, rule_id: str, severity: str, scope: str, releases: str, memory: bool, condition: Any
    ) -> None:
        self.rule_id, self.severity, self.scope, self.memory = rule_id, severity, scope, memory
        self.releases = ReleaseRange.parse(releases)
        self._condition = condition  # as data until it is asked for

    @property
    def condition(self) -> Condition:
        if not isinstance(self._condition, Condition):
            self._condition = condition_in(self._condition)
        return self._condition


class _ById(Mapping[str, Rule]):
    def __init__(self, heads: Sequence[RuleHead], make: Callable[[int], Rule]) -> None:
        self._index = {head.id: i for i, head in enumerate(heads)}
        self._make = make
        self._made: dict[str, Rule] = {}

    def __getitem__(self, rule_id: str) -> Rule:
        rule = self._made.get(rule_id)
        if rule is None:
            rule = self._made[rule_id] = self._make(self._index[rule_id])
        return rule

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._index


class Knowledge:
    """Immutable. ``heads`` and ``literals`` are at hand at once; rules are made on first use.

    ``literals`` are all texts that a log must be searched for (match, requires and unless);
    ``resolution`` is what SGLang makes of arguments, ``checkpoints`` what was published of models; read on first use too.
    """

    def __init__(
        self,
        heads: Sequence[RuleHead],
        literals: Sequence[str],
        make: Callable[[int], Rule],
        resolution: Callable[[], Resolution] = Resolution,
        predictions: Callable[[], Sequence[Prediction]] | None = None,
        checkpoints: Callable[[], Checkpoints] = Checkpoints,
    ) -> None:
        self.heads = tuple(heads)
        self.literals = tuple(literals)
        self.by_id: Mapping[str, Rule] = _ById(self.heads, make)
        self._make_resolution = resolution
        self._resolution: Resolution | None = None
        self._make_predictions = predictions or self._of_rules
        self._predictions: Sequence[Prediction] | None = None
        self._make_checkpoints = checkpoints
        self._checkpoints: Checkpoints | None = None
        self._places: dict[str, list[int]] | None = None  # among the heads, of those that match a literal

    @property
    def matched_literals(self) -> Collection[str]:
        """The literals of match patterns."""
        return self._by_literal()

    def heads_with(self, literals: Iterable[str]) -> list[RuleHead]:
        """The heads of the rules that match one of the literals, in order of id."""
        by_literal = self._by_literal()
        places = {place for literal in literals for place in by_literal.get(literal, ())}
        return [self.heads[place] for place in sorted(places)]

    def _by_literal(self) -> Mapping[str, list[int]]:
        if self._places is None:
            self._places = {}
            for place, head in enumerate(self.heads):
                for literal in head.literals:
                    self._places.setdefault(literal, []).append(place)
        return self._places

    @property
    def checkpoints(self) -> Checkpoints:
        if self._checkpoints is None:
            self._checkpoints = self._make_checkpoints()
        return self._checkpoints

    @property
    def resolution(self) -> Resolution:
        if self._resolution is None:
            self._resolution = self._make_resolution()
        return self._resolution

    @staticmethod
    def of(
        rules: Sequence[Rule],
        resolution: Resolution | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> Knowledge:
        """Knowledge of rules that are already there."""
        rules = tuple(rules)
        heads = [head_of(rule) for rule in rules]
        return Knowledge(
            heads,
            literals_of(rules),
            lambda i: rules[i],
            lambda: resolution or Resolution(),
            checkpoints=lambda: checkpoints or Checkpoints(),
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule, in order of id."""
        return tuple(self.by_id.values())

    def predictions(self, release: Release | None = None) -> Iterator[Prediction]:
        """What rules foresee of a launch before it, without those that do not hold in ``release``."""
        if self._predictions is None:
            self._predictions = tuple(self._make_predictions())
        for each in self._predictions:
            if each.scope == "launch" and each.releases.holds(release) is not False:
                yield each

    def about_hosts(self, release: Release | None = None) -> Iterator[Rule]:
        """The rules that speak of a host, without those that do not hold in ``release``."""
        for head in self.heads:
            if not head.predicts or head.scope != "host":
                continue
            if ReleaseRange.parse(head.releases).holds(release) is not False:
                yield self.by_id[head.id]

    def _of_rules(self) -> Sequence[Prediction]:
        return [Prediction(*prediction_of(self.by_id[head.id])) for head in self.heads if head.predicts]

    def __len__(self) -> int:
        return len(self.heads)


def head_of(rule: Rule) -> RuleHead:
    return RuleHead(
        rule.id,
        rule.role.value,
        rule.predicts is not None,
        tuple(dict.fromkeys(p.literal for p in rule.match)),
        rule.releases.text,
        rule.scope,
    )


def prediction_of(rule: Rule) -> tuple[str, str, str, str, bool, Condition]:
    """What a :class:`Prediction` is made of. The rule has one."""
    assert rule.predicts is not None
    memory = rule.predicts.mentions("memory.")
    return rule.id, rule.severity, rule.scope, rule.releases.text, memory, rule.predicts


def literals_of(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The literals of all patterns, each once, in stable order."""
    patterns = (p for rule in rules for p in (*rule.match, *rule.requires, *rule.unless))
    return tuple(dict.fromkeys(p.literal for p in patterns))
