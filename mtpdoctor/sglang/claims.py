"""What rules claim of releases, held against what ``kb verify`` found in the releases' sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpdoctor.release import ReleaseRange
from mtpdoctor.sglang.spans import spans_of
from mtpdoctor.sglang.standing import differences
from mtpdoctor.sglang.store import release_order, sort_releases
from mtpdoctor.sglang.verify import RuleText, verified_releases


@dataclass(frozen=True, slots=True)
class RangeProblem:
    """A rule whose claim differs from the sources. ``level``: "error" where it claims releases in which
    its message cannot occur; "warning" where it leaves out some, or the data is older than the rule."""

    rule: str
    level: str
    message: str
    origin: str = ""
    stale: bool = False  # the data is older than the rule


def check_ranges(rules: Iterable[RuleText], verified: Mapping[str, Any]) -> list[RangeProblem]:
    """Compare what rules claim with what the sources say, release by release.

    A rule's ``elsewhere`` and ``unseen`` stand for the releases in which both differ rightly; they may name no
    others.
    """
    problems = []
    for rule in rules:
        for level, message, stale in differences(rule.unfixed, rule.releases, verified):
            problems.append(RangeProblem(rule.id, level, message, rule.origin, stale))
        if rule.source != "sglang" or not rule.patterns:
            for name, ranges in (("elsewhere", rule.elsewhere), ("unseen", rule.unseen)):
                if ranges:
                    text = f"`{name}` is for messages of SGLang, which are looked for in its sources"
                    problems.append(RangeProblem(rule.id, "error", text, rule.origin))
            continue
        row = verified["rules"].get(rule.id)
        if row is None or row["key"] != rule.key:
            text = "its patterns are not verified against the sources yet: run `mtpdoctor kb verify`"
            problems.append(RangeProblem(rule.id, "warning", text, rule.origin, stale=True))
            continue
        problems += [RangeProblem(rule.id, *found, rule.origin) for found in _differences(rule, verified)]
    return problems


def _differences(rule: RuleText, verified: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(level, message) of every difference between a rule's releases and those that have its text."""
    known = verified["releases"]
    possible = verified_releases(verified, rule.id) or frozenset()
    claimed = _within([rule.releases], known)
    elsewhere, unseen = _within(rule.elsewhere, known), _within(rule.unseen, known)

    def spans(releases: set[str] | frozenset[str]) -> str:
        return ", ".join(
            first if first == last else f"{first} to {last}" for first, last in spans_of(set(releases), known)
        )

    if not possible:  # perhaps only these sources are of another kind: nothing contradicts the claim
        if beyond := claimed - unseen:
            yield (
                "warning",
                f"claims {rule.releases!r}, but its message occurs in none of {spans(beyond)}: look at the pattern, or "
                "say in `unseen` why it is claimed there",
            )
        return
    if beyond := claimed - possible - unseen:
        text = (
            f"claims {rule.releases!r}, but its message does not occur in {spans(beyond)}: write "
            f"{range_text(possible, known)!r}, or say in `unseen` why it is claimed there"
        )
        # Ranges are written with final releases in mind: a candidate alone is no false claim.
        final = any(not release_order(r).is_prerelease for r in beyond)
        yield "error" if final else "warning", text
    if omitted := possible - claimed - elsewhere:
        yield (
            "warning",
            f"claims {rule.releases!r}, but its message also occurs in {spans(omitted)}: widen the range, or say "
            "in `elsewhere` what it stands for there",
        )
    if both := elsewhere & claimed:
        yield (
            "error",
            f"claims {spans(both)} and says in `elsewhere` that its text stands for something else there",
        )
    if wrong := elsewhere - possible - claimed:
        yield "error", f"`elsewhere` names {spans(wrong)}, whose source does not have the text"
    if wrong := unseen - claimed:
        yield "error", f"`unseen` names {spans(wrong)}, which the rule does not claim"
    if wrong := unseen & claimed & possible:
        yield "error", f"`unseen` names {spans(wrong)}, whose source has the text"


def _within(ranges: Iterable[str], releases: Sequence[str]) -> set[str]:
    parsed = [ReleaseRange.parse(text) for text in ranges]
    return {r for r in releases if any(release_order(r) in one for one in parsed)}


def range_text(found: Iterable[str], releases: Sequence[str]) -> str:
    """The range that covers ``found``, written as rules write it. Gaps are covered too."""
    ordered = sort_releases(found)
    first, last = ordered[0], ordered[-1]
    parts = [] if first == releases[0] else [f">={first}"]
    if last != releases[-1]:
        parts.append(f"<={last}")
    return ",".join(parts) or "*"
