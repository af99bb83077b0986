"""Conditions over the facts of a launch, with three-valued truth (Kleene).

A fact missing from the facts is unknown; a fact whose value is None is known to be absent. ``all``/``any``/``not``
follow Kleene: unknown only where the unknown part decides. How conditions are written: ``condition_source``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.fact_names import is_version_fact
from mtpdoctor.kb.regexes import rule_regex
from mtpdoctor.kb.types import Condition
from mtpdoctor.release import Release, ReleaseRange, parse_release, release_or_none

__all__ = ["Condition", "describe", "evaluate", "fact_names", "look", "number_of", "unknown_facts"]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def describe(condition: Condition) -> str:
    """The condition in words, to stand after "if"."""
    from mtpdoctor.kb.condition_words import describe as in_words  # most runs have nothing to say of one

    return in_words(condition)


def evaluate(condition: Condition, facts: Facts, captures: Mapping[str, str] | None = None) -> bool | None:
    """True, False, or None where an unknown fact decides.

    ``captures`` are the named groups of a match: a group that took no part is absent. Without
    ``captures`` (no match yet) every ``capture.NAME`` is unknown.
    """
    op = condition.op
    if op == "not":
        inner = evaluate(condition.children[0], facts, captures)
        return None if inner is None else not inner
    if op in ("all", "any"):
        deciding = op == "any"
        unknown = False
        for child in condition.children:
            result = evaluate(child, facts, captures)
            if result is deciding:
                return deciding
            unknown = unknown or result is None
        return None if unknown else not deciding
    value = look(condition.fact, facts, captures)
    if op == "unknown":
        return value is UNKNOWN
    if value is UNKNOWN:
        return None
    if op == "absent":
        return value is None
    if op == "present":
        return value is not None
    if op == "in":
        return _is_in(condition, value, facts, captures)
    if value is None and op != "eq":  # absent is neither greater nor contained nor divisible
        return False
    operand = _operand(condition.operand, facts, captures)
    if operand is UNKNOWN:
        return None
    return _compare(op, condition.fact, value, operand)


def _is_in(condition: Condition, value: Any, facts: Facts, captures: Mapping[str, str] | None) -> bool | None:
    if isinstance(condition.operand, str):  # $fact: a list
        operand = _operand(condition.operand, facts, captures)
        if operand is UNKNOWN:
            return None
        return isinstance(operand, (list, tuple, set, frozenset)) and any(
            _same(condition.fact, value, item) for item in operand
        )
    unknown = False
    for item in condition.operand:
        operand = _operand(item, facts, captures)
        if operand is UNKNOWN:
            unknown = True
        elif _same(condition.fact, value, operand):
            return True
    return None if unknown else False


def look(name: str, facts: Facts, captures: Mapping[str, str] | None = None) -> Any:
    """The value of a fact or of ``capture.NAME``; UNKNOWN when not known, None when known to be absent.

    What the memory sum does not tell is absent: a remedy with a worked-out number is there or it is not."""
    if name.startswith("capture."):
        return UNKNOWN if captures is None else captures.get(name[8:])
    value = facts.look(name)
    return None if value is UNKNOWN and name.startswith("memory.") else value


def _operand(operand: Any, facts: Facts, captures: Mapping[str, str] | None) -> Any:
    if isinstance(operand, str) and operand.startswith("$") and len(operand) > 1:
        return look(operand[1:], facts, captures)
    return operand


def _compare(op: str, fact: str, value: Any, operand: Any) -> bool | None:
    if op == "eq":
        return _same(fact, value, operand)
    if value is None or operand is None:
        return False
    if op == "range":
        release = _version(value)
        return None if release is None else release in ReleaseRange.parse(operand)
    if op == "contains":
        if isinstance(value, (list, tuple, set, frozenset)):
            return any(_same(fact, item, operand) for item in value)
        return str(operand) in str(value)
    if op == "matches":
        return _matches(str(operand), str(value))
    if op in ("multiple_of", "divides"):
        whole, by = (value, operand) if op == "multiple_of" else (operand, value)
        a, b = number_of(whole), number_of(by)
        if a is None or b is None or a != int(a) or b != int(b):
            return None
        return b != 0 and int(a) % int(b) == 0
    a, b = number_of(value), number_of(operand)
    if is_version_fact(fact) or a is None or b is None:
        left, right = _version(value), _version(operand)
        return None if left is None or right is None else _ORDER[op](left, right)
    return _ORDER[op](a, b)


def _same(fact: str, value: Any, operand: Any) -> bool:
    if value is None or operand is None:
        return value is operand
    if isinstance(value, bool) or isinstance(operand, bool):
        return _truth(value) is not None and _truth(value) is _truth(operand)
    if is_version_fact(fact):
        left, right = _version(value), _version(operand)
        if left is not None and right is not None:
            return left == right
    a, b = number_of(value), number_of(operand)
    if a is not None and b is not None:
        return a == b
    return str(value) == str(operand)


def _truth(value: Any) -> bool | None:
    """True/False as a value or as the words "true"/"false" in any case; None for everything else."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def number_of(value: Any) -> float | int | None:
    """The finite number that a value is or says; None for everything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if _is_finite(value) else None
    return _number_in(value) if isinstance(value, str) else None


@lru_cache(maxsize=4096)  # the same few values are compared again and again
def _number_in(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if _is_finite(number) else None
    return None


def _is_finite(number: float) -> bool:
    """Can it be reckoned with: neither infinite nor an integer beyond all floats?"""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _version(value: Any) -> Release | None:
    if isinstance(value, Release):
        return parse_release(str(value))
    return release_or_none(str(value))


def _matches(pattern: str, text: str) -> bool | None:
    try:
        return rule_regex(pattern).search(text[:65536], timeout=0.2) is not None
    except TimeoutError:
        return None


# --- what it asks for -------------------------------------------------------------------------------


def unknown_facts(
    condition: Condition, facts: Facts, captures: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The unknown facts that decide the condition: empty unless it evaluates to None."""
    if evaluate(condition, facts, captures) is not None:
        return ()
    if condition.children:
        found = [name for child in condition.children for name in unknown_facts(child, facts, captures)]
        return tuple(dict.fromkeys(found))
    names = [condition.fact, *_references(condition)]
    return tuple(n for n in dict.fromkeys(names) if look(n, facts, captures) is UNKNOWN) or (condition.fact,)


def fact_names(condition: Condition) -> tuple[str, ...]:
    """Every fact that the condition reads, in order of appearance."""
    own = [condition.fact, *_references(condition)] if condition.fact else []
    for child in condition.children:
        own.extend(fact_names(child))
    return tuple(dict.fromkeys(own))


def _references(condition: Condition) -> list[str]:
    operands: Iterable[Any] = (
        condition.operand if isinstance(condition.operand, tuple) else (condition.operand,)
    )
    return [o[1:] for o in operands if isinstance(o, str) and o.startswith("$") and len(o) > 1]
