"""A shell tokenizer that keeps the exact place of every word. Nothing is ever run or expanded here.

Grammar: POSIX Shell Command Language 2.2-2.3 and the bash manual (``$'..'``, arrays, ``<<<``, ``&>``).
"""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

_ASSIGN = lazy(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=")
BLANKS = " \t\r\n\f\v"  # other white space, such as a pasted no-break space, belongs to words
_PLAIN = lazy(r"[^ \t\r\n\f\v\\'\"`$;&|()<>]+")
_DOUBLE_PLAIN = lazy(r"[^\"\\`$]+")
_PARAMETER = lazy(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_OPERATOR = lazy(r";;&|;;|;&|;|&&|&|\|\||\|&|\||\(|\)")
_REDIRECT = lazy(r"&>>|&>|<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_CONTINUATION = lazy(r"\\\r?\n")
_SIMPLE_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
    "E": "\x1b",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_ANSI_ESCAPE = lazy(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.S
)


class ShellSyntaxError(Exception):
    """Text that no shell would accept; ``offset`` is where the open construct began."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word. ``kind``: ``text`` (quotes gone), ``var`` (a parameter expansion as written),
    ``run`` (a command or arithmetic substitution, never looked into)."""

    kind: str
    text: str
    quote: str  # "" unquoted, "'" single, '"' double


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word and its place. ``items`` are the elements of an array assignment ``NAME=(...)``."""

    start: int
    end: int
    parts: tuple[Part, ...]
    items: tuple[Lexeme, ...] | None = None
    body: int = 0  # of an array: the place just after "("

    @property
    def literal(self) -> str | None:
        """The value where nothing needs expanding; else None."""
        if any(p.kind != "text" for p in self.parts):
            return None
        return "".join(p.text for p in self.parts)

    @property
    def bare(self) -> str:
        """The leading unquoted text: where reserved words and assignments are looked for."""
        return (
            self.parts[0].text
            if self.parts and self.parts[0].kind == "text" and not self.parts[0].quote
            else ""
        )


@dataclass(frozen=True, slots=True)
class Token:
    """``kind``: word, op, newline, redirect (with its target), comment, heredoc."""

    kind: str
    start: int
    end: int
    text: str = ""
    word: Lexeme | None = None


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.heredocs: list[tuple[str, bool]] = []

    def run(self, at: int) -> list[Token]:
        text, n = self.text, len(self.text)
        while at < n:
            c = text[at]
            if c == "\n":
                self.tokens.append(Token("newline", at, at + 1))
                at = self.skip_heredocs(at + 1) if self.heredocs else at + 1
            elif c in " \t\r\f\v":
                at += 1
            elif m := _CONTINUATION.match(text, at):
                at = m.end()
            elif c == "#":
                end = text.find("\n", at)
                end = n if end < 0 else end
                self.tokens.append(Token("comment", at, end))
                at = end
            elif (m := _REDIRECT.match(text, at)) and not text.startswith(("<(", ">("), at):
                at = self.redirect(at, m)
            elif m := _OPERATOR.match(text, at):
                self.tokens.append(Token("op", at, m.end(), m[0]))
                at = m.end()
            else:
                word = self.word(at)
                raw = text[word.start : word.end]
                if (
                    raw.isdigit()
                    and text[word.end : word.end + 1] in ("<", ">")
                    and text[word.end : word.end + 1]
                ):
                    m = _REDIRECT.match(text, word.end)
                    assert m is not None
                    at = self.redirect(at, m)
                else:
                    self.tokens.append(Token("word", word.start, word.end, raw, word))
                    at = word.end
        return self.tokens

    def redirect(self, at: int, m: re.Match[str]) -> int:
        here = m.end()
        while here < len(self.text) and (self.text[here] in " \t" or _CONTINUATION.match(self.text, here)):
            cont = _CONTINUATION.match(self.text, here)
            here = cont.end() if cont else here + 1
        if here >= len(self.text) or self.text[here] in "\n;|&)":
            if self.text[here : here + 1] == "&" and m[0] in (">", "<"):
                here += 1
            else:
                self.tokens.append(Token("redirect", at, m.end(), m[0]))
                return m.end()
        word = self.word(here)
        if word.end == here:  # an operator follows at once: not a target
            self.tokens.append(Token("redirect", at, m.end(), m[0]))
            return m.end()
        if m[0] in ("<<", "<<-"):
            self.heredocs.append((word.literal or self.text[word.start : word.end], m[0] == "<<-"))
        self.tokens.append(Token("redirect", at, word.end, m[0], word))
        return word.end

    def skip_heredocs(self, at: int) -> int:
        text = self.text
        for delimiter, tabs in self.heredocs:
            start = at
            while at < len(text):
                end = text.find("\n", at)
                line, nxt = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
                line = line.rstrip("\r")
                at = nxt
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
            self.tokens.append(Token("heredoc", start, at))
        self.heredocs = []
        return at

    def word(self, at: int) -> Lexeme:
        text, n, start = self.text, len(self.text), at
        parts: list[Part] = []

        def add(kind: str, piece: str, quote: str = "") -> None:
            last = parts[-1] if parts else None
            if last and kind == last.kind == "text" and last.quote == quote:
                parts[-1] = Part("text", last.text + piece, quote)
            else:
                parts.append(Part(kind, piece, quote))

        while at < n:
            c = text[at]
            if m := _PLAIN.match(text, at):
                add("text", m[0])
                at = m.end()
            elif c == "\\":
                if m := _CONTINUATION.match(text, at):
                    if not parts or text[m.end() : m.end() + 1] in ("", " ", "\t", "\n", "\r"):
                        break
                    at = m.end()
                    continue
                if at + 1 < n:
                    add("text", text[at + 1], "\\")
                at += 2
            elif c == "'":
                end = text.find("'", at + 1)
                if end < 0:
                    raise ShellSyntaxError("a single quote is opened here and never closed", at)
                add("text", text[at + 1 : end], "'")
                at = end + 1
            elif c == '"':
                at = self.double(at, add)
            elif text.startswith("$'", at):
                at = self.ansi(at, add)
            elif text.startswith('$"', at):
                at = self.double(at + 1, add)
            elif c in "$`":
                at = self.dollar(at, add, "")
            elif c in "<>" and text.startswith("(", at + 1):
                end = self.parens(at + 1)
                add("run", text[at:end])
                at = end
            elif c == "(" and len(parts) == 1 and not parts[0].quote and _ASSIGN.fullmatch(parts[0].text):
                return self.array(start, at, tuple(parts))
            else:
                break
        return Lexeme(start, min(at, n), tuple(parts))

    def array(self, start: int, paren: int, parts: tuple[Part, ...]) -> Lexeme:
        items: list[Lexeme] = []
        at, text = paren + 1, self.text
        while at < len(text):
            c = text[at]
            if c == ")":
                return Lexeme(start, at + 1, parts, tuple(items), paren + 1)
            if c == "#":
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif m := _CONTINUATION.match(text, at):
                at = m.end()
            elif c in BLANKS:
                at += 1
            else:
                item = self.word(at)
                if item.end == at:
                    raise ShellSyntaxError(f"unexpected {c!r} in an array", at)
                items.append(item)
                at = item.end
        raise ShellSyntaxError("an array's parenthesis is opened here and never closed", paren)

    def double(self, at: int, add: object) -> int:
        text, opened = self.text, at
        assert callable(add)
        add("text", "", '"')
        at += 1
        while at < len(text):
            c = text[at]
            if c == '"':
                return at + 1
            if m := _DOUBLE_PLAIN.match(text, at):
                add("text", m[0], '"')
                at = m.end()
            elif c == "\\":
                if m := _CONTINUATION.match(text, at):
                    at = m.end()
                    continue
                nxt = text[at + 1 : at + 2]
                add("text", nxt if nxt and nxt in '$`"\\' else "\\" + nxt, '"')
                at += 2
            else:
                at = self.dollar(at, add, '"')
        raise ShellSyntaxError("a double quote is opened here and never closed", opened)

    def ansi(self, at: int, add: object) -> int:
        assert callable(add)
        text, end = self.text, at + 2
        while end < len(text) and text[end] != "'":
            end += 2 if text[end] == "\\" else 1
        if end >= len(text):
            raise ShellSyntaxError("a $' quote is opened here and never closed", at)
        add("text", _ANSI_ESCAPE.sub(_ansi_value, text[at + 2 : end]), "'")
        return end + 1

    def dollar(self, at: int, add: object, quote: str) -> int:
        assert callable(add)
        text = self.text
        if text[at] == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise ShellSyntaxError("a backquote is opened here and never closed", at)
            add("run", text[at : end + 1], quote)
            return end + 1
        if text.startswith("$(", at):
            end = self.parens(at + 1)
            add("run", text[at:end], quote)
            return end
        if text.startswith("${", at):
            end = self.braces(at + 1)
            add("var", text[at:end], quote)
            return end
        if m := _PARAMETER.match(text, at):
            add("var", m[0], quote)
            return m.end()
        add("text", "$", quote)
        return at + 1

    def parens(self, at: int) -> int:
        return self._nested(at, "(", ")", "a substitution $( is opened here and never closed")

    def braces(self, at: int) -> int:
        return self._nested(at, "{", "}", "an expansion ${ is opened here and never closed")

    def _nested(self, at: int, opener: str, closer: str, message: str) -> int:
        text, opened, depth = self.text, at, 0
        while at < len(text):
            c = text[at]
            if c == "\\":
                at += 2
                continue
            if c == "'" and opener == "(":
                end = text.find("'", at + 1)
                if end < 0:
                    break
                at = end + 1
                continue
            if c == '"':
                at = self.double(at, lambda *_: None)
                continue
            if c == opener:
                depth += 1
            elif c == closer:
                depth -= 1
                if not depth:
                    return at + 1
            at += 1
        raise ShellSyntaxError(message, max(opened - 1, 0))


def _ansi_value(m: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if m[group]:
            code = int(m[group], base)
            return chr(code) if code < 0x110000 else m[0]
    return _SIMPLE_ESCAPES.get(m[5], m[0])


def tokenize(text: str, start: int = 0) -> list[Token]:
    """Tokens of shell text from ``start`` on. Raises ShellSyntaxError for an unclosed construct."""
    return _Lexer(text).run(start)


def fields(value: str) -> list[str]:
    """The words that an unquoted expansion with this value becomes."""
    return [f for f in re.split(r"[ \t\r\n]+", value) if f]


def assignment(word: Lexeme) -> tuple[str, str, int] | None:
    """(name, ``=`` or ``+=``, length of both) when the word assigns a variable; else None."""
    m = _ASSIGN.match(word.bare)
    if not m or m[1]:
        return None
    op = "+=" if m[0].endswith("+=") else "="
    return m[0][: -len(op)], op, len(m[0])
