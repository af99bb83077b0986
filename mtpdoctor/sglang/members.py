"""What the classes of SGLang have, and what its functions take, release by release.

``members.json.gz`` is written by ``learn_members``: for an AttributeError on one of SGLang's own classes, and for a call that its
callee refuses. Classes and functions go by their bare names; those that several files have are taken together. Attributes are
there as digests of 18 bits: one can be asked for, none be listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.lines import digest_of
from mtpdoctor.sglang.packed import Packed, open_packed

MEMBERS_FILE = "members.json.gz"
BUCKETS = 24
FIRST = 48  # releases are written as characters from here on
# Before names of bases, digests of attributes, a method with its arguments, and a function of no class
BASE, ATTRIBUTES, METHOD, FUNCTION = ":", "~", ".", "="
SET = "%set"  # the row of attributes that are set on other things than self
DIGEST = 3  # characters
ANY = "**"  # takes every keyword
_DEPTH = 12  # of bases
# Bases from outside that add nothing to what SGLang's code asks for by name.
PLAIN = frozenset(
    [
        "ABC",
        "Enum",
        "IntEnum",
        "IntFlag",
        "Flag",
        "Exception",
        "NamedTuple",
        "Protocol",
        "TypedDict",
        "Generic",
        "object",
        "dict",
        "list",
        "str",
        "int",
        "tuple",
        "Structure",
        "StrEnum",
    ]
)


@dataclass(frozen=True, slots=True)
class Spans:
    """The releases (numbers) that something holds in."""

    numbers: frozenset[int]
    releases: tuple[Release, ...]

    def holds(self, release: Release) -> bool:
        return release in self.releases and self.releases.index(release) in self.numbers

    def after(self, release: Release) -> Release | None:
        """The first later release in which it holds, where it holds in the newest too."""
        if release not in self.releases or len(self.releases) - 1 not in self.numbers:
            return None
        at = self.releases.index(release)
        while at + 1 < len(self.releases) and not all(
            n in self.numbers for n in range(at + 1, len(self.releases))
        ):
            at += 1
        return self.releases[at + 1] if at + 1 < len(self.releases) else None


@dataclass(frozen=True, slots=True)
class Taken:
    """The arguments of a function in a span of releases: those that must be given, and those that may."""

    required: tuple[str, ...]
    optional: frozenset[str]
    anything: bool  # **kwargs

    def takes(self, keyword: str) -> bool:
        return self.anything or keyword in self.required or keyword in self.optional


def bucket_of(name: str) -> str:
    return f"b{crc32(name.encode()) % BUCKETS:02}"


def attribute_of(folder: Path, owner: str, attribute: str) -> tuple[Spans, Spans] | None:
    """The releases that have class ``owner``, and those in which it or a base of SGLang's defines ``attribute``. None where the
    class is not known."""
    table = open_packed(folder / MEMBERS_FILE)
    releases = _releases(table)
    there = _there(table, owner)
    if not there:
        return None
    held = {at for at in there if _has(table, owner, attribute, at, _DEPTH)}
    return Spans(frozenset(there), releases), Spans(frozenset(held), releases)


def is_open(folder: Path, owner: str, release: Release) -> bool:
    """Has the class bases from outside of SGLang, which may define what it does not?"""
    table = open_packed(folder / MEMBERS_FILE)
    releases = _releases(table)
    return release not in releases or _open(table, owner, releases.index(release), _DEPTH)


def classes_with(folder: Path, names: tuple[str, ...], attribute: str, release: Release) -> tuple[str, ...]:
    """Those of the classes ``names`` that have ``attribute`` in ``release``."""
    table = open_packed(folder / MEMBERS_FILE)
    releases = _releases(table)
    if release not in releases:
        return ()
    at = releases.index(release)
    return tuple(n for n in names if at in _there(table, n) and _has(table, n, attribute, at, _DEPTH))


def arguments_of(
    folder: Path, owner: str, function: str
) -> tuple[tuple[tuple[frozenset[int], Taken], ...], Spans] | None:
    """What ``owner.function`` (``owner`` "" for a function of no class) takes by spans of releases, and the releases that have it.
    No spans where the arguments of a method never changed. None where no such function is known: one of no class is only where its arguments changed."""
    table = open_packed(folder / MEMBERS_FILE)
    if not table.head:
        return None
    wanted = f"{METHOD}{function if owner else ''}"
    found = tuple(
        (frozenset(numbers), _taken(words[1:]))
        for numbers, words in _rows(table, owner or FUNCTION + function)
        if words[0] == wanted
    )
    there = {at for numbers, _ in found for at in numbers}
    if owner:
        there |= {at for numbers, words in _rows(table, owner) if _holds(words, function) for at in numbers}
    if not there:
        return None
    return found, Spans(frozenset(there), _releases(table))


def assigned_elsewhere(folder: Path, attribute: str, release: Release) -> bool:
    """Does any code of the release set that attribute on something else than ``self``?"""
    table = open_packed(folder / MEMBERS_FILE)
    releases = _releases(table)
    if release not in releases:
        return True
    at = releases.index(release)
    return any(at in numbers and _holds(words, attribute) for numbers, words in _rows(table, SET))


def _taken(words: list[str]) -> Taken:
    required = tuple(w for w in words if w[-1] not in "=*" and w != ANY)
    optional = frozenset(w[:-1] for w in words if w.endswith("="))
    return Taken(required, optional, ANY in words)


def _releases(table: Packed) -> tuple[Release, ...]:
    return tuple(map(parse_release, table.head.get("releases", ())))


def _rows(table: Packed, name: str) -> Iterator[tuple[set[int], list[str]]]:
    """What is written of one class or function: the releases, and the words."""
    if not table.head:
        return
    text = table.text(bucket_of(name))
    start = text.find(f"\n#{name}\n")
    if start < 0:
        return
    end = text.find("\n#", start + 1)
    for row in text[start + 1 : end if end >= 0 else len(text)].rstrip("\n").split("\n")[1:]:
        written, _, rest = row.partition(" ")
        yield unwritten(written), rest.split(" ")


def unwritten(written: str) -> set[int]:
    """Pairs of characters: first and last release."""
    out: set[int] = set()
    for n in range(0, len(written), 2):
        out.update(range(ord(written[n]) - FIRST, ord(written[n + 1]) - FIRST + 1))
    return out


def _holds(words: list[str], attribute: str) -> bool:
    digests, wanted = words[0], digest_of(attribute)
    return digests[:1] == ATTRIBUTES and any(
        digests[n : n + DIGEST] == wanted for n in range(1, len(digests), DIGEST)
    )


def _there(table: Packed, owner: str) -> set[int]:
    return {at for numbers, words in _rows(table, owner) for at in numbers}


def _bases(table: Packed, owner: str, at: int) -> list[str]:
    found = (w for numbers, w in _rows(table, owner) if at in numbers and w[0] == BASE)
    return [name for words in found for name in words[1:]]


def _has(table: Packed, owner: str, attribute: str, at: int, depth: int) -> bool:
    if any(at in numbers and _holds(words, attribute) for numbers, words in _rows(table, owner)):
        return True
    return depth > 0 and any(
        base != owner and _has(table, base, attribute, at, depth - 1) for base in _bases(table, owner, at)
    )


def _open(table: Packed, owner: str, at: int, depth: int) -> bool:
    if at not in _there(table, owner):
        return owner not in PLAIN
    return depth == 0 or any(
        base != owner and _open(table, base, at, depth - 1) for base in _bases(table, owner, at)
    )
