"""Texts on which a regex with ambiguous repeats takes for ever.

For every unbounded repeat of the regex: the shortest text that leads up to it, then what it repeats
over and over, then a character that nothing matches, so that every split of the run is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpdoctor.kb.literals import parse_regex, sre

SIZE = 8192
_FILLERS = ("a", "0", " ", ".", "a ", "0,", "/a", "a=1, ")
_CANDIDATES = "a0 .-_/:=,'\"()[]{}A%\t\n"
_END = "\x00"


def adversarial_texts(regex: str, literal: str) -> Iterator[str]:
    """Texts of about SIZE characters; only general ones where the standard library cannot parse the regex."""
    for filler in _FILLERS:
        run = _run(filler)
        yield run
        yield literal + run
        yield run[: SIZE // 2] + literal + run[: SIZE // 2]
    yield _run(literal + " ")
    try:
        tree = parse_regex(regex)
    except ValueError:
        return
    yield from _pumped(tree, "")


def _run(unit: str) -> str:
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


def _pumped(items: Any, before: str) -> Iterator[str]:
    for op, argument in items:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            _, most, inner = argument
            unit = sample(inner)
            if unit and int(most) > 10:
                yield before + _run(unit) + _END
            yield from _pumped(inner, before)
        elif op is sre.SUBPATTERN:
            yield from _pumped(argument[3], before)
        elif op is sre.BRANCH:
            for alternative in argument[1]:
                yield from _pumped(alternative, before)
        before += sample([(op, argument)])


def sample(items: Any) -> str:
    """A short text that the parsed part of a regex matches, mostly (look-arounds are not heeded)."""
    return "".join(_sample(op, argument) for op, argument in items)


def _sample(op: Any, argument: Any) -> str:
    if op is sre.LITERAL:
        return chr(argument)
    if op is sre.NOT_LITERAL:
        return "b" if argument == ord("a") else "a"
    if op is sre.ANY:
        return "a"
    if op is sre.IN:
        return next((c for c in _CANDIDATES if _in_set(c, argument)), _first(argument))
    if op is sre.SUBPATTERN:
        return sample(argument[3])
    if op is sre.BRANCH:
        return sample(argument[1][0])
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = argument
        return sample(inner) * min(max(int(least), 1 if int(most) else 0), 64)
    return ""


def _in_set(char: str, members: Any) -> bool:
    negated = any(op is sre.NEGATE for op, _ in members)
    return negated is not any(_member(char, op, argument) for op, argument in members)


def _member(char: str, op: Any, argument: Any) -> bool:
    if op is sre.LITERAL:
        return ord(char) == argument
    if op is sre.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if op is sre.CATEGORY:
        name = str(argument).lower()
        kind = char.isdigit() if "digit" in name else char.isspace() if "space" in name else _is_word(char)
        return kind is not ("not" in name)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _first(members: Any) -> str:
    for op, argument in members:
        if op is sre.LITERAL:
            return chr(argument)
        if op is sre.RANGE:
            return chr(argument[0])
    return "a"
