"""Which rules fire on which examples, and what of it nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.lint_examples import matches_in
from mtpdoctor.kb.load import origin_problem
from mtpdoctor.kb.types import Role, Rule

if TYPE_CHECKING:
    from mtpdoctor.kb.lint import Hooks


@dataclass(frozen=True, slots=True)
class Row:
    """One example. ``fires`` leaves out advice, whose patterns are wide by design, but for the rule itself. ``undeclared`` are specific causes that fire without being named in ``also`` or ``explains``;
    ``wrong`` says that the rule is silent on its bad or speaks on its ok example."""

    rule: str
    kind: str  # "bad" | "ok"
    where: str  # file:line
    fires: tuple[str, ...]
    undeclared: tuple[str, ...]
    wrong: bool

    @property
    def alone(self) -> bool:
        """A bad example on which the rule fires and nothing else."""
        return self.kind == "bad" and self.fires == (self.rule,)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows in order of rules, and what they show together."""

    rows: tuple[Row, ...]

    @property
    def undeclared(self) -> tuple[Row, ...]:
        return tuple(r for r in self.rows if r.undeclared)

    @property
    def wrong(self) -> tuple[Row, ...]:
        return tuple(r for r in self.rows if r.wrong)

    @property
    def alone(self) -> tuple[Row, ...]:
        return tuple(r for r in self.rows if r.alone)

    @property
    def elsewhere(self) -> dict[str, int]:
        """Rule -> number of other rules' examples on which it fires; rules with none are left out."""
        out: dict[str, int] = {}
        for row in self.rows:
            for rule in row.fires:
                if rule != row.rule:
                    out[rule] = out.get(rule, 0) + 1
        return dict(sorted(out.items(), key=lambda item: (-item[1], item[0])))

    @property
    def only_own(self) -> tuple[str, ...]:
        """Rules with examples that no other rule's example sets off."""
        own = dict.fromkeys(r.rule for r in self.rows if r.kind == "bad")
        return tuple(rule for rule in own if rule not in self.elsewhere)


def matrix_of(rules: Iterable[Rule], knowledge: Knowledge, hooks: Hooks | None = None) -> Matrix:
    """The rows of the examples of ``rules``, held against every rule of the knowledge.

    Raises UserError for an example whose command cannot be read.
    """
    rows = []
    for rule in rules:
        for kind in ("bad", "ok"):
            for example in rule.examples.get(kind, ()):
                matches, _, _ = matches_in(example["log"], knowledge, example, hooks)
                fires = tuple(
                    dict.fromkeys(
                        m.rule.id for m in matches if m.rule.id == rule.id or m.rule.role is not Role.ADVICE
                    )
                )
                place = origin_problem(rule, "", example["line"])
                rows.append(
                    Row(
                        rule.id,
                        kind,
                        f"{place.file}:{place.line}",
                        fires,
                        _undeclared(rule, kind, example.get("also", ()), fires, knowledge),
                        (rule.id in fires) is not (kind == "bad"),
                    )
                )
    return Matrix(tuple(rows))


def _undeclared(
    rule: Rule, kind: str, also: Sequence[str], fires: Sequence[str], knowledge: Knowledge
) -> tuple[str, ...]:
    """Specific causes beside the rule; on an ok example any rule may be right."""
    if kind != "bad":
        return ()
    declared = {rule.id, *also, *rule.explains}
    others = (knowledge.by_id[i] for i in fires if i not in declared)
    return tuple(r.id for r in others if r.role is Role.CAUSE and not r.generic)
