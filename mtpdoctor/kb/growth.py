"""How long the standard library's regex engine may take with a rule's regex, at the worst.

The engine has no time limit, but it tells the same as ``regex``, which has one, and takes a fraction of its time to
load. So it may try a regex wherever even a text made to stall it cannot: the work of a search is at most the places
to begin at, times the ways in which each repeat may end. (What the two see differently, whether some control
characters are spaces, does not come up: clean log text has none.)
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from mtpdoctor.kb.literals import parse_regex, sre
from mtpdoctor.patterns import lazy

_BRACE = lazy(r"(?<!\\)\{(?!\d*,?\d*\})")  # no repeat, as the two engines understand it
_REPEATS = tuple(getattr(sre, name, None) for name in ("MAX_REPEAT", "MIN_REPEAT"))
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_GROUPS = (sre.ASSERT, sre.ASSERT_NOT)


class _Unbounded(Exception):
    """Repeats inside repeats, or something that is not weighed here."""


def growth(regex: str) -> tuple[int, int, int] | None:
    """(factor, degree, apart): at most ``factor * n ** degree / degree! / apart`` steps for a search in ``n``
    characters; ``apart``: so many characters lie between two places where a match may begin.

    None where that cannot be said, or where the two engines may differ.
    """
    if _BRACE.search(regex):
        return None
    try:
        tree = parse_regex(regex)
        re.compile(regex)
        factor, degree = _ways(tree, last=True)
    except (ValueError, re.error, _Unbounded):
        return None
    anchored = len(tree) > 0 and tree[0] == (sre.AT, sre.AT_BEGINNING) and not tree.state.flags & re.MULTILINE
    return factor, degree if anchored else degree + 1, _apart(tree)


def _apart(tree: Any) -> int:
    """How far apart the plain text that a regex begins with may stand: its shortest period."""
    if tree.state.flags & re.IGNORECASE:
        return 1
    text = ""
    for op, argument in tree:
        if op is not sre.LITERAL:
            break
        text += chr(argument)
    return next((n for n in range(1, len(text)) if text.startswith(text[n:])), max(len(text), 1))


def _ways(items: Any, last: bool) -> tuple[int, int]:
    """In how many ways a sequence may match from one place on. ``last``: nothing comes after it that could fail."""
    factor, degree = 1, 0
    for number, (op, argument) in enumerate(items, 1):
        more, power = _of_one(op, argument, last and number == len(items))
        factor *= more
        degree += power
    return factor, degree


def _of_one(op: Any, argument: Any, last: bool) -> tuple[int, int]:
    if op in _REPEATS:
        _, most, inner = argument
        inside, power = _ways(inner, last and most == 1)
        if most == 1:
            return inside + 1, power
        if _captures(inner) or ((inside > 1 or power) and not _divides_itself(inner)):
            raise _Unbounded
        if last and not power:
            return 1, 0  # it is matched once, and that is the end
        return (1, 1) if most is sre.MAXREPEAT else (int(most), 0)
    if op is sre.SUBPATTERN:
        return _ways(argument[3], last)
    if op is sre.BRANCH:
        found = [_ways(branch, last) for branch in argument[1]]
        excluding = _exclude_each_other(argument[1])
        return 1 if excluding else sum(factor for factor, _ in found), max(power for _, power in found)
    if op in _GROUPS:
        return _ways(argument[1], last=False)
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.AT):
        return 1, 0
    raise _Unbounded


def _exclude_each_other(branches: Any) -> bool:
    """Plain texts of which none begins another: only one of them can stand at a place."""
    if any(op is not sre.LITERAL for branch in branches for op, _ in branch):
        return False
    texts = sorted("".join(chr(char) for _, char in branch) for branch in branches)
    return not any(later.startswith(text) for text, later in itertools.pairwise(texts))


def _captures(items: Any) -> bool:
    """A group inside a repeat: which of its turns it keeps, the two engines may see differently."""
    return any(
        op is sre.SUBPATTERN and (argument[0] is not None or _captures(argument[3])) for op, argument in items
    )


def _divides_itself(items: Any) -> bool:
    """Turns that begin with a character that their one repeat cannot match (``(?:-[a-z]+)*``): where a turn ends is
    plain, so the whole may end in as many ways as there are characters."""
    (first, char), *rest = items
    repeats = [argument for op, argument in rest if op in _REPEATS]
    if first is not sre.LITERAL or len(repeats) != 1 or len(repeats[0][2]) != 1:
        return False
    (op, argument) = repeats[0][2][0]
    return not _may_match(op, argument, chr(char)) and all(
        op in _REPEATS or op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.AT) for op, _ in rest
    )


def _may_match(op: Any, argument: Any, char: str) -> bool:
    if op is sre.LITERAL:
        return char == chr(argument)
    if op is not sre.IN:
        return True
    negated = any(kind is sre.NEGATE for kind, _ in argument)
    for kind, what in argument:
        if kind is sre.LITERAL and ord(char) == what:
            return not negated
        if kind is sre.RANGE and what[0] <= ord(char) <= what[1]:
            return not negated
        if kind is sre.CATEGORY and re.match(_CATEGORIES.get(what, "(?s:.)"), char):
            return not negated
    return negated
