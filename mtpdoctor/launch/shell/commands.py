"""Simple commands of shell text, in order."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.launch.shell.lexer import Lexeme, Token, assignment
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

# fmt: off
_RESERVED = frozenset((
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "esac", "{", "}", "!", "time",
    "coproc",
))
# fmt: on
# What a pasted terminal session has in front of its commands.
_PROMPT = lazy(r"[$%]|\++|❯|[\w.-]+@[\w.-]+(?::[^\s'\"]*)?[$#%]")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """Assignments in front, then words. Redirections are not part of either."""

    assignments: tuple[Lexeme, ...]
    words: tuple[Lexeme, ...]
    start: int  # of the first assignment or word
    end: int


def simple_commands(tokens: list[Token]) -> Iterator[SimpleCommand]:
    """The commands of a script, whatever control structure they stand in."""
    current: list[Lexeme] = []

    def flush() -> Iterator[SimpleCommand]:
        if current:
            n = 0
            while n < len(current) and assignment(current[n]):
                n += 1
            yield SimpleCommand(tuple(current[:n]), tuple(current[n:]), current[0].start, current[-1].end)
            current.clear()

    for token in tokens:
        if token.kind == "word" and token.word:
            if not current and _PROMPT.fullmatch(token.text):
                continue
            if not current and token.word.literal in _RESERVED and token.word.bare == token.word.literal:
                continue
            current.append(token.word)
        elif token.kind in ("op", "newline"):
            yield from flush()
    yield from flush()
