"""Writing into shell text: quoting, inserting and removing words, the text inside quotes as a layer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mtpdoctor.launch.layers import Layer, Raw, Splice
from mtpdoctor.launch.shell.lexer import tokenize
from mtpdoctor.launch.words import Word
from mtpdoctor.patterns import lazy

_BLANK = lazy(r"(?:[ \t\r\n\f\v]|\\\r?\n)+\Z")
_LIVE = lazy(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_SAFE_DOUBLE = lazy(r'[^"\\$`!]*\Z')


def quote(value: str, raw: str = "", context: str = "") -> str:
    """``value`` as one shell word, in the quotes of ``raw`` where these can hold it.

    A variable reference stays live where the same reference stands in ``context`` (the text around):
    the value was then read from there.
    """
    live = _LIVE.findall(value)
    literal = len(raw) > 1 and raw[0] == raw[-1] == "'" and all(ref in raw for ref in live)
    if live and not literal and all(ref in context for ref in live):
        return '"' + re.sub(r'(["\\`])', r"\\\1", value) + '"'
    if len(raw) > 1 and raw[0] == raw[-1] == '"' and '"' not in raw[1:-1] and _SAFE_DOUBLE.match(value):
        return f'"{value}"'
    if len(raw) > 1 and raw[0] == raw[-1] == "'" and "'" not in raw[1:-1] and "'" not in value:
        return f"'{value}'"
    return shlex.quote(value)


class ShellHost:
    """Words of shell text, in a command or in an array."""

    __slots__ = ("layer",)

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def raw(self, word: Word) -> str:
        return self.layer.text[word.start : word.end]

    def quoted(self, value: str, raw: str = "") -> str:
        return quote(value, raw, self.layer.text)

    def replace(self, word: Word, value: str) -> list[Splice]:
        raw = self.raw(word)
        flag = re.match(r"(--?[\w-]+=|[A-Za-z_]\w*=)", raw)
        if flag and value.startswith(flag[0]):
            rest = self.quoted(value[flag.end() :], raw[flag.end() :])
            return [Splice(self.layer, word.start + flag.end(), word.end, (rest,))]
        return [Splice(self.layer, word.start, word.end, (self.quoted(value, raw),))]

    def separator(self, word: Word | None) -> Raw | str:
        """The blank space before a word, as it stands in the document."""
        if word is None or word.host is not self:
            return " "
        m = _BLANK.search(self.layer.text, 0, word.start)
        if not m or m.end() != word.start or m.start() == 0:
            return " "
        return Raw(self.layer.source(m.start(), m.end()), m[0])

    def insert_after(
        self, word: Word, groups: Sequence[Sequence[str]], like: Word | None = None
    ) -> list[Splice]:
        sep = self.separator(like)
        at = word.end
        plain = sep if isinstance(sep, str) else sep.plain
        own_line = "\n" in plain and "\\" not in plain  # in an array: stay behind the line's comment
        if own_line and (m := re.compile(r"[ \t]*#[^\r\n]*").match(self.layer.text, at)):
            at = m.end()
        pieces: list[str | Raw] = []
        for group in groups:
            pieces += (sep, " ".join(self.quoted(v) for v in group))
        return [Splice(self.layer, at, at, tuple(pieces))]

    def remove(self, words: Sequence[Word]) -> list[Splice]:
        text, start, end = self.layer.text, words[0].start, words[-1].end
        m = _BLANK.search(text, 0, start)
        before = m[0] if m and m.end() == start else ""
        own_line = "\n" in before and "\\" not in before
        line = text[text.rfind("\n", 0, start - len(before)) + 1 : start - len(before)]
        after = re.compile(r"[ \t]*").match(text, end)
        assert after is not None
        tail = text[after.end() : after.end() + 1]
        if not before or (own_line and (tail == "#" or "#" in line)):
            # nothing before to take along, or the line before ends in a comment that must not run on
            stop = after.end()
            if own_line and tail in ("", "\n", "\r"):
                return [Splice(self.layer, start - len(before), end)]
            return [Splice(self.layer, start, stop)]
        return [Splice(self.layer, start - len(before), end)]


class SplitHost(ShellHost):
    """Words that the shell makes by splitting an unquoted variable: no quoting is possible there."""

    __slots__ = ()

    def quoted(self, value: str, raw: str = "") -> str:
        if not value or re.search(r"[\s*?\[\]]", value):
            raise ValueError(f"{value!r} cannot be written into a variable that the shell splits into words")
        return value


def _decode(text: str, start: int, end: int) -> tuple[list[str], list[int], list[int], list[str]]:
    """Characters of a quoted word with their places and quotes. Expansions and, inside double quotes, line
    continuations stay as written: the inner shell treats the latter alike."""
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    contexts: list[str] = []

    def put(piece: str, a: int, b: int, context: str) -> None:
        if b - a == len(piece):
            for k, c in enumerate(piece):
                chars.append(c)
                starts.append(a + k)
                ends.append(a + k + 1)
                contexts.append(context)
        else:
            chars.append(piece)
            starts.append(a)
            ends.append(b)
            contexts.append(context)

    at, context = start, ""
    while at < end:
        c = text[at]
        if context == "'":
            if c == "'":
                context = ""
            else:
                put(c, at, at + 1, "'")
            at += 1
        elif c == "\\" and at + 1 < end:
            nxt = text[at + 1]
            if context == '"' and nxt not in '$`"\\':
                put("\\" + nxt, at, at + 2, context)
            elif nxt == "\n" or text.startswith("\\\r\n", at):
                put(text[at : at + 2], at, at + 2, context) if context else None
            else:
                put(nxt, at, at + 2, context)
            at += 2
        elif c == '"':
            context = "" if context else '"'
            at += 1
        elif c == "'" and not context:
            context = "'"
            at += 1
        else:
            put(c, at, at + 1, context)
            at += 1
    return chars, starts, ends, contexts


def inner_layer(layer: Layer, start: int, end: int) -> Layer | None:
    """The text that a quoted word (or the rest of one) means, for reading it as shell in turn.

    None for words whose quoting has no character-by-character source (``$'..'``).
    """
    raw = layer.text[start:end]
    if "$'" in raw and not raw.startswith(("'", '"')):
        return None
    chars, starts, ends, contexts = _decode(layer.text, start, end)

    def escape(text: str, at: int) -> str:
        context = contexts[min(at, len(contexts) - 1)] if contexts else '"'
        if context == "'":
            return text.replace("'", "'\\''")
        if context == '"':
            return re.sub(r'(["\\$`])', r"\\\1", text)
        return re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)

    def whole(text: str) -> str:
        if '"' not in raw[:1] or ("$" not in raw and "`" not in raw):
            return shlex.quote(text)
        return '"' + re.sub(r'(["\\`])', r"\\\1", text) + '"'

    rewritable = raw[:1] == "'" or not ("$" in raw or "`" in raw) or (raw[:1] == '"' and "\\" not in raw)
    return Layer("".join(chars), layer, start, end, starts, ends, escape, whole if rewritable else None)


def parses(text: str) -> bool:
    from mtpdoctor.launch.shell.lexer import ShellSyntaxError

    try:
        tokenize(text)
    except ShellSyntaxError:
        return False
    return True
