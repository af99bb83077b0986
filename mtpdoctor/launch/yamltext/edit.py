"""Changing YAML text: items of sequences, pairs of mappings. Each edit touches its own lines only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.words import Word
from mtpdoctor.launch.yamltext.nodes import Node
from mtpdoctor.launch.yamltext.scalars import scalar_layer, write_scalar
from mtpdoctor.patterns import lazy

_SEPARATOR = lazy(r"\s*,\s*\Z")
_REST_OF_LINE = lazy(r"[ \t]*(?:#[^\r\n]*)?(?=\r?\n|\Z)")


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def content_end(root: Layer, node: Node) -> int:
    """Where a node's text ends, without the blank and comment lines that YAML counts to it."""
    if node.home is not None or node.flow:
        return node.end
    if node.kind == "seq" and node.items:
        return content_end(root, node.items[-1])
    if node.kind == "map" and node.pairs:
        return content_end(root, node.pairs[-1][1])
    if node.style in ("|", ">"):
        layer = scalar_layer(root, node)
        end = layer.end if layer and layer.ends else node.start + 1
        while end > node.start and root.text[end - 1] in "\r\n":
            end -= 1
        return end
    return max(node.start, node.end)


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def after_line(root: Layer, at: int, lines: Sequence[str]) -> Splice:
    """New lines behind the line that ends at or after ``at``. Raises ValueError when more stands on it."""
    m = _REST_OF_LINE.match(root.text, at)
    if m is None:
        raise ValueError("something else stands on the same line")
    newline = newline_of(root.text)
    return Splice(root, m.end(), m.end(), ("".join(newline + line for line in lines),))


def cut_lines(root: Layer, start: int, end: int) -> Splice:
    """Take out the lines from the one ``start`` is on to the one ``end`` is on."""
    text = root.text
    begin = line_start(text, start)
    m = _REST_OF_LINE.match(text, end)
    if m is None:
        raise ValueError("something else stands on the same line")
    stop = m.end()
    if stop < len(text):
        stop = text.index("\n", stop) + 1
    elif begin > 0:
        begin -= 2 if text[:begin].endswith("\r\n") else 1
    return Splice(root, begin, stop)


def set_scalar(root: Layer, node: Node, value: str, *, tags: tuple[str, ...] = ("str",)) -> list[Splice]:
    """Another value in a scalar's place, in its style. An alias is replaced where it stands."""
    if node.kind != "scalar":
        raise ValueError("a single value is expected there, and a list or mapping found")
    flow = _inside_flow(root.text, node)
    style = "" if node.home is not None or node.style in ("|", ">") else node.style
    written = write_scalar(value, style, flow, tags=tags)
    start, end = node.start, node.end
    if node.home is None and node.style in ("|", ">"):
        end = content_end(root, node)
    if start == end:
        written = (" " if root.text[start - 1 : start] not in ("", " ", "\t") else "") + written
    return [Splice(root, start, end, (written,))]


def _inside_flow(text: str, node: Node) -> bool:
    """Whether unquoted text at the node might be cut by flow indicators: judged by its line."""
    return bool(
        re.search(r"[\[{]", text[line_start(text, node.start) : node.start])
    ) or text.lstrip().startswith("{")


class SeqHost:
    """Words that are items of one YAML sequence. ``write`` and ``read`` translate values (``$$``)."""

    def __init__(self, root: Layer, node: Node, write: Callable[[str], str] = lambda v: v) -> None:
        self.root = root
        self.node = node.home or node
        self.layer = root
        self.write = write

    def words(self, read: Callable[[str], str] = lambda v: v) -> list[Word]:
        out: list[Word] = []
        for item in self.node.items:
            if item.kind == "scalar":
                out.append(Word(read(item.value), self, item.start, item.end, False, item))
        return out

    def replace(self, word: Word, value: str) -> list[Splice]:
        return set_scalar(self.root, word.source, self.write(value))

    def insert_after(
        self, word: Word, groups: Sequence[Sequence[str]], like: Word | None = None
    ) -> list[Splice]:
        values = [self.write(v) for group in groups for v in group]
        return self.insert(word.source, values)

    def insert(self, item: Node, values: Sequence[str]) -> list[Splice]:
        styles = [i.style for i in self.node.items if i.kind == "scalar" and i.style in ("'", '"', "")]
        style = styles[-1] if styles and len(set(styles)) == 1 else ""
        written = [write_scalar(v, style, self.node.flow) for v in values]
        return self.insert_text(item, written)

    def insert_text(self, item: Node, written: Sequence[str]) -> list[Splice]:
        """Items written as given, behind ``item``. Further lines of a block item are indented here."""
        if self.node.flow:
            at = content_end(self.root, item)
            sep = self._flow_separator(item)
            return [Splice(self.root, at, at, ("".join(sep + w for w in written),))]
        indent = self.dash(item)
        lines: list[str] = []
        for w in written:
            first, *rest = w.split("\n")
            lines.append(f"{indent}- {first}")
            lines += [f"{indent}  {line}" for line in rest]
        return [after_line(self.root, content_end(self.root, item), lines)]

    def dash(self, item: Node) -> str:
        text = self.root.text
        line = text[line_start(text, item.start) : item.start]
        m = re.match(r"([ \t]*)-[ \t]+(?:[&!]\S*[ \t]+)*\Z", line)
        if m is None:
            raise ValueError("this list is written in a way that cannot be extended safely")
        return m[1]

    def _flow_separator(self, item: Node) -> str:
        items = self.node.items
        index = next((k for k, i in enumerate(items) if i is item), 0)
        pairs = [(items[index - 1], item)] if index else []
        if index + 1 < len(items):
            pairs.append((item, items[index + 1]))
        for left, right in pairs:
            between = self.root.text[content_end(self.root, left) : right.start]
            if _SEPARATOR.match(between):
                return between
        return ", "

    def remove(self, words: Sequence[Word]) -> list[Splice]:
        nodes = [w.source for w in words]
        if not self.node.flow:
            for node in nodes:
                self.dash(node)  # refuses lists that are not one item a line
            return [cut_lines(self.root, n.start, content_end(self.root, n)) for n in nodes]
        return self._remove_flow(nodes)

    def _remove_flow(self, nodes: Sequence[Node]) -> list[Splice]:
        items = self.node.items
        first = next(k for k, i in enumerate(items) if i is nodes[0])
        last = next(k for k, i in enumerate(items) if i is nodes[-1])
        start, end = nodes[0].start, content_end(self.root, nodes[-1])
        text = self.root.text
        if first > 0 and "#" not in text[content_end(self.root, items[first - 1]) : start]:
            start = content_end(self.root, items[first - 1])
        elif last + 1 < len(items) and "#" not in text[end : items[last + 1].start]:
            end = items[last + 1].start
        elif m := re.compile(r"\s*,").match(text, end):
            end = m.end()
        return [Splice(self.root, start, end)]


def remove_item(root: Layer, sequence: Node, item: Node) -> list[Splice]:
    """Take one item (of any kind) out of a sequence."""
    host = SeqHost(root, sequence)
    return host.remove([Word("", host, item.start, item.end, False, item)])


def key_indent(root: Layer, mapping: Node) -> str:
    """Blank space in front of a block mapping's keys."""
    start = mapping.pairs[0][0].start
    return " " * (start - line_start(root.text, start))


def add_pair(root: Layer, mapping: Node, key: str, value: str, after: str | None = None) -> list[Splice]:
    """A new pair behind that of ``after`` (default: the last). ``value`` is YAML, written as given; its
    further lines are indented here. An empty flow mapping is filled."""
    mapping = mapping.home or mapping
    if mapping.kind != "map":
        raise ValueError("a mapping is expected there")
    if mapping.flow:
        json_like = root.text.lstrip().startswith("{")
        written = f'"{key}": {value}' if json_like else f"{key}: {value}"
        if not mapping.pairs:
            return [Splice(root, mapping.start + 1, mapping.start + 1, (written,))]
        last = mapping.pairs[-1]
        sep = ", "
        if len(mapping.pairs) > 1:
            between = root.text[content_end(root, mapping.pairs[-2][1]) : last[0].start]
            sep = between if _SEPARATOR.match(between) else sep
        at = content_end(root, last[1])
        return [Splice(root, at, at, (sep + written,))]
    anchor = next((v for k, v in mapping.pairs if k.value == after), mapping.pairs[-1][1])
    key_node = next(k for k, v in mapping.pairs if v is anchor)
    indent = key_indent(root, mapping)
    first, *rest = value.split("\n")
    lines = [f"{indent}{key}:{' ' if first else ''}{first}", *(f"{indent}{line}" for line in rest)]
    return [after_line(root, max(content_end(root, anchor), key_node.end + 1), lines)]


def cut_pair(root: Layer, mapping: Node, key: str) -> list[Splice]:
    """Take a pair out of the mapping that holds it (which may be one merged in)."""
    mapping = mapping.home or mapping
    for index, (k, v) in enumerate(mapping.pairs):
        if k.value != key:
            continue
        if mapping.flow:
            start, end = k.start, content_end(root, v)
            if index:
                start = content_end(root, mapping.pairs[index - 1][1])
            elif len(mapping.pairs) > 1:
                end = mapping.pairs[1][0].start
            return [Splice(root, start, end)]
        end = max(content_end(root, v), k.end + 1)
        line = root.text[line_start(root.text, k.start) : k.start]
        if line.strip():  # the first key of a list item shares its line with the dash
            if len(mapping.pairs) == 1:
                raise ValueError("the only key of a list item cannot be removed alone")
            nxt = mapping.pairs[1][0].start if index == 0 else k.start
            return [Splice(root, k.start, nxt)]
        return [cut_lines(root, k.start, end)]
    for k, v in mapping.pairs:
        if k.value == "<<":
            for source in v.items if v.kind == "seq" else [v]:
                if source.pair(key):
                    return cut_pair(root, source, key)
    return []


def own_mapping(mapping: Node, key: str) -> Node:
    """The mapping that a key really stands in: this one, or one merged into it."""
    if mapping.own(key):
        return mapping.home or mapping
    for k, v in mapping.pairs:
        if k.value == "<<":
            for source in v.items if v.kind == "seq" else [v]:
                if source.pair(key):
                    return own_mapping(source, key)
    return mapping.home or mapping
