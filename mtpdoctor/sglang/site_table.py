"""Which statement of SGLang says a message, in which releases, and what decides it; read where no rule knows a failure.

``sites.json.gz`` is written by ``learn_sites``. Nothing of it is code: messages as fixed pieces, conditions as facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.packed import Packed, open_packed
from mtpdoctor.sglang.templates import Pieces, common_beginning, literal_length, pattern

SITES_FILE = "sites.json.gz"
BETWEEN = "\x1e"  # texts; their pieces are parted by \x1f
_LEAST = 8  # characters of fixed text that a message must share with a statement's
_BEGINNING = 16  # the same where only the beginning can be compared
_START = 12  # characters, without white space, in which they have to agree for that
_MAX_TEXTS = 12


@dataclass(frozen=True, slots=True)
class TableSite:
    """A statement that raises, asserts, or says its last words. ``guards`` and ``reads`` are facts (``guard_facts``)."""

    file: str
    function: str  # qualified
    exception: str  # without its module; the logger's method for last words
    pieces: Pieces
    guards: tuple[str, ...]
    reads: tuple[str, ...]
    numbers: tuple[tuple[int, int], ...]  # releases, first and last of each span
    releases: tuple[Release, ...]  # all that the table knows

    def stands_in(self, release: Release) -> bool:
        return any(self.releases[a] <= release <= self.releases[b] for a, b in self.numbers)

    def held(self) -> frozenset[int]:
        return frozenset(at for a, b in self.numbers for at in range(a, b + 1))


def sites_saying(folder: Path, message: str, exception: str = "") -> tuple[TableSite, ...]:
    """Statements whose message fits, in any release; those that share most of the text with it first. Where one
    raises ``exception``, only such."""
    table = open_packed(folder / SITES_FILE)
    if not table.head or not message:
        return ()
    return _sites_saying(table, message, exception)


@lru_cache(maxsize=32)  # one diagnosis asks for the same message from several sides
def _sites_saying(table: Packed, message: str, exception: str) -> tuple[TableSite, ...]:
    texts = _texts(table.path, table.changed)
    keys = _keys(table.path, table.changed)
    sized = [(literal_length(p), n) for n, p in _whole(texts, keys, message)]
    sized = [item for item in sized if item[0] >= _LEAST]
    if not sized:
        starts = _starts(table.path, table.changed)
        sized = [(size, n) for size, n in _begun(texts, starts, message) if size >= _BEGINNING]
    where = table.text("where").split(" ")
    out: list[tuple[int, TableSite]] = []
    for size, number in sorted(sized, reverse=True)[:_MAX_TEXTS]:
        if exception and size * 4 < len("".join(message.split())):
            continue  # mostly holes: chance
        for group in where[number].split(","):
            out += [(size, site) for site in _sites(table, int(group), text=number)]
    named = [item for item in out if item[1].exception == exception.rsplit(".", 1)[-1]]
    best = named or (
        [item for item in out if item[0] * 2 > len("".join(message.split()))] if exception else out
    )
    best.sort(key=lambda item: -item[0])
    return tuple(site for size, site in best if size == best[0][0])


def with_message(folder: Path, pieces: Pieces) -> tuple[TableSite, ...]:
    """Every statement with this very message, wherever it stood."""
    table = open_packed(folder / SITES_FILE)
    texts = _texts(table.path, table.changed)
    if pieces not in texts:
        return ()
    number = texts.index(pieces)
    groups = table.text("where").split(" ")[number].split(",")
    return tuple(site for group in groups for site in _sites(table, int(group), text=number))


def sites_in(folder: Path, path: str, function: str) -> tuple[TableSite, ...]:
    """All statements of one function, given as a traceback's frame does."""
    table = open_packed(folder / SITES_FILE)
    parts = path.replace("\\", "/").split("/")
    files = table.head.get("files", {})
    named = ("/".join(parts[i:]) for i, part in enumerate(parts) if part == "sglang")
    file = next((f for f in named if f in files), None)
    if file is None:
        return ()
    return tuple(_sites(table, files[file], within=(file, function)))


# Of a text: its number, its longest piece, and the inner words of that.
_Key = tuple[int, str, tuple[str, ...]]


def _whole(texts: tuple[Pieces, ...], keys: tuple[_Key, ...], message: str) -> Iterator[tuple[int, Pieces]]:
    words = set(message.split())
    for number, longest, inner in keys:
        # A long piece may be broken over lines otherwise: its inner words are then all there.
        if longest not in message and not (inner and words.issuperset(inner)):
            continue
        if pattern(texts[number]).match(message) is not None:
            yield number, texts[number]


def _begun(texts: tuple[Pieces, ...], starts: tuple[str, ...], message: str) -> Iterator[tuple[int, int]]:
    start = "".join(message.split())[:_START]
    for number, first in enumerate(starts):
        if first and (start.startswith(first) or first.startswith(start)):
            yield common_beginning(texts[number], message), number


@lru_cache(maxsize=2)
def _texts(path: Path, changed: int) -> tuple[Pieces, ...]:
    return tuple(tuple(text.split("\x1f")) for text in open_packed(path).text("texts").split(BETWEEN))


@lru_cache(maxsize=2)
def _keys(path: Path, changed: int) -> tuple[_Key, ...]:
    longest = ((number, max(pieces, key=len)) for number, pieces in enumerate(_texts(path, changed)))
    return tuple((number, piece.strip(), _inner(piece)) for number, piece in longest if piece)


def _inner(piece: str) -> tuple[str, ...]:
    words = piece.split()[1:-1]
    return tuple(words) if len(words) > 2 else ()


@lru_cache(maxsize=2)
def _starts(path: Path, changed: int) -> tuple[str, ...]:
    return tuple("".join(pieces[0].split())[:_START] for pieces in _texts(path, changed))


def _sites(
    table: Packed, group: int, *, text: int | None = None, within: tuple[str, str] | None = None
) -> list[TableSite]:
    """The statements of a group; where it is given, only those of one text, or within one file's function."""
    releases = tuple(map(parse_release, table.head["releases"]))
    texts = _texts(table.path, table.changed)
    out = []
    for file, rows in _rows(table, group).items():
        if within is not None and file != within[0]:
            continue
        for function, exception, number, spans, *more in rows:
            if text is not None and number != text:
                continue
            if within is not None and function.rsplit(".", 1)[-1] != within[1]:
                continue
            guards = tuple(more[0].split("\n")) if more and more[0] else ()
            reads = tuple(more[1].split(" ")) if len(more) > 1 else ()
            held = tuple(_numbers(spans, len(releases)))
            out.append(TableSite(file, function, exception, texts[number], guards, reads, held, releases))
    return out


@lru_cache(maxsize=8)  # the groups of the table
def _rows(table: Packed, group: int) -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = json.loads(table.text(f"s{group:02}"))
    return found


def _numbers(spans: str, count: int) -> Iterable[tuple[int, int]]:
    if not spans:
        yield 0, count - 1
    for part in spans.split():
        first, _, last = part.partition("-")
        yield int(first), int(last) if last else count - 1


def read_sites(folder: Path) -> dict[str, dict[str, tuple[TableSite, ...]]]:
    """The table by release and file; empty without one."""
    table = open_packed(folder / SITES_FILE)
    releases: list[str] = table.head.get("releases", [])
    out: dict[str, dict[str, list[TableSite]]] = {release: {} for release in releases}
    for group in sorted(set(table.head.get("files", {}).values())):
        for site in _sites(table, group):
            for at in site.held():
                out[releases[at]].setdefault(site.file, []).append(site)
    return {release: {file: tuple(found) for file, found in files.items()} for release, files in out.items()}
