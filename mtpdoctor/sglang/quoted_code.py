"""What a pattern over tracebacks asks of SGLang's source: files, functions, quoted lines.

A traceback names files and functions and quotes lines of code as they stand in the source. So a release in
which such a pattern can match has a file of that name, with that function and that line in it. What follows
the exception's name is a message, which the statements of the source are held against (see ``verify``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import regex as engine

_ANYTHING = re.compile(r"\[\\s\\S\](?:[*+]|\{\d*,?\d*\})\??")
_LEADING = re.compile(r"^(?:\(\?:(?:\.|\[\^\\n\])\*\\n\)\{\d*,?\d*\}\??|(?:\.|\[\^\\n\]|\\s)[*+]\??)+")
_PATH = re.compile(r"^(?P<path>.*?\\\.py)(?P<rest>.*)$")
_FUNCTION = re.compile(r"\bin (?P<name>(?:\\w[*+]|\\b|[\w?|:()]|\(\?:)+)$")
_MESSAGE = re.compile(r"(?:Error|Exception)\b")
_WORD = re.compile(r"[A-Za-z_]{4,}")
_TIMEOUT = 5.0  # seconds for one file


@dataclass(frozen=True, slots=True)
class Quote:
    """Regexes of a file's path, a function in it and a line of that function; "" where any will do."""

    path: str = ""
    function: str = ""
    text: str = ""

    def in_file(self, path: str, text: str) -> bool:
        """Whether this file (its path, its text) has it."""
        if self.path and not engine.search(self.path, f"/{path}"):
            return False
        if any(word not in text for word in (_word(self.function), _word(self.text))):
            return False
        if not self.function:
            return not self.text or _found(self.text, text)
        bodies = _bodies(self.function, text)
        return any(not self.text or _found(self.text, body) for body in bodies)


def _bodies(function: str, text: str) -> Iterator[str]:
    """What stands from the definition of each such function to the next line that is indented no further."""
    for start in engine.finditer(rf"(?m)^([ \t]*)(?:async )?def (?:{function})[ \t]*\(", text):
        end = re.compile(rf"(?m)^[ \t]{{0,{len(start[1])}}}(?:def|async def|class|@)\b").search(
            text, start.end()
        )
        yield text[start.end() : end.start() if end else len(text)]


def _found(pattern: str, text: str) -> bool:
    try:
        return engine.search(pattern, text, timeout=_TIMEOUT) is not None
    except TimeoutError:
        return False


@dataclass(frozen=True, slots=True)
class Asked:
    """``quotes``: all must stand in a release's source; ``message``: the regex of the exception's message, or ""."""

    quotes: tuple[Quote, ...]
    message: str = ""


def asked(pattern: str) -> Asked:
    """What a traceback pattern (a regex) asks of the source. Empty where it names no code at all."""
    quotes: list[Quote] = []
    path = function = message = ""
    for section in _sections(pattern):
        if _MESSAGE.search(section):
            message = section if ": " in section else ""
            continue
        in_path = _PATH.match(section)
        named = _FUNCTION.search(section)
        if not all(_compiles(m[1]) for m in (in_path, named) if m):
            continue  # one of several, in a group: none of them is sure
        if in_path:
            path, function, section = in_path["path"], "", in_path["rest"]
            quotes.append(Quote(path))
            named = _FUNCTION.search(section)
        if named:
            function = named["name"].removesuffix(r"\b")
            quotes.append(Quote(path, function))
        elif not in_path:
            quotes.append(Quote(path, function, section))
    return Asked(_strictest(quotes), message if _compiles(message) else "")


def _strictest(quotes: list[Quote]) -> tuple[Quote, ...]:
    """Without those that another one of the list asks for too."""
    every = list(dict.fromkeys(quotes))

    def covered(one: Quote, other: Quote) -> bool:
        pairs = ((one.path, other.path), (one.function, other.function), (one.text, other.text))
        return one != other and all(mine in ("", its) for mine, its in pairs)

    return tuple(one for one in every if not any(covered(one, other) for other in every))


def _sections(pattern: str) -> Iterator[str]:
    """The parts between "anything" and line breaks; a part that is no regex of its own is left out."""
    for part in _ANYTHING.split(pattern):
        for line in _lines(part):
            bare = _LEADING.sub("", line).strip()
            if bare and _compiles(bare) and _WORD.search(bare):
                yield bare


def _lines(part: str) -> Iterator[str]:
    """Split at line breaks that stand outside of groups and classes."""
    depth, start, at = 0, 0, 0
    while at < len(part):
        two = part[at : at + 2]
        if two == r"\n" and depth == 0:
            yield part[start:at]
            start = at = at + 2
            continue
        if two[0] == "\\":
            at += 2
            continue
        if two[0] == "[":
            end = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]").match(part, at)
            at = end.end() if end else at + 1
            continue
        depth += {"(": 1, ")": -1}.get(two[0], 0)
        at += 1
    yield part[start:]


def _word(text: str) -> str:
    """The longest word that every match has; "" where alternatives or options leave none sure."""
    if any(sign in text for sign in "|?"):
        return ""
    plain = re.sub(r"\\[A-Za-z]|\[[^\]]*\]", " ", text)
    return max(_WORD.findall(plain), key=len, default="")


def _compiles(text: str) -> bool:
    try:
        engine.compile(text)
    except engine.error:
        return False
    return bool(text)
