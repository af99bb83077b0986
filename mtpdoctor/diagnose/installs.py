"""One and the same thing is offered once: the same edits, a package in a version, whatever speaks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mtpdoctor.diagnose.types import Fix
from mtpdoctor.patterns import lazy

_INSTALL = lazy(r"(?:python3? -m |uv )?pip3? install\b")
_ASKED = lazy(r"(?<![\w-])sglang(?:\[[\w,-]*\])?(==|>=|~=)(\d[\w.]*)")
# Of a reason that nothing speaks for but that there is a newer release.
_OPEN = lazy(r"\bis not known\b")
_TO_NEWEST = lazy(r"Upgrade SGLang (?:from \S+ )?to \S+$")


def sglang_asked(commands: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The sign ("==", ">=", "~=") and the release of every sglang that commands install, as they are written."""
    for line in commands:
        for found in _ASKED.finditer(line):
            yield found[1], found[2]


def once(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """The fixes without those that another one's edits or commands do too: the one with the better reason stays, in the place of
    the first, of the same edits the first. An upgrade to the newest release that nothing speaks for gives way to one that says what came with which."""
    out: list[Fix] = []
    for fix in fixes:
        if fix.edits and any(_edits_as(fix, other) for other in out):
            continue
        same = next((n for n, other in enumerate(out) if _same(fix, other)), None)
        if same is None:
            out.append(fix)
        elif _says_less(out[same], fix):
            out[same] = fix
    return tuple(out)


def _edits_as(fix: Fix, other: Fix) -> bool:
    """The same edits in any order, and no command that the other has not."""
    return set(fix.edits) == set(other.edits) and set(fix.run) <= set(other.run)


def _says_less(fix: Fix, other: Fix) -> bool:
    return (_is_bare_upgrade(fix), _is_open(fix)) > (_is_bare_upgrade(other), _is_open(other))


def _same(fix: Fix, other: Fix) -> bool:
    if fix.edits or other.edits or not fix.run or not other.run:
        return False
    if _commands(fix) == _commands(other):
        return all(_INSTALL.match(line) for line in _commands(fix))
    one, two = _is_bare_upgrade(fix), _is_bare_upgrade(other)
    return one is not two and _needs(other if one else fix)


def _commands(fix: Fix) -> list[str]:
    return [re.sub(r"\s+#.*$", "", line).strip() for line in fix.run]


def _is_open(fix: Fix) -> bool:
    return bool(_OPEN.search(fix.why or ""))


def _is_bare_upgrade(fix: Fix) -> bool:
    """To the newest release, with no word of what it brings for this failure."""
    return bool(_TO_NEWEST.match(fix.title)) and _is_open(fix)


def _needs(fix: Fix) -> bool:
    """Does it upgrade SGLang to a release that it names as the first one that helps?"""
    first = next(sglang_asked(_commands(fix)), None)
    return first is not None and first[0] == ">=" and fix.title.startswith("Upgrade SGLang")
