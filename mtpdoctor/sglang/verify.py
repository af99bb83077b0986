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

from mtpdoctor.sglang.quoted_code import Asked, Quote, asked
from mtpdoctor.sglang.raise_sites import SiteIndex, scan
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.spans import spans_of, within
from mtpdoctor.sglang.standing import StandingText, join_standing
from mtpdoctor.sglang.store import FORMAT, read_table, sort_releases, write_table
from mtpdoctor.sglang.templates import Pieces, literal_length, pattern, show

_FILLS = ("x", "1", "0.5", "a_b", "[1, 2]", "None", "'x'", "a.b", "/a/b", "A", "x: y", "")
_TIMEOUT = 1.0  # seconds for one regex on one text
_MIN_LITERAL = 8
_AROUND = 400  # characters before and after a literal in which the rest of its message stands
_TELLING = 22  # characters of a template's own text from which it tells a message, however long its values
_MIN_QUOTED = 12  # characters from which a literal standing in a source file is no chance


@dataclass(frozen=True, slots=True)
class PatternText:
    regex: str
    literal: str  # every match contains it
    traceback: bool = False  # held against a whole traceback
    # what else matches contain: of each entry every run of one alternative at least
    runs: tuple[tuple[tuple[str, ...], ...], ...] = ()

    def stands_in(self, text: str) -> bool:
        """Whether the literal stands in a source text, with the rest of the message around it."""
        # "accept len: 1.00" is "accept len: {length}" in the source
        head, blank, last = self.literal.rpartition(" ")
        value = bool(head and last[:1].isdigit())
        looked_for = f"{head}{blank}{{" if value else self.literal
        at = text.find(looked_for)
        while at >= 0:
            around = text[max(0, at - _AROUND) : at + len(looked_for) + _AROUND]
            if value or all(
                any(all(run in around for run in alternative) for alternative in entry) for entry in self.runs
            ):
                return True
            at = text.find(looked_for, at + 1)
        return False

    @property
    def asked(self) -> Asked:
        """The code that a traceback pattern names; nothing for a pattern of lines."""
        return asked(self.regex) if self.traceback else Asked(())


@dataclass(frozen=True, slots=True)
class RuleText:
    """What verification needs of a rule. ``releases`` is the range it claims."""

    id: str
    source: str
    releases: str
    patterns: tuple[PatternText, ...]
    examples: tuple[str, ...]
    origin: str = ""
    elsewhere: tuple[str, ...] = ()  # ranges in which the text occurs for something else
    unseen: tuple[str, ...] = ()  # ranges that it claims although the text is not found
    unfixed: tuple[StandingText, ...] = ()  # source text by which no release mends it

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
    texts: dict[PatternText | Quote, int] = field(default_factory=dict)  # looked-for source text -> bits

    def names(self, bits: int) -> list[str]:
        return [r for i, r in enumerate(self.releases) if bits >> i & 1]


def build_index(
    sources: Mapping[str, SourceTree], rules: Iterable[RuleText] = (), cache: Path | None = None
) -> MessageIndex:
    """Scan the sources (release -> tree). Files that did not change between releases are read once.

    Literals and quoted code of ``rules`` are looked for in the source as they are. ``cache`` keeps the
    messages of every file content seen, so that verifying again costs no parsing.
    """
    index = MessageIndex(sort_releases(sources))
    patterns = [p for rule in rules if rule.source == "sglang" for p in rule.patterns]
    wanted = [p for p in dict.fromkeys(patterns) if len(p.literal) >= _MIN_QUOTED]
    quotes = list(dict.fromkeys(quote for p in patterns for quote in p.asked.quotes))
    messages = _read_cache(cache)
    before = len(messages)
    texts: dict[str, list[PatternText]] = {}
    quoted: dict[tuple[str, str], list[Quote]] = {}
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
                joined = _messages_joined(text)
                texts[digest] = [p for p in wanted if p.stands_in(joined)]
            for message in messages[digest]:
                index.messages[message] = index.messages.get(message, 0) | bit
            if (path, digest) not in quoted:
                quoted[path, digest] = [q for q in quotes if q.in_file(path, text)]
            found: list[PatternText | Quote] = [*texts[digest], *quoted[path, digest]]
            for looked in found:
                index.texts[looked] = index.texts.get(looked, 0) | bit
    if cache is not None and len(messages) > before:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_bytes(gzip.compress(json.dumps(messages).encode(), compresslevel=3))
    return index


_COMMENT = re.compile(r"(?m)(?:^|[ \t])#[^\n\"']*$")
_NEXT_PART = re.compile(r"""["']\s*\n\s*[rfbu]{0,2}["']""", re.I)


def _messages_joined(text: str) -> str:
    """Source text without its comments, and with the parts of a string that goes over lines put together."""
    return _NEXT_PART.sub("", _COMMENT.sub("", text))


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
        fills = [*_FILLS, *_captured(compiled, rule.examples)]
        if item.asked.quotes:
            bits |= _quoted_bits(item, index, shown, fills)
            continue
        # Messages that reach the log by ways the scan does not follow: the literal stands in the source.
        bits |= index.texts.get(item, 0)
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
        for message, matched in _matched_lines(compiled, rule.examples):
            for _, pieces, _, held in shown:
                if held & ~bits and _prints(pieces, message) and not _in_a_hole(pieces, message, matched):
                    bits |= held
    return bits


def _quoted_bits(
    item: PatternText,
    index: MessageIndex,
    shown: Sequence[tuple[str, Pieces, str, int]],
    fills: Sequence[str],
) -> int:
    """Releases that have all the code that a traceback pattern names, and its message where that is SGLang's."""
    bits = (1 << len(index.releases)) - 1
    for quote in item.asked.quotes:
        bits &= index.texts.get(quote, 0)
    if bits and item.asked.message:
        compiled = regex.compile(item.asked.message)
        own = 0
        for exception, pieces, _, held in shown:
            own |= held if held & ~own and _produces(compiled, None, exception, pieces, fills) else 0
        bits &= own or bits  # no statement words it: Python's or another library's
    return bits


def _produces(
    compiled: regex.Pattern[str],
    item: PatternText | None,
    exception: str,
    pieces: Pieces,
    fills: Sequence[str],
) -> bool:
    """Whether some filling of the holes is matched."""
    for fill in fills if len(pieces) > 1 else fills[:1]:
        text = fill.join(pieces)
        if item and item.literal and item.literal not in f"{exception}: {text}":
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
        if match:  # a group that is all of the match is no value: every message with a hole would be one of the rule's
            yield from (value for value in match.groups() if value and value != match[0])


def _matched_lines(compiled: regex.Pattern[str], examples: Iterable[str]) -> set[tuple[str, str]]:
    """Messages of example lines that the pattern matches, without time and exception prefixes, and the text
    that it matches."""
    out = set()
    for text in examples:
        for line in text.splitlines():
            try:
                hit = compiled.search(line, timeout=_TIMEOUT)
            except TimeoutError:
                continue
            if hit:
                bare = re.sub(r"^\[[^\]]*\]\s*", "", line.strip())
                out.add((re.sub(r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning):\s*", "", bare), hit[0]))
    return out


def _in_a_hole(pieces: Pieces, message: str, matched: str) -> bool:
    """Whether what was matched is all value: the template wraps another one's message."""
    start = message.find(matched)
    if start < 0:
        return False
    begun = 0
    for count in range(1, len(pieces) + 1):
        held = pattern(pieces[:count], whole=count == len(pieces)).match(message)
        if held is None:
            return False
        if begun <= start and start + len(matched) <= held.end() - len(pieces[count - 1].strip()):
            return True
        begun = held.end()
    return False


def _prints(pieces: Pieces, message: str) -> bool:
    length = literal_length(pieces)
    if length < _MIN_LITERAL or (length < _TELLING and length * 3 < len(message.replace(" ", ""))):
        return False
    longest = max(pieces, key=len).split()
    return all(word in message for word in longest) and pattern(pieces).match(message) is not None


# -- the result as data ----------------------------------------------------------------------------------


def write_verified(
    folder: Path,
    rules: Iterable[RuleText],
    found: Mapping[str, Iterable[str]],
    releases: Iterable[str],
    standing: Mapping[StandingText, Iterable[str]] | None = None,
) -> None:
    """``verified.json``: spans of releases by rule id, with the key of the patterns they hold for.

    ``releases`` are those that were searched; what is known of others is kept for rules that did not
    change since. ``standing`` are the searched releases that have each text of the rules' ``unfixed``; without
    it what is known of these stays.
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
        rows[rule.id] = {"key": rule.key, "spans": spans_of({*found[rule.id], *kept}, every)}
    texts = before.get("standing", {})
    if standing is not None:
        texts = join_standing(texts, standing, searched, every)
    write_table(
        folder / "verified.json", {"format": FORMAT, "releases": every}, {"rules": rows, "standing": texts}
    )


def load_verified(folder: Path) -> Mapping[str, Any]:
    """The committed table; an empty one when there is none."""
    if not (folder / "verified.json").is_file():
        return {"releases": [], "rules": {}, "standing": {}}
    return read_table(folder / "verified.json")


def verified_releases(verified: Mapping[str, Any], rule: str) -> frozenset[str] | None:
    """Releases in which the rule's message occurs; None when it is not verified or was not found at all."""
    row = verified["rules"].get(rule)
    return within(row["spans"], verified["releases"]) if row and row["spans"] else None
