r"""The literal that every match of a regex contains.

A log is searched for the literals of all rules in one pass over raw bytes, so a literal should come
out of every transport unchanged: JSON-escaped transports rewrite quotes, backslashes, ``<>&`` and
non-ASCII characters, and a literal never spans lines. The longest piece free of these is preferred.

Regexes are parsed by the standard library's own regex parser. What only the package ``regex`` knows
(and what differs between Python releases) is refused; such a pattern names its literal itself.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from typing import Any

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

# Python 3.11 moved the parser and deprecated the old names.
_NEW = sys.version_info >= (3, 11)
sre: Any = importlib.import_module("re._constants" if _NEW else "sre_constants")
_sre_parse: Any = importlib.import_module("re._parser" if _NEW else "sre_parse")

MIN_LITERAL = 6
_MAX_PIECE = 200
_UNSAFE = lazy(r"""[^ -~]|["\\<>&]""")
_FUZZY = lazy(r"\{[^{}]*\b[eids]\s*<=?")


class NoLiteral(ValueError):
    """The regex has no literal of the needed length that every match contains."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What is known of the text that a part of a regex matches."""

    exact: str | None  # the part matches just this
    prefix: str = ""
    suffix: str = ""
    pieces: tuple[str, ...] = ()  # every match contains each of them

    @property
    def head(self) -> str:
        return self.prefix if self.exact is None else self.exact

    @property
    def tail(self) -> str:
        return self.suffix if self.exact is None else self.exact

    @property
    def all_pieces(self) -> tuple[str, ...]:
        found = (*self.pieces, self.head, self.tail)
        return tuple(p for p in dict.fromkeys(found) if p)


_EMPTY = _Text("")
_ANYTHING = _Text(None)


def parse_regex(regex: str) -> Any:
    """The parse tree. Raises ValueError in words when the common subset does not know the syntax."""
    if _FUZZY.search(regex):
        raise ValueError("fuzzy matching is not allowed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _sre_parse.parse(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regex: {error}") from None


def group_names(regex: str) -> frozenset[str]:
    """Names of the named groups. Raises ValueError like :func:`parse_regex`."""
    return frozenset(parse_regex(regex).state.groupdict)


def required_pieces(regex: str) -> tuple[str, ...]:
    """Texts that every match contains, unordered. Raises ValueError like :func:`parse_regex`."""
    tree = parse_regex(regex)
    return _sequence(tree, tree.state.flags).all_pieces


Runs = tuple[tuple[tuple[str, ...], ...], ...]


def required_runs(regex: str, minimum: int = 4) -> Runs:
    """Runs of plain characters that matches contain: of each entry every run of one alternative at least.

    What stands outside of alternatives is an entry of one alternative. Runs shorter than ``minimum`` are left out.
    Raises ValueError like :func:`parse_regex`.
    """
    found: list[tuple[tuple[str, ...], ...]] = []
    tree = parse_regex(regex)
    if not tree.state.flags & re.IGNORECASE:
        _collect_runs(tree, minimum, found)
    return tuple(dict.fromkeys(found))


def _collect_runs(items: Any, minimum: int, found: list[tuple[tuple[str, ...], ...]]) -> None:
    run = ""
    for op, argument in [*items, (None, None)]:
        if op is sre.LITERAL:
            run += chr(argument)
            continue
        if len(run.strip()) >= minimum:
            found.append(((run.strip(),),))
        run = ""
        if op is sre.SUBPATTERN and not argument[1] & re.IGNORECASE:
            _collect_runs(argument[3], minimum, found)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[0] > 0:
            _collect_runs(argument[2], minimum, found)
        elif op is sre.BRANCH:
            alternatives = []
            for alternative in argument[1]:
                inside: list[tuple[tuple[str, ...], ...]] = []
                _collect_runs(alternative, minimum, inside)
                alternatives.append(tuple(entry[0][0] for entry in inside if entry[1:] == ()))
            if all(alternatives):
                found.append(tuple(alternatives))


def required_literal(regex: str, minimum: int = MIN_LITERAL) -> str:
    """The best literal that every match contains, within one line.

    Raises NoLiteral when there is none of ``minimum`` characters, ValueError when the regex cannot be parsed.
    """
    whole = [part for piece in required_pieces(regex) for part in piece.split("\n")]
    safe = [part for piece in whole for part in _UNSAFE.split(piece)]
    for candidates in (safe, whole):
        best = max((p.strip() for p in candidates), key=len, default="")
        if len(best) >= minimum:
            return best
    longest = max((*whole, ""), key=len)
    raise NoLiteral(
        f"no literal of {minimum} characters is in every match (longest: {longest!r}); "
        "split alternatives into patterns of their own or give `literal:`"
    )


def _sequence(items: Any, flags: int) -> _Text:
    out, run = _EMPTY, ""
    for op, argument in items:
        part = _item(op, argument, flags)
        if op is sre.LITERAL and part.exact is not None and len(run) < _MAX_PIECE:
            run += part.exact  # joined as one: a join costs as much as there is before it
            continue
        out, run = _join(_join(out, _Text(run)) if run else out, part), ""
    return _join(out, _Text(run)) if run else out


def _join(a: _Text, b: _Text) -> _Text:
    if a.exact is not None and b.exact is not None and len(a.exact) + len(b.exact) <= _MAX_PIECE:
        return _Text(a.exact + b.exact)
    prefix = a.exact + b.head if a.exact is not None else a.prefix
    suffix = a.tail + b.exact if b.exact is not None else b.suffix
    middle = a.tail + b.head
    pieces = tuple(p for p in dict.fromkeys((*a.pieces, *b.pieces, middle)) if p)
    return _Text(None, prefix[:_MAX_PIECE], suffix[-_MAX_PIECE:], pieces)


def _item(op: Any, argument: Any, flags: int) -> _Text:
    if op is sre.LITERAL:
        char = chr(argument)
        if flags & re.IGNORECASE and char.lower() != char.upper():
            return _ANYTHING
        return _Text(char)
    if op in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        return _EMPTY
    if op is sre.SUBPATTERN:
        _, add, remove, inner = argument
        return _sequence(inner, (flags | add) & ~remove)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = argument
        return _repeat(_sequence(inner, flags), int(least), int(most))
    if op is sre.BRANCH:
        return _branch([_sequence(alternative, flags) for alternative in argument[1]])
    if str(op) in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT"):
        raise ValueError(
            "atomic groups and possessive repeats are not known to every Python: give `literal:`"
        )
    return _ANYTHING


def _repeat(inner: _Text, least: int, most: int) -> _Text:
    if least == 0:
        return _ANYTHING if inner.exact != "" else _EMPTY
    if inner.exact is not None:
        run = (inner.exact * min(least, _MAX_PIECE))[:_MAX_PIECE]
        if least == most and len(inner.exact) * least <= _MAX_PIECE:
            return _Text(run)
        return _Text(None, run, (inner.exact * min(least, _MAX_PIECE))[-_MAX_PIECE:], (run,))
    pieces = (*inner.pieces, inner.suffix + inner.prefix) if least > 1 else inner.pieces
    return _Text(None, inner.prefix, inner.suffix, tuple(p for p in pieces if p))


def _branch(alternatives: list[_Text]) -> _Text:
    exact = {a.exact for a in alternatives}
    if len(exact) == 1 and None not in exact:
        return alternatives[0]
    prefix = _common([a.head for a in alternatives])
    suffix = _common([a.tail[::-1] for a in alternatives])[::-1]
    first, *rest = alternatives
    shared = tuple(
        p for p in first.all_pieces if all(any(p in q for q in other.all_pieces) for other in rest)
    )
    return _Text(None, prefix, suffix, shared)


def _common(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    size = 0
    while size < len(low) and size < len(high) and low[size] == high[size]:
        size += 1
    return low[:size]
