"""Which words of an argument list are flags and which are their values.

The answer depends on the release's parser, so it is asked of a ``FlagTable``. Where none is at hand the
shape of the words decides: a value is a word that does not start with ``-``, or a negative number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

_NEGATIVE_NUMBER = lazy(r"^-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$")

# Expansions that stand for any number of words, never for one value.
_WORD_LIST = lazy(r"\$(?:[@*]|\{[@*][^{}]*\}|\{\w+\[[@*]\][^{}]*\})\Z")

_TRUTHS = ("true", "false")

ARITIES = ("switch", "one", "many", "optional")


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """One option of a release's parser."""

    dest: str  # SGLang's field: "tp_size"
    name: str  # canonical long option: "--tp-size"
    aliases: tuple[str, ...] = ()  # every accepted spelling, the canonical one included or not
    arity: str = "one"  # one of ARITIES


class FlagLike(Protocol):
    """What launch/ reads of an option; ``FlagSpec`` is the plainest one."""

    @property
    def dest(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def arity(self) -> str: ...


class FlagTable(Protocol):
    """What launch/ needs to know of a release's options."""

    def resolve(self, name: str) -> FlagLike | None:
        """The option that ``name`` (exact, or an abbreviation argparse accepts) means; else None."""


class NoFlagTable:
    """Knows no option; words are then told apart by their shape."""

    def resolve(self, name: str) -> FlagLike | None:
        return None


def default_table() -> FlagTable:
    """The union of all known releases' options, or a table that knows none."""
    try:
        from mtpdoctor.sglang.flags import flag_table
    except ImportError:
        return NoFlagTable()
    table: FlagTable = flag_table(None)
    return table


def flag_dest(name: str, table: FlagTable) -> str:
    """SGLang's field for a flag as written; for an unknown flag its own name with underscores."""
    spec = table.resolve(name)
    return spec.dest if spec else name.lstrip("-").replace("-", "_")


def looks_like_value(word: str) -> bool:
    """argparse's own view of a word: not an option string, a negative number, or text with a space."""
    if not word.startswith("-") or word == "-":
        return True
    return bool(_NEGATIVE_NUMBER.match(word)) or (" " in word and not re.match(r"--[\w-]+=", word))


@dataclass(frozen=True, slots=True)
class UseSpan:
    """A flag's place in an argument list: word ``at``, values at ``at + 1 .. at + count``.

    ``inline`` is the value of ``--flag=value``; it is then the only one.
    """

    at: int
    name: str
    dest: str
    count: int
    inline: str | None = None

    @property
    def end(self) -> int:
        return self.at + self.count + 1


def find_uses(words: Sequence[str], table: FlagTable) -> tuple[list[UseSpan], list[int]]:
    """The uses of flags in ``words``, in order, and the indices of the words that belong to none."""
    uses: list[UseSpan] = []
    loose: list[int] = []
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            loose.extend(range(i + 1, len(words)))
            break
        if looks_like_value(word) or _WORD_LIST.match(word):
            loose.append(i)
            i += 1
            continue
        name, equals, inline = word.partition("=")
        spec = table.resolve(name)
        dest = spec.dest if spec else name.lstrip("-").replace("-", "_")
        if equals:
            uses.append(UseSpan(i, name, dest, 0, inline))
            i += 1
            continue
        if (
            spec is not None
            and spec.arity == "switch"
            and words[i + 1 : i + 2]
            and words[i + 1].lower() in _TRUTHS
        ):
            uses.append(
                UseSpan(i, name, dest, 1)
            )  # "--trust-remote-code false": the parser refuses it, but it is meant so
            i += 2
            continue
        limit = {"switch": 0, "one": 1, "optional": 1}.get(spec.arity if spec else "many", len(words))
        count = 0
        while count < limit and i + 1 + count < len(words):
            following = words[i + 1 + count]
            if not looks_like_value(following) or _WORD_LIST.match(following):
                break
            count += 1
        uses.append(UseSpan(i, name, dest, count))
        i += count + 1
    return uses, loose
