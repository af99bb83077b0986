"""The cause that a rule names in one launch: where its facts decide between several, the one that it is."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.facts import Facts
from mtpdoctor.kb.by_name import evaluate_by_name
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Rule


def cause_here(rule: Rule, facts: Facts, captures: Mapping[str, str] | None = None) -> str:
    """The first text of ``here`` whose condition surely holds, else the rule's ``cause``, filled in."""
    captures = captures or {}
    decided = (h.cause for h in rule.here if evaluate_by_name(h.when, facts, captures) is True)
    return fill(next(decided, rule.cause), facts, captures)
