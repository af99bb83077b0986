"""Which releases print this usage text: the flags that argparse listed date the release.

A flag that is listed is one the release has: that bounds the release from both sides. A flag that is not
listed tells something only where the whole text stands in the log; logs often hold a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order

_OPTION = lazy(r"(?<![\w-])(--[a-z][\w-]*)")
_MIN_FLAGS = 5  # fewer flags than this may be any program's
_OTHERS = 0.1  # the share of listed flags that no release has, above which the text is another program's
_BETWEEN = 0.05  # the share of listed flags that a build between two releases may have from the other one
_HIDDEN = 0.02  # the share of a release's flags that its help leaves out


@dataclass(frozen=True, slots=True)
class UsageDating:
    """Releases that fit, oldest first (empty: nothing is told); ``whole``: all their flags are listed."""

    releases: tuple[Release, ...]
    whole: bool


def flags_of_usage(lines: Iterable[str]) -> frozenset[str]:
    """The long options a usage text lists."""
    return frozenset(name for line in lines for name in _OPTION.findall(line))


def releases_of_usage(
    flags: frozenset[str], unknown: Iterable[str] = (), ambiguous: str | None = None
) -> UsageDating:
    """The known releases that have most of the flags listed; where the text is whole, of those the ones
    with the fewest others. Usage prints one spelling per flag, deprecated ones included.

    ``unknown``, ``ambiguous``: what the same parser refused. That is certain, where a build between two
    releases may list flags of both.
    """
    own = flags - {"--help"}
    if len(own) < _MIN_FLAGS:
        return UsageDating((), False)
    releases = known_releases()
    position = {release: i for i, release in enumerate(releases)}
    listed, missing, has = ([0] * len(releases) for _ in range(3))
    for name, spans in read_table(releases_folder() / "flags.json")["flags"].items():
        for first, last, entry in spans:
            spelled = own.intersection((name, *entry.get("aliases", ())))
            end = position[release_order(last)] if last else len(releases) - 1
            for i in range(position[release_order(first)], end + 1):
                has[i] += 1
                listed[i] += len(spelled)
                missing[i] += not spelled
    most = max(listed)
    if len(own) - most > _OTHERS * len(own):
        return UsageDating((), False)
    near = [i for i, count in enumerate(listed) if count >= most - _BETWEEN * len(own)]
    refusing = [i for i in near if refuses(releases[i], unknown, ambiguous)] or near
    most = max(listed[i] for i in refusing)
    fit = [i for i in refusing if listed[i] == most]
    fewest = min(missing[i] for i in fit)
    whole = any(missing[i] == fewest and fewest <= _HIDDEN * has[i] for i in fit)
    if whole:
        fit = [i for i in fit if missing[i] == fewest]
    return UsageDating(tuple(releases[i] for i in fit), whole)


def refuses(release: Release, unknown: Iterable[str] = (), ambiguous: str | None = None) -> bool:
    """Would the server's parser of ``release`` refuse every flag of ``unknown``, and call ``ambiguous`` so?"""
    table = flag_table(release)
    if any((spec := table.resolve(name)) is not None and spec.refused is None for name in unknown):
        return False
    return ambiguous is None or (ambiguous not in table and len(table.beginning(ambiguous)) > 1)
