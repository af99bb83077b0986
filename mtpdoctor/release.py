"""SGLang releases and ranges of them.

Releases are ``packaging`` versions. Ranges are comma-separated comparisons (``>=0.5.10,<0.5.14``)
under plain PEP 440 *ordering*, without the special cases of specifiers: ``>0.5.13`` admits
0.5.13.post1 and ``<0.5.14`` admits 0.5.14rc0. ``*`` is every release.
"""

from __future__ import annotations

import operator
from functools import lru_cache

from packaging.version import InvalidVersion
from packaging.version import Version as Release

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

_OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_PART = lazy(r"(>=|<=|==|!=|>|<)\s*(\S+)$")


@lru_cache(maxsize=1024)
def parse_release(text: str) -> Release:
    """A release without its local part (``+cu130``). Raises ValueError when it is no release number."""
    try:
        return Release(Release(text).public)
    except InvalidVersion:
        raise ValueError(f"not a release number: {text!r}") from None


def release_or_none(text: str | None) -> Release | None:
    try:
        return parse_release(text) if text else None
    except ValueError:
        return None


def leads_to(release: Release) -> Release:
    """The release on whose way a development state (``0.5.9.dev123``) lies; any other release is itself."""
    return Release(str(release).partition(".dev")[0]) if release.is_devrelease else release


@dataclass(frozen=True, slots=True)
class ReleaseRange:
    """A set of releases. ``text`` is the form it was written in."""

    text: str
    bounds: tuple[tuple[str, Release], ...]

    @staticmethod
    def parse(text: str) -> ReleaseRange:
        """Raises ValueError naming the part that is wrong."""
        return _parse_range(text)

    def __contains__(self, release: Release) -> bool:
        return all(_OPERATORS[op](release, bound) for op, bound in self.bounds)

    def holds(self, release: Release | None) -> bool | None:
        """Three-valued: None when the release is not known and the range is not ``*``, and for a state on the way to a release
        (``0.5.9.dev123``) where that release differs from the one before it: what came with it may be there already."""
        if not self.bounds:
            return True
        if release is None:
            return None
        inside = release in self
        return inside if not release.is_devrelease or (leads_to(release) in self) is inside else None

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=1024)
def _parse_range(text: str) -> ReleaseRange:
    bounds = []
    for part in (p.strip() for p in text.split(",")):
        if part in ("*", ""):
            continue
        m = _PART.match(part)
        if not m:
            raise ValueError(f"not a release comparison: {part!r} (write e.g. '>=0.5.10,<0.5.14' or '*')")
        bounds.append((m[1], parse_release(m[2])))
    return ReleaseRange(text, tuple(bounds))
