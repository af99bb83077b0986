"""YAML read strictly: every value knows its line, and nothing is guessed.

PyYAML's safe loader forgets positions, lets a later duplicate key win and reads ``no`` as False.
Here the composed node graph is kept: scalars follow the YAML 1.2 core (only ``true``/``false``/
``null`` and decimal numbers are special), duplicate keys, aliases and merge keys are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, field

_INT = lazy(r"[-+]?(0|[1-9][0-9]*)$")
_FLOAT = lazy(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?$")
_AMBIGUOUS = {"yes", "no", "on", "off", "y", "n"}
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the knowledge, at one place. ``level`` is "error" or "note"."""

    file: str
    line: int
    message: str
    rule: str = ""
    level: str = "error"

    def __lt__(self, other: Problem) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[str, int, str, str, str]:
        return self.file, self.line, self.message, self.rule, self.level

    def __str__(self) -> str:
        rule = f" {self.rule}:" if self.rule else ""
        note = " note:" if self.level == "note" else ""
        return f"{self.file}:{self.line}:{rule}{note} {self.message}"


@dataclass(frozen=True, slots=True)
class Node:
    """A YAML value and the line (from 1) it stands on.

    ``value`` is a scalar, a list of nodes or a dict of nodes; ``raw`` is a scalar as written
    (versions must not go through float); ``key_lines`` are the lines of a mapping's keys.
    """

    value: Any
    line: int
    raw: str = ""
    key_lines: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(value: Any, line: int = 0) -> Node:
        """A node from plain Python data."""
        if isinstance(value, Node):
            return value
        if isinstance(value, dict):
            return Node({str(k): Node.of(v, line) for k, v in value.items()}, line)
        if isinstance(value, (list, tuple)):
            return Node([Node.of(v, line) for v in value], line)
        return Node(value, line, raw=str(value))

    @property
    def is_map(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, list)

    @property
    def kind(self) -> str:
        """The kind of value, in words for error messages."""
        if self.is_map:
            return "a mapping"
        if self.is_list:
            return "a list"
        if self.value is None:
            return "nothing"
        if isinstance(self.value, bool):
            return f"{str(self.value).lower()}"
        return "a number" if isinstance(self.value, (int, float)) else "text"

    def items(self) -> Iterator[tuple[str, Node]]:
        yield from self.value.items()

    def line_of(self, key: str) -> int:
        return self.key_lines.get(key, self.line)

    def plain(self) -> Any:
        """Plain Python data."""
        if self.is_map:
            return {k: v.plain() for k, v in self.value.items()}
        if self.is_list:
            return [v.plain() for v in self.value]
        return self.value


def nearest(word: str, known: Iterable[str]) -> str:
    """ " (did you mean X?)" or an empty string."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def parse_yaml(text: str, file: str, problems: list[Problem]) -> Node | None:
    """The one document of ``text``; None when it cannot be read. What is wrong goes to ``problems``."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(p for p in (error.context, error.problem) if p)
        problems.append(Problem(file, mark.line + 1 if mark else 1, f"not YAML: {what}"))
        return None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        what = getattr(error, "reason", None) or str(error)
        problems.append(Problem(file, line, f"not YAML: {what}"))
        return None
    if root is None:
        problems.append(Problem(file, 1, "the file is empty (expected `rules:`)"))
        return None
    before = len(problems)
    node = _convert(root, file, problems, set())
    return node if len(problems) == before else None


def _convert(node: Any, file: str, problems: list[Problem], seen: set[int]) -> Node:
    import yaml

    line = node.start_mark.line + 1
    if id(node) in seen:
        problems.append(Problem(file, line, "an alias (*name) is used; write the value out"))
        return Node(None, line)
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        out: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key_line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                problems.append(Problem(file, key_line, "a key must be a word"))
                continue
            key = key_node.value
            if key in out:
                problems.append(
                    Problem(file, key_line, f"duplicate key {key!r} (first on line {key_lines[key]})")
                )
                continue
            key_lines[key] = key_line
            out[key] = _convert(value_node, file, problems, seen)
        return Node(out, line, key_lines=key_lines)
    if isinstance(node, yaml.SequenceNode):
        return Node([_convert(item, file, problems, seen) for item in node.value], line)
    return Node(_scalar(node, file, line, problems), line, raw=node.value)


def _scalar(node: Any, file: str, line: int, problems: list[Problem]) -> Any:
    text = node.value
    if node.style:  # quoted or a block: always text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _AMBIGUOUS:
        problems.append(Problem(file, line, f"{text} is ambiguous in YAML: write true/false or quote it"))
        return text
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text
