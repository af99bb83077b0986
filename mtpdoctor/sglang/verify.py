"""In which releases can a rule's message occur? Answered from the releases' sources, kept as data.

A rule's regex is held against the texts that the statements of a release can print: templates whose
holes are filled, and the rule's own examples, which a statement's template must be able to produce.
The rules come as plain text (:class:`RuleText`), so that this module needs nothing of ``kb``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import regex

from mtpdoctor.release import ReleaseRange
from mtpdoctor.sglang.raise_sites import SiteIndex, scan
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.store import FORMAT, read_table, release_order, sort_releases, write_table
from mtpdoctor.sglang.templates import Pieces, literal_length, pattern, show

_FILLS = ("x", "1", "0.5", "a_b", "[1, 2]", "None", "'x'", "a.b", "/a/b", "A", "x: y", "")
_TIMEOUT = 1.0  # seconds for one regex on one text
_MIN_LITERAL = 8
_MIN_QUOTED = 12  # characters from which a literal standing in a source file is no chance


@dataclass(frozen=True, slots=True)
class PatternText:
    regex: str
    literal: str  # every match contains it
    traceback: bool = False  # held against a whole traceback

    @property
    def quoted(self) -> str:
        """What to look for in source files as it stands: the literal; a frame's function where it is defined."""
        frame = re.fullmatch(r"in (\w+)", self.literal.strip()) if self.traceback else None
        return f"def {frame[1]}(" if frame else self.literal


@dataclass(frozen=True, slots=True)
class RuleText:
    """What verification needs of a rule. ``releases`` is the range it claims."""

    id: str
    source: str
    releases: str
    patterns: tuple[PatternText, ...]
    examples: tuple[str, ...]
    origin: str = ""

    @property
    def key(self) -> str:
        """Changes when what the rule matches changes."""
        text = "\n".join(f"{p.traceback}{p.regex}" for p in self.patterns)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(slots=True)
class MessageIndex:
    """Every message template of many releases, each with the releases (as bits) that have it."""

    releases: list[str]
    messages: dict[tuple[str, Pieces], int] = field(default_factory=dict)  # (exception, pieces) -> bits
    texts: dict[str, int] = field(default_factory=dict)  # looked-for source text -> bits

    def names(self, bits: int) -> list[str]:
        return [r for i, r in enumerate(self.releases) if bits >> i & 1]


def build_index(
    sources: Mapping[str, SourceTree], looked_for: Iterable[str] = (), cache: Path | None = None
) -> MessageIndex:
    """Scan the sources (release -> tree). Files that did not change between releases are read once.

    ``looked_for`` are texts to find in the source as they are: the rules' literals. ``cache`` keeps the
    messages of every file content seen, so that verifying again costs no parsing.
    """
    index = MessageIndex(sort_releases(sources))
    wanted = sorted(set(looked_for))
    messages = _read_cache(cache)
    before = len(messages)
    texts: dict[str, list[str]] = {}
    for number, release in enumerate(index.releases):
        bit = 1 << number
        tree = sources[release]
        for path in SiteIndex(tree).files():
            text = tree.read(path) or ""
            digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
            if digest not in messages:
                sites = scan(path, text, with_guards=False)
                messages[digest] = sorted(
                    {(s.exception, s.pieces) for s in sites if literal_length(s.pieces)}
                )
            if digest not in texts:
                texts[digest] = [w for w in wanted if w in text]
            for message in messages[digest]:
                index.messages[message] = index.messages.get(message, 0) | bit
            for looked in texts[digest]:
                index.texts[looked] = index.texts.get(looked, 0) | bit
    if cache is not None and len(messages) > before:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_bytes(gzip.compress(json.dumps(messages).encode(), compresslevel=3))
    return index


def _read_cache(cache: Path | None) -> dict[str, list[tuple[str, Pieces]]]:
    if cache is None or not cache.is_file():
        return {}
    try:
        data = json.loads(gzip.decompress(cache.read_bytes()))
    except (OSError, ValueError, EOFError):
        return {}  # a damaged cache is written anew
    return {digest: [(exc, tuple(pieces)) for exc, pieces in found] for digest, found in data.items()}


def verify(rules: Iterable[RuleText], index: MessageIndex) -> dict[str, list[str]]:
    """Releases in which each rule's message can occur, by rule id; rules whose message is not SGLang's
    are left out, and a rule is mapped to ``[]`` when no release's source has its message."""
    shown = [(exc, pieces, show(pieces), bits) for (exc, pieces), bits in index.messages.items()]
    return {
        rule.id: index.names(_bits(rule, index, shown))
        for rule in rules
        if rule.source == "sglang" and rule.patterns
    }


def _bits(rule: RuleText, index: MessageIndex, shown: Sequence[tuple[str, Pieces, str, int]]) -> int:
    bits = 0
    for item in rule.patterns:
        try:
            compiled = regex.compile(item.regex)
        except regex.error:
            continue
        if item.traceback or len(item.literal) >= _MIN_QUOTED:
            # Code lines that tracebacks print, and messages that reach the log by ways the scan does not
            # follow: the literal stands in the source as it is.
            bits |= index.texts.get(item.quoted, 0)
        fills = [*_FILLS, *_captured(compiled, rule.examples)]
        word = max(re.findall(r"[A-Za-z_]{4,}", item.literal), key=len, default="")
        for exception, pieces, text, held in shown:
            if held & ~bits and (word in text or word in exception):
                bits |= held if _produces(compiled, item, exception, pieces, fills) else 0
        # The last word of the literal may be the value of a hole: "accept len: " and "1.00".
        head, blank, last = item.literal.rpartition(" ")
        for exception, pieces, text, held in shown if len(head) >= _MIN_LITERAL and last else ():
            if held & ~bits and head in text and any(p.endswith(head + blank) for p in pieces[:-1]):
                made = _produces(compiled, item, exception, pieces, (last, f"{last}x"))
                bits |= held if made else 0
        for message in _matched_lines(compiled, rule.examples):
            for _, pieces, _, held in shown:
                if held & ~bits and _prints(pieces, message):
                    bits |= held
    return bits


def _produces(
    compiled: regex.Pattern[str], item: PatternText, exception: str, pieces: Pieces, fills: Sequence[str]
) -> bool:
    """Whether some filling of the holes is matched."""
    for fill in fills if len(pieces) > 1 else fills[:1]:
        text = fill.join(pieces)
        if item.literal and item.literal not in text and item.literal not in f"{exception}: {text}":
            continue
        try:
            if compiled.search(f"{exception}: {text}", timeout=_TIMEOUT):
                return True
        except TimeoutError:
            return False
    return False


def _captured(compiled: regex.Pattern[str], examples: Iterable[str]) -> Iterator[str]:
    for text in examples:
        try:
            match = compiled.search(text, timeout=_TIMEOUT)
        except TimeoutError:
            continue
        if match:
            yield from (value for value in match.groups() if value)


def _matched_lines(compiled: regex.Pattern[str], examples: Iterable[str]) -> set[str]:
    """Messages of example lines that the pattern matches, without time and exception prefixes."""
    out = set()
    for text in examples:
        for line in text.splitlines():
            try:
                hit = compiled.search(line, timeout=_TIMEOUT)
            except TimeoutError:
                continue
            if hit:
                bare = re.sub(r"^\[[^\]]*\]\s*", "", line.strip())
                out.add(re.sub(r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning):\s*", "", bare))
    return out


def _prints(pieces: Pieces, message: str) -> bool:
    if literal_length(pieces) < _MIN_LITERAL or literal_length(pieces) * 3 < len(message.replace(" ", "")):
        return False
    longest = max(pieces, key=len).split()
    return all(word in message for word in longest) and pattern(pieces).match(message) is not None


# -- the result as data ----------------------------------------------------------------------------------


def write_verified(
    folder: Path, rules: Iterable[RuleText], found: Mapping[str, Iterable[str]], releases: Iterable[str]
) -> None:
    """``verified.json``: spans of releases by rule id, with the key of the patterns they hold for.

    ``releases`` are those that were searched; what is known of others is kept for rules that did not
    change since.
    """
    before = load_verified(folder)
    searched = set(releases)
    every = sort_releases({*before["releases"], *searched})
    rows = {}
    for rule in sorted(rules, key=lambda r: r.id):
        if rule.id not in found:
            continue
        old = before["rules"].get(rule.id)
        kept = (verified_releases(before, rule.id) or frozenset()) - searched
        if old is None or old["key"] != rule.key:
            kept = frozenset()
        rows[rule.id] = {"key": rule.key, "spans": _spans({*found[rule.id], *kept}, every)}
    write_table(folder / "verified.json", {"format": FORMAT, "releases": every}, {"rules": rows})


def _spans(present: set[str], releases: Sequence[str]) -> list[list[str]]:
    spans: list[list[str]] = []
    previous = None
    for release in releases:
        if release in present:
            if previous in present:
                spans[-1][1] = release
            else:
                spans.append([release, release])
        previous = release
    return spans


@dataclass(frozen=True, slots=True)
class RangeProblem:
    """A rule whose claim differs from the sources. ``level``: "error" where it claims releases in which
    its message cannot occur; "warning" where it leaves out some, or the data is older than the rule."""

    rule: str
    level: str
    message: str
    origin: str = ""
    stale: bool = False  # the data is older than the rule


def load_verified(folder: Path) -> Mapping[str, Any]:
    """The committed table; an empty one when there is none."""
    if not (folder / "verified.json").is_file():
        return {"releases": [], "rules": {}}
    return read_table(folder / "verified.json")


def verified_releases(verified: Mapping[str, Any], rule: str) -> frozenset[str] | None:
    """Releases in which the rule's message occurs; None when it is not verified or was not found at all."""
    row = verified["rules"].get(rule)
    if row is None or not row["spans"]:
        return None
    out: set[str] = set()
    for first, last in row["spans"]:
        low, high = release_order(first), release_order(last)
        out |= {r for r in verified["releases"] if low <= release_order(r) <= high}
    return frozenset(out)


def check_ranges(rules: Iterable[RuleText], verified: Mapping[str, Any]) -> list[RangeProblem]:
    """Compare what rules claim with what the sources say."""
    problems = []
    for rule in rules:
        if rule.source != "sglang" or not rule.patterns:
            continue
        row = verified["rules"].get(rule.id)
        if row is None or row["key"] != rule.key:
            text = "its patterns are not verified against the sources yet: run `mtpdoctor kb verify`"
            problems.append(RangeProblem(rule.id, "warning", text, rule.origin, stale=True))
            continue
        possible = verified_releases(verified, rule.id)
        if possible is None:
            continue
        claimed = {r for r in verified["releases"] if release_order(r) in ReleaseRange.parse(rule.releases)}
        right = range_text(possible, verified["releases"])
        # Between the first and the last release that has it a message may only have been reworded.
        first, last = (
            release_order(r) for r in (min(possible, key=release_order), max(possible, key=release_order))
        )
        beyond = {r for r in claimed if not first <= release_order(r) <= last}
        if beyond:
            some = _some(beyond)
            text = f"claims {rule.releases!r}, but its message does not occur in {some}: write {right!r}"
            # Ranges are written with final releases in mind: a candidate at their edge is no false claim.
            final = any(not release_order(r).is_prerelease for r in beyond)
            problems.append(RangeProblem(rule.id, "error" if final else "warning", text, rule.origin))
        elif possible - claimed:
            text = f"claims {rule.releases!r}, but its message also occurs in {_some(possible - claimed)}"
            problems.append(RangeProblem(rule.id, "warning", text, rule.origin))
    return problems


def _some(releases: Iterable[str]) -> str:
    ordered = sort_releases(releases)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def range_text(found: Iterable[str], releases: Sequence[str]) -> str:
    """The range that covers ``found``, written as rules write it. Gaps are covered too."""
    ordered = sort_releases(found)
    first, last = ordered[0], ordered[-1]
    parts = [] if first == releases[0] else [f">={first}"]
    if last != releases[-1]:
        parts.append(f"<={last}")
    return ",".join(parts) or "*"
