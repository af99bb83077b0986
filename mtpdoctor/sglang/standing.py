"""Source text by which a rule shows that no release mends its failure: is it so in all of them?

A rule names the text and the last release that was looked at (docs/knowledge-format.md, ``unfixed``). Of
which of the learned releases it is so, is kept beside the releases of the rules' messages, in ``verified.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpdoctor.release import ReleaseRange
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.spans import spans_of, within
from mtpdoctor.sglang.store import release_order


@dataclass(frozen=True, slots=True)
class StandingText:
    through: str
    files: tuple[str, ...]  # below sglang/
    text: str
    since: str = ""
    lacks: bool = False  # it is not there

    @property
    def key(self) -> str:
        """What it is looked for by."""
        return f"{' '.join(self.files)}:{' not' if self.lacks else ''} {self.text}"

    def shown_by(self, sources: Iterable[str]) -> bool:
        """Of the texts of its files in one release, of those that are there."""
        texts = list(sources)
        return bool(texts) and any(self.text in text for text in texts) is not self.lacks


def find_standing(
    texts: Iterable[StandingText], sources: Mapping[str, SourceTree]
) -> dict[StandingText, list[str]]:
    """The releases of ``sources`` of which each text is true."""
    wanted = list(dict.fromkeys(texts))
    found: dict[StandingText, list[str]] = {text: [] for text in wanted}
    for release, tree in sources.items():
        read = {path: tree.read(f"sglang/{path}") for path in {f for t in wanted for f in t.files}}
        for text in wanted:
            if text.shown_by(source for path in text.files if (source := read[path]) is not None):
                found[text].append(release)
    return found


def join_standing(
    before: Mapping[str, Any],
    found: Mapping[StandingText, Iterable[str]],
    searched: Iterable[str],
    every: Sequence[str],
) -> dict[str, list[list[str]]]:
    """The table by key: what was found now, and what is known of releases that were not searched."""
    looked = set(searched)
    table = {}
    for text, releases in found.items():
        kept = within(before.get(text.key, ()), every) - looked
        table[text.key] = spans_of({*releases, *kept}, every)
    return dict(sorted(table.items()))


def differences(
    texts: Sequence[StandingText], releases: str, verified: Mapping[str, Any]
) -> Iterator[tuple[str, str, bool]]:
    """(level, message, whether the data is older than the text) where a rule of ``releases`` is not borne out."""
    known = verified["releases"]
    of_rule = ReleaseRange.parse(releases)
    begins = next((r for r in known if release_order(r) in of_rule), "")
    for text in texts:
        spans = verified.get("standing", {}).get(text.key)
        shown = f"`unfixed` {'without ' if text.lacks else ''}{text.text!r}"
        if spans is None:
            yield (
                "warning",
                f"{shown} is not verified against the sources yet: run `mtpdoctor kb verify`",
                True,
            )
            continue
        have = within(spans, known)
        first, last = release_order(text.since or begins or text.through), release_order(text.through)
        up_to = [r for r in known if first <= release_order(r) <= last]
        if gone := set(up_to) - have:
            said = ", ".join(a if a == b else f"{a} to {b}" for a, b in spans_of(gone, known))
            yield (
                "error",
                f"{shown} is not so in {said} ({', '.join(text.files)}): that may be what mends it",
                False,
            )
        later = [r for r in known if release_order(r) > last]
        if later and later[-1] in have:
            yield (
                "warning",
                f"{shown} is so in {later[-1]} too: write `through: {later[-1]}`, here and in words",
                False,
            )
        elif mended := [r for r in later if r not in have]:
            yield (
                "warning",
                f"{shown} is so no longer in {mended[0]}: say whether that release mends it",
                False,
            )
