"""What of a condition is still open: the part that facts have not decided."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.facts import Facts
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.records import replace


def undecided(condition: Condition, facts: Facts, captures: Mapping[str, str] | None = None) -> Condition:
    """The condition without the parts whose truth is known: true ones of an ``all``, false ones of an
    ``any``. ``ALWAYS`` when nothing is open."""
    if evaluate(condition, facts, captures) is not None:
        return ALWAYS
    if condition.op == "all":
        open_parts = [c for c in condition.children if evaluate(c, facts, captures) is not True]
    elif condition.op == "any":
        open_parts = [c for c in condition.children if evaluate(c, facts, captures) is not False]
    else:
        return condition
    children = tuple(undecided(c, facts, captures) for c in open_parts)
    return children[0] if len(children) == 1 else replace(condition, children=children)
