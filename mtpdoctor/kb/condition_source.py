"""Conditions as they are written in YAML (docs/knowledge-format.md, "Conditions"), to condition trees.

The vocabulary is closed: what is not in it is refused with its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpdoctor.kb.conditions import number_of
from mtpdoctor.kb.fact_names import check_fact_name, is_version_fact
from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.release import ReleaseRange, release_or_none

if TYPE_CHECKING:
    from mtpdoctor.kb.yaml_source import Node

COMPARISONS = (
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "in",
    "not_in",
    "matches",
    "contains",
    "multiple_of",
    "divides",
)
_RANGE_START = (">", "<", "=", "!", "*")


class ConditionError(ValueError):
    """A condition that is not in the vocabulary. ``line`` is where (0 when not from a file)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse_condition(written: Any) -> Condition:
    """A condition from YAML (a Node) or plain data. Raises ConditionError."""
    from mtpdoctor.kb.yaml_source import Node

    node = Node.of(written)
    if node.value is None:
        return ALWAYS
    return _all_of(node)


def _all_of(node: Node) -> Condition:
    if not node.is_map:
        raise ConditionError(f"a condition is a mapping of fact: value, not {node.kind}", node.line)
    parts = tuple(_entry(key, value, node.line_of(key)) for key, value in node.items())
    return parts[0] if len(parts) == 1 else Condition("all", children=parts)


def _entry(key: str, value: Node, line: int) -> Condition:
    if key in ("all", "any"):
        if not value.is_list or not value.value:
            raise ConditionError(f"`{key}:` takes a list of mappings, not {value.kind}", line)
        return Condition(key, children=tuple(_all_of(item) for item in value.value))
    if key == "not":
        return Condition("not", children=(_all_of(value),))
    problem = check_fact_name(key)
    if problem:
        raise ConditionError(problem, line)
    return _about(key, value, line)


def _about(fact: str, value: Node, line: int) -> Condition:
    if value.is_list:
        return _one_of(fact, value, line)
    if not value.is_map:
        return _equal(fact, value, line)
    if not value.value:
        raise ConditionError(f"{fact}: an empty comparison", line)
    parts = tuple(_comparison(fact, op, operand, value.line_of(op)) for op, operand in value.items())
    return parts[0] if len(parts) == 1 else Condition("all", children=parts)


def _comparison(fact: str, op: str, operand: Node, line: int) -> Condition:
    if op not in COMPARISONS:
        from mtpdoctor.kb.yaml_source import nearest

        raise ConditionError(f"unknown comparison {op!r}{nearest(op, COMPARISONS)}", line)
    if op == "eq":
        return _equal(fact, operand, line)
    if op == "ne":
        return Condition("not", children=(_equal(fact, operand, line),))
    if op in ("in", "not_in"):
        if not operand.is_list and not _is_reference(operand):
            raise ConditionError(f"`{op}:` takes a list", line)
        inside = (
            _one_of(fact, operand, line)
            if operand.is_list
            else Condition("in", fact, _reference(operand, line))
        )
        return inside if op == "in" else Condition("not", children=(inside,))
    value = _scalar(fact, operand, line)
    if op == "matches":
        if not isinstance(value, str):
            raise ConditionError("`matches:` takes a regex", line)
        _check_regex(value, line)
    elif op == "contains":
        pass
    elif not _is_reference(operand):
        if op in ("multiple_of", "divides"):
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConditionError(f"`{op}:` takes a whole number, not {operand.raw!r}", line)
        elif is_version_fact(fact):
            if release_or_none(str(value)) is None:
                raise ConditionError(f"`{op}:` of {fact} takes a version, not {operand.raw!r}", line)
        elif number_of(value) is None and release_or_none(str(value)) is None:
            raise ConditionError(f"`{op}:` takes a number or a version, not {operand.raw!r}", line)
    return Condition(op, fact, value)


def _one_of(fact: str, node: Node, line: int) -> Condition:
    if not node.value:
        raise ConditionError(f"{fact}: an empty list", line)
    words = {"absent": "absent", "present": "present", "unknown-ok": "unknown"}
    values: list[Any] = []
    parts: list[Condition] = []
    for item in node.value:
        word = words.get(item.value) if isinstance(item.value, str) else None
        if word:
            parts.append(Condition(word, fact))
        elif is_version_fact(fact) and item.raw.startswith(_RANGE_START):
            parts.append(_equal(fact, item, line))
        else:
            values.append(_scalar(fact, item, line))
    if values:
        parts.insert(0, Condition("in", fact, tuple(values)))
    if parts == [Condition("unknown", fact)]:
        raise ConditionError(f"{fact}: unknown-ok needs another value beside it", line)
    return parts[0] if len(parts) == 1 else Condition("any", children=tuple(parts))


def _equal(fact: str, node: Node, line: int) -> Condition:
    if isinstance(node.value, str) and node.value in ("absent", "present"):
        return Condition(node.value, fact)
    if node.value == "unknown-ok":
        raise ConditionError(f"{fact}: unknown-ok stands in a list, beside another value", line)
    if is_version_fact(fact) and node.raw.startswith(_RANGE_START):
        try:
            ReleaseRange.parse(node.raw)
        except ValueError as error:
            raise ConditionError(f"{fact}: {error}", line) from None
        return Condition("range", fact, node.raw)
    value = _scalar(fact, node, line)
    if fact == "release" and not _is_reference(node) and release_or_none(str(value)) is None:
        raise ConditionError(f"release: not a release or a range of releases: {node.raw!r}", line)
    return Condition("eq", fact, value)


def _is_reference(node: Node) -> bool:
    return isinstance(node.value, str) and node.value.startswith("$") and len(node.value) > 1


def _reference(node: Node, line: int) -> str:
    problem = check_fact_name(node.value[1:])
    if problem:
        raise ConditionError(problem, line)
    return str(node.value)


def _scalar(fact: str, node: Node, line: int) -> Any:
    if node.is_map or node.is_list:
        raise ConditionError(f"{fact}: a single value is needed here, not {node.kind}", line)
    if node.value is None:
        raise ConditionError(f"{fact}: empty value; write `absent` for not given", line)
    if _is_reference(node):
        return _reference(node, line)
    return node.raw if is_version_fact(fact) else node.value


def _check_regex(pattern: str, line: int) -> None:
    from mtpdoctor.kb.literals import parse_regex

    try:
        parse_regex(pattern)
    except ValueError as error:
        raise ConditionError(f"matches: {error}", line) from None
