"""The text of a YAML scalar as a layer, and scalars as they are written. YAML 1.1, as PyYAML reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from mtpdoctor.launch.layers import Layer
from mtpdoctor.launch.yamltext.nodes import Node
from mtpdoctor.patterns import lazy

_BREAK = lazy(r"[ \t]*(?:\r?\n[ \t]*)+")
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_HEADER = lazy(r"([|>])([+-]?)([1-9]?)([+-]?)[^\n]*(?:\n|\Z)")
_PLAIN_START = lazy(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s,\[\]{}])")
_NOT_PLAIN = lazy(r":(?:\s|\Z)|\s#|[\n\r\t]|\s\Z")


class _Map:
    """Characters with their places, as they are collected."""

    def __init__(self) -> None:
        self.chars: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def put(self, piece: str, start: int, end: int) -> None:
        same = len(piece) == end - start
        for k, c in enumerate(piece):
            self.chars.append(c)
            self.starts.append(start + k if same else start if k == 0 else end)
            self.ends.append(start + k + 1 if same else end)


def scalar_layer(root: Layer, node: Node) -> Layer | None:
    """The scalar's text with the way back into the document; None where there is no such way."""
    if node.home is not None:
        node = node.home
    text = root.text
    if node.style in ("|", ">"):
        return _block_layer(root, node)
    collected = _Map()
    if node.style == '"':
        _double(text, node.start + 1, node.end - 1, collected)
    else:
        inner = (node.start + 1, node.end - 1) if node.style == "'" else (node.start, node.end)
        _folded_flow(text, *inner, node.style, collected)
    if "".join(collected.chars) != node.value:
        return None
    escape: Callable[[str, int], str] = {
        "'": lambda new, at: new.replace("'", "''"),
        '"': lambda new, at: double_quoted(new)[1:-1],
    }.get(node.style, lambda new, at: new)
    whole = single_quoted if node.style == "'" else double_quoted
    return Layer(node.value, root, node.start, node.end, collected.starts, collected.ends, escape, whole)


def _folded_flow(text: str, start: int, end: int, style: str, out: _Map) -> None:
    at = start
    while at < end:
        if m := _BREAK.match(text, at, end):
            breaks = m[0].count("\n")
            out.put(" " if breaks == 1 else "\n" * (breaks - 1), at, m.end())
            at = m.end()
        elif style == "'" and text.startswith("''", at):
            out.put("'", at, at + 2)
            at += 2
        else:
            out.put(text[at], at, at + 1)
            at += 1


def _double(text: str, start: int, end: int, out: _Map) -> None:
    at = start
    while at < end:
        if text[at] == "\\":
            if m := re.compile(r"\\\r?\n[ \t]*").match(text, at, end):
                at = m.end()
            elif m := re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))").match(
                text, at
            ):
                out.put(chr(int(m[1] or m[2] or m[3], 16)), at, m.end())
                at = m.end()
            else:
                out.put(_ESCAPES.get(text[at + 1], ""), at, at + 2)
                at += 2
        elif m := _BREAK.match(text, at, end):
            breaks = m[0].count("\n")
            out.put(" " if breaks == 1 else "\n" * (breaks - 1), at, m.end())
            at = m.end()
        else:
            out.put(text[at], at, at + 1)
            at += 1


def _block_layer(root: Layer, node: Node) -> Layer | None:
    text = root.text
    header = _HEADER.match(text, node.start)
    if header is None:
        return None
    lines: list[tuple[int, int, int]] = []  # start, end of content, end with the line break
    at = header.end()
    while at < len(text):
        stop = text.find("\n", at)
        after = len(text) if stop < 0 else stop + 1
        content = len(text) if stop < 0 else stop
        if content > at and text[content - 1] == "\r":
            content -= 1
        lines.append((at, content, after))
        at = after
        if at >= node.end and text[at : at + 1] not in (" ", "\n", "\r"):
            break
    widths = [len(t) - len(t.lstrip(" ")) for a, b, _ in lines if (t := text[a:b]).strip(" ")]
    candidates = range(max(widths, default=0) + 1) if header[3] else widths[:1]
    for indent in reversed(list(candidates)):
        collected = _block(text, lines, indent, node.style == ">")
        if "".join(collected.chars[: len(node.value)]) == node.value:
            return _block_made(root, node, header, indent, collected)
    return None


def _block(text: str, lines: list[tuple[int, int, int]], indent: int, folded: bool) -> _Map:
    out = _Map()
    pending: tuple[int, int] | None = None  # the break of the last text line
    blanks: list[tuple[int, int]] = []
    was_flush = True
    for start, end, after in lines:
        line = text[start:end]
        if not line.strip(" ") and len(line) <= indent:
            blanks.append((start, after))
            continue
        if len(line) - len(line.lstrip(" ")) < indent:
            break
        flush = line[indent : indent + 1] not in (" ", "\t")
        body = start + indent
        if pending is not None:
            # Each character's source reaches up to the next one's, indentation included.
            breaks = [pending, *blanks]
            if folded and was_flush and flush:
                breaks = [(pending[0], blanks[0][1]), *blanks[1:]] if blanks else breaks
            for k, (a, _) in enumerate(breaks):
                stop = breaks[k + 1][0] if k + 1 < len(breaks) else body
                out.put(" " if folded and was_flush and flush and not blanks else "\n", a, stop)
        else:
            for a, b in blanks:
                out.put("\n", a, b)
        blanks = []
        out.put(text[body:end], body, end)
        pending, was_flush = (end, after), flush
    if pending is not None and pending[1] > pending[0]:
        out.put("\n", *pending)
    for a, b in blanks:
        if b > a and text[b - 1 : b] == "\n":
            out.put("\n", a, b)
    return out


def _block_made(root: Layer, node: Node, header: re.Match[str], indent: int, collected: _Map) -> Layer:
    pad = " " * indent
    newline = "\r\n" if header[0].endswith("\r\n") else "\n"
    size = len(node.value)
    starts, ends = collected.starts[:size], collected.ends[:size]

    def escape(new: str, at: int) -> str:
        doubled = newline * 2 if node.style == ">" else newline
        return new.replace("\n", doubled + pad)

    def whole(new: str) -> str:
        chomp = (header[2] or header[4]) if new.endswith("\n") else "-"
        body = newline.join(pad + line if line else "" for line in new.rstrip("\n").split("\n"))
        return f"|{chomp}{newline}{body}{newline}"

    end = ends[-1] if ends else node.end
    return Layer(node.value, root, node.start, end, starts, ends, escape, whole)


def dollar_layer(layer: Layer) -> Layer:
    """Compose's view of a text: ``$$`` is a dollar sign, a written ``$`` needs doubling."""
    if "$$" not in layer.text:
        chars = list(layer.text)
        places = list(range(len(chars) + 1))
        starts, ends = places[:-1], places[1:]
    else:
        out = _Map()
        for m in re.finditer(r"\$\$|[\s\S]", layer.text):
            out.put("$" if m[0] == "$$" else m[0], m.start(), m.end())
        chars, starts, ends = out.chars, out.starts, out.ends
    end = len(layer.text)

    def escape(new: str, at: int) -> str:
        return new.replace("$", "$$")

    return Layer("".join(chars), layer, 0, end, starts, ends, escape, None)


def double_quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f").replace("\x85", "\\N")


def single_quoted(text: str) -> str:
    if re.search(r"[\n\r\t\x00-\x1f]", text):
        return double_quoted(text)
    return "'" + text.replace("'", "''") + "'"


def plain_is(text: str, flow: bool, *, tags: tuple[str, ...] = ("str",)) -> bool:
    """Whether ``text`` may stand unquoted and is then read as itself, with one of the tags."""
    from yaml.nodes import ScalarNode
    from yaml.resolver import Resolver

    if not text or not _PLAIN_START.match(text) or _NOT_PLAIN.search(text) or not text.isprintable():
        return False
    if text.startswith(("---", "...")) and text[3:4] in ("", " "):
        return False
    if flow and re.search(r"[,\[\]{}:?]", text):
        return False
    tag: str = Resolver().resolve(ScalarNode, text, (True, False))
    kind = tag.rpartition(":")[2]
    if kind == "int" and not re.fullmatch(r"-?[1-9]\d*|0", text):
        return False  # octal, hexadecimal, 1_000, base 60: another number's spelling once it is read
    if kind == "float" and not re.fullmatch(r"-?(?:[1-9]\d*|0)\.\d*[1-9]|-?(?:[1-9]\d*|0)\.0", text):
        return False
    return kind in tags


def write_scalar(text: str, style: str, flow: bool, *, tags: tuple[str, ...] = ("str",)) -> str:
    """A scalar in the style of its neighbour where that can hold it."""
    if style == '"':
        return double_quoted(text)
    if style == "'":
        return single_quoted(text)
    if plain_is(text, flow, tags=tags):
        return text
    return single_quoted(text) if '"' in text and "'" not in text else double_quoted(text)
