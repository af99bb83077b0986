"""What stands in a rule's YAML node, taken as what it should be; each problem at its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TypeVar

from mtpdoctor.kb.yaml_source import Node, Problem, nearest
from mtpdoctor.release import ReleaseRange

E = TypeVar("E", bound=Enum)
T = TypeVar("T")

_ANY = ReleaseRange.parse("*")


class NodeReader:
    """Reads one file. Problems are appended to ``problems``, with the rule ``rule_id`` they are in; a
    value that is wrong is taken for its default, nothing is raised."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self.rule_id = ""

    def error(self, line: int, message: str) -> None:
        self.problems.append(Problem(self.file, line, message, self.rule_id))

    def keys(self, node: Node, allowed: Iterable[str], what: str) -> None:
        allowed = tuple(allowed)
        for key in node.value:
            if key not in allowed:
                self.error(node.line_of(key), f"unknown key {key!r} in {what}{nearest(key, allowed)}")

    def text(self, node: Node, key: str) -> str:
        """The text of an optional scalar, "" when missing; numbers are taken as written."""
        value = node.value.get(key)
        if value is None or value.value is None:
            return ""
        if value.is_map or value.is_list or isinstance(value.value, bool):
            self.error(node.line_of(key), f"`{key}` takes text, not {value.kind}")
            return ""
        return value.raw.strip() if key not in ("log", "pattern", "literal", "before", "after") else value.raw

    def list(self, node: Node, key: str) -> list[Node]:
        value = node.value.get(key)
        if value is None or value.value is None:
            return []
        if not value.is_list:
            self.error(node.line_of(key), f"`{key}` takes a list, not {value.kind}")
            return []
        return list(value.value)

    def texts(self, node: Node, key: str) -> tuple[str, ...]:
        out = []
        for item in self.list(node, key):
            if not isinstance(item.value, str):
                self.error(item.line, f"`{key}` takes a list of texts; this is {item.kind}")
            else:
                out.append(item.value)
        return tuple(out)

    def flag(self, node: Node, key: str) -> bool:
        value = node.value.get(key)
        if value is None:
            return False
        if not isinstance(value.value, bool):
            self.error(node.line_of(key), f"`{key}` is true or false, not {value.kind}")
            return False
        return value.value

    def choice(self, node: Node, key: str, allowed: Iterable[str], default: str) -> str:
        text, allowed = self.text(node, key), tuple(allowed)
        if not text:
            return default
        if text not in allowed:
            self.error(
                node.line_of(key), f"{key}: {text!r} is none of {', '.join(allowed)}{nearest(text, allowed)}"
            )
            return default
        return text

    def member(self, node: Node, key: str, kind: type[E], default: E) -> E:
        return kind(self.choice(node, key, [m.value for m in kind], default.value))

    def confidence(self, node: Node, default: float) -> float:
        value = node.value.get("confidence")
        if value is None:
            return default
        if (
            isinstance(value.value, bool)
            or not isinstance(value.value, (int, float))
            or not 0 < value.value <= 1
        ):
            self.error(
                node.line_of("confidence"), f"confidence is a number in (0, 1], not {value.raw or value.kind}"
            )
            return default
        return float(value.value)

    def releases(self, node: Node) -> ReleaseRange:
        return self._tried(node, "releases", ReleaseRange.parse, _ANY)

    def _tried(self, node: Node, key: str, parse: Callable[[str], T], default: T) -> T:
        text = self.text(node, key)
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.error(node.line_of(key), f"{key}: {error}")
            return default
