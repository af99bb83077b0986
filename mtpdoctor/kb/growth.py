"""How long the standard library's regex engine may take with a rule's regex, at the worst.

The engine has no time limit, but it tells the same as ``regex``, which has one, and takes a fraction of its time to
load. So it may try a regex wherever even a text made to stall it cannot: the work of a search is at most the places
to begin at, times the ways in which each repeat may end.
"""

from __future__ import annotations

import re
from typing import Any

from mtpdoctor.kb.literals import parse_regex, sre
from mtpdoctor.patterns import lazy

_BRACE = lazy(r"(?<!\\)\{(?!\d*,?\d*\})")  # no repeat, as the two engines understand it
_REPEATS = tuple(getattr(sre, name, None) for name in ("MAX_REPEAT", "MIN_REPEAT"))
_GROUPS = (sre.ASSERT, sre.ASSERT_NOT)


class _Unbounded(Exception):
    """Repeats inside repeats, or something that is not weighed here."""


def growth(regex: str) -> tuple[int, int] | None:
    """(factor, degree): at most ``factor * n ** degree / degree!`` steps for a search in ``n`` characters.

    None where that cannot be said, or where the two engines may differ.
    """
    if _BRACE.search(regex):
        return None
    try:
        tree = parse_regex(regex)
        re.compile(regex)
        factor, degree = _ways(tree)
    except (ValueError, re.error, _Unbounded):
        return None
    return factor, degree + 1


def _ways(items: Any) -> tuple[int, int]:
    """In how many ways a sequence may match from one place on."""
    factor, degree = 1, 0
    for op, argument in items:
        more, power = _of_one(op, argument)
        factor *= more
        degree += power
    return factor, degree


def _of_one(op: Any, argument: Any) -> tuple[int, int]:
    if op in _REPEATS:
        _, most, inner = argument
        inside, power = _ways(inner)
        if most == 1:
            return inside + 1, power
        if inside > 1 or power or _captures(inner):
            raise _Unbounded
        return (1, 1) if most is sre.MAXREPEAT else (int(most), 0)
    if op is sre.SUBPATTERN:
        return _ways(argument[3])
    if op is sre.BRANCH:
        found = [_ways(branch) for branch in argument[1]]
        return sum(factor for factor, _ in found), max(power for _, power in found)
    if op in _GROUPS:
        return _ways(argument[1])
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.AT):
        return 1, 0
    raise _Unbounded


def _captures(items: Any) -> bool:
    """A group inside a repeat: which of its turns it keeps, the two engines may see differently."""
    return any(
        op is sre.SUBPATTERN and (argument[0] is not None or _captures(argument[3])) for op, argument in items
    )
