"""YAML documents as nodes with their exact places, aliases and merge keys included.

Composed from PyYAML's events rather than loaded, so that every occurrence of an alias keeps its own place
and nothing of the text is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.records import dataclass, field

_MERGE = "<<"
_MOST_NODES = 300_000


@dataclass(slots=True, eq=False)
class Node:
    """``start:end`` is this occurrence (properties such as ``&anchor`` not included).

    For an alias it is the place of ``*name``; ``home`` is then the anchored node, whose content this shares.
    """

    kind: str  # scalar, seq, map
    start: int
    end: int
    value: str = ""
    style: str = ""  # scalars: "", ', ", |, >
    flow: bool = False
    tag: str | None = None
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    home: Node | None = None

    def pair(self, key: str) -> tuple[Node, Node] | None:
        """The pair of a key, in the mapping itself or in what ``<<`` merges into it."""
        found = None
        for k, v in self.pairs:
            if k.value == key and k.kind == "scalar":
                found = (k, v)  # the last of duplicate keys counts
        if found:
            return found
        for k, v in self.pairs:
            if k.value == _MERGE:
                for source in v.items if v.kind == "seq" else [v]:
                    if inherited := source.pair(key):
                        return inherited
        return None

    def own(self, key: str) -> bool:
        return any(k.value == key for k, _ in self.pairs)

    def get(self, *path: str) -> Node | None:
        """The value at a path of keys; None where a key is missing or a value is no mapping."""
        node: Node | None = self
        for key in path:
            pair = node.pair(key) if node is not None and node.kind == "map" else None
            node = pair[1] if pair else None
        return node

    def text(self, *path: str) -> str | None:
        node = self.get(*path)
        return node.value if node is not None and node.kind == "scalar" and not node.is_null else None

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and not self.style and self.value in ("", "~", "null", "Null", "NULL")

    def all_pairs(self) -> list[tuple[Node, Node]]:
        """Pairs with merged ones, each key once, the mapping's own first."""
        seen: dict[str, tuple[Node, Node]] = {}
        for k, v in self.pairs:
            if k.value != _MERGE:
                seen[k.value] = (k, v)
        for k, v in self.pairs:
            if k.value == _MERGE:
                for source in v.items if v.kind == "seq" else [v]:
                    for mk, mv in source.all_pairs():
                        seen.setdefault(mk.value, (mk, mv))
        return list(seen.values())

    def walk(self) -> Iterator[Node]:
        """This node and all below it; aliased content once, where it is anchored."""
        if self.home is not None:
            return
        yield self
        for item in self.items:
            yield from item.walk()
        for key, value in self.pairs:
            yield from key.walk()
            yield from value.walk()


def parse_yaml(text: str, name: str) -> list[Node]:
    """Documents of a YAML text. Raises UserError with line and column."""
    import yaml

    shift = 1 if text.startswith("\ufeff") else 0
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if loader is yaml.SafeLoader:
        shift = 0
    try:
        return _compose(yaml.parse(text, Loader=loader), text, shift)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        what = " ".join(p for p in (error.context, error.problem) if p)
        hint = "correct the file there and try again"
        if "{{" in text:
            hint = "if it is a template, render it first (helm template) and give the result"
        raise UserError(f"{at}: not valid YAML: {what}", hint=hint) from None
    except yaml.reader.ReaderError as error:
        position = error.position
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        raise UserError(
            f"{name}:{line}:{column}: not valid YAML: a control character is not allowed here",
            hint="remove the character and try again",
        ) from None
    except RecursionError:
        raise UserError(f"{name}: YAML nested too deeply", hint="is this the right file?") from None


def _compose(events: Any, text: str, shift: int) -> list[Node]:
    import yaml

    documents: list[Node] = []
    stack: list[tuple[Node, list[Node]]] = []  # open collections; for maps the keys and values so far
    anchors: dict[str, Node] = {}
    sizes: dict[int, int] = {}  # nodes below a node once its aliases are followed

    def place(event: Any) -> tuple[int, int]:
        return event.start_mark.index + shift, event.end_mark.index + shift

    def close(node: Node) -> None:
        if stack:
            stack[-1][1].append(node)
        else:
            documents.append(node)

    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            anchors = {}
        elif isinstance(event, yaml.AliasEvent):
            start, end = place(event)
            home = anchors.get(event.anchor or "")
            if home is None or any(home is open_node for open_node, _ in stack):
                problem = f"alias *{event.anchor} has no anchor before it"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]
            close(
                Node(
                    home.kind,
                    start,
                    end,
                    home.value,
                    home.style,
                    True,
                    home.tag,
                    home.items,
                    home.pairs,
                    home,
                )
            )
        elif isinstance(event, yaml.ScalarEvent):
            start, end = place(event)
            start = _skip_properties(text, start, end, event)
            node = Node("scalar", start, end, event.value, event.style or "", tag=event.tag)
            if event.anchor:
                anchors[event.anchor] = node
            close(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            start, end = place(event)
            start = _skip_properties(text, start, end, event)
            kind = "seq" if isinstance(event, yaml.SequenceStartEvent) else "map"
            node = Node(kind, start, end, flow=bool(event.flow_style), tag=event.tag)
            if event.anchor:
                anchors[event.anchor] = node
            stack.append((node, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            node, children = stack.pop()
            node.end = place(event)[1]
            if node.kind == "seq":
                node.items.extend(children)
            else:
                node.pairs.extend(zip(children[::2], children[1::2], strict=True))
            sizes[id(node)] = size = 1 + sum(sizes.get(id(c.home or c), 1) for c in children)
            if size > _MOST_NODES and anchors:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem="aliases make it too large", problem_mark=mark)
            close(node)
    return documents


def _skip_properties(text: str, start: int, end: int, event: Any) -> int:
    """The content's start: marks of an anchored or tagged node begin at its ``&anchor`` or ``!tag``."""
    if event.anchor is None and event.tag is None:
        return start
    while start < len(text) and text[start] in "&!":
        while start < len(text) and not text[start].isspace():
            start += 1
        while start < len(text) and text[start].isspace():
            start += 1
    return start
