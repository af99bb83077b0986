"""Which releases print this usage text: the flags that argparse listed date the release."""

from __future__ import annotations

from collections.abc import Iterable

from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.release import Release
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order

_OPTION = lazy(r"(?<![\w-])(--[a-z][\w-]*)")
MIN_FLAGS = 40  # fewer flags than this are a cut usage text that fits many releases


def flags_of_usage(lines: Iterable[str]) -> frozenset[str]:
    """The long options a usage text lists."""
    return frozenset(name for line in lines for name in _OPTION.findall(line))


def releases_of_usage(flags: frozenset[str]) -> tuple[Release, ...]:
    """The known releases whose own flags agree best with those listed, oldest first; empty when too
    few flags are listed to tell. Usage prints one spelling per flag, deprecated ones included."""
    if len(flags) < MIN_FLAGS:
        return ()
    releases = known_releases()
    position = {release: i for i, release in enumerate(releases)}
    listed, missing = [0] * len(releases), [0] * len(releases)
    for name, spans in read_table(releases_folder() / "flags.json")["flags"].items():
        for first, last, entry in spans:
            counts = listed if flags.intersection((name, *entry.get("aliases", ()))) else missing
            end = position[release_order(last)] if last else len(releases) - 1
            for i in range(position[release_order(first)], end + 1):
                counts[i] += 1
    own = len(flags - {"--help"})
    scores = [missing[i] + own - listed[i] for i in range(len(releases))]
    best = min(scores)
    return tuple(release for release, score in zip(releases, scores, strict=True) if score == best)
