"""Conditions in words, to stand after "if"."""

from __future__ import annotations

from typing import Any

from mtpdoctor.kb.fact_names import fact_words
from mtpdoctor.kb.types import Condition

_VERBS = {
    "gt": "is more than",
    "ge": "is at least",
    "lt": "is less than",
    "le": "is at most",
    "matches": "matches",
    "contains": "contains",
    "multiple_of": "is a multiple of",
    "divides": "divides",
}
_NEGATED = {
    "gt": "is at most",
    "ge": "is less than",
    "lt": "is at least",
    "le": "is more than",
    "matches": "does not match",
    "contains": "does not contain",
    "multiple_of": "is no multiple of",
    "divides": "does not divide",
}


def describe(condition: Condition) -> str:
    """The condition in words, to stand after "if"; "always" for the empty one."""
    return _describe(condition, negated=False, nested=False) or "always"


def _describe(condition: Condition, negated: bool, nested: bool) -> str:
    op = condition.op
    if op == "not":
        return _describe(condition.children[0], not negated, nested)
    if op in ("all", "any"):
        # the allowance for "not known" goes without saying where something else is asked for
        children = [c for c in condition.children if c.op != "unknown"]
        word = " and " if (op == "all") is not negated else " or "
        text = word.join(_describe(c, negated, len(children) > 1) for c in children)
        return f"({text})" if nested and len(children) > 1 else text
    subject = fact_words(condition.fact)
    if op in ("absent", "present"):
        given = "set" if condition.fact.startswith(("env.", "arg.")) else "given"
        if not condition.fact.startswith(("env.", "arg.", "flag.")):
            given = "known"
        return f"{subject} is {given}" if (op == "present") is not negated else f"{subject} is not {given}"
    if op == "unknown":
        return f"{subject} is {'known' if negated else 'not known'}"
    isnt = "is not" if negated else "is"
    if op == "range":
        return f"{subject} {isnt} {condition.operand}"
    if op == "in":
        if isinstance(condition.operand, str):
            return f"{subject} {isnt} among {_operand_words(condition.operand)}"
        return f"{subject} {isnt} " + " or ".join(_operand_words(o) for o in condition.operand)
    if op == "eq":
        truth = condition.operand if isinstance(condition.operand, bool) else None
        if truth is not None:
            on = truth is not negated
            if condition.fact.startswith("flag."):
                return f"{subject} is {'given' if on else 'not given'}"
            if condition.fact.startswith("model.is_"):
                kind = {"mla": "MLA", "moe": "MoE"}.get(condition.fact[9:], condition.fact[9:])
                return f"the model {'is' if on else 'is not'} {kind}"
        return f"{subject} {isnt} {_operand_words(condition.operand)}"
    return f"{subject} {(_NEGATED if negated else _VERBS)[op]} {_operand_words(condition.operand)}"


def _operand_words(operand: Any) -> str:
    if isinstance(operand, str) and operand.startswith("$") and len(operand) > 1:
        return fact_words(operand[1:])
    if isinstance(operand, bool):
        return "on" if operand else "off"
    return str(operand)
