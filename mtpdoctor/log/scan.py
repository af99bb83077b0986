"""One pass over the bytes of a log: where the literals stand, where the lines begin.

The pass keeps a sparse index and, per literal, the numbers of the first and last lines that hold it,
so memory does not grow with the log. Lines are cut, cleaned and checked only when asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mtpdoctor.log.engines import Search, make_engine
from mtpdoctor.log.index import FileIndex
from mtpdoctor.log.lines import TEXT_CAP
from mtpdoctor.log.rawtext import search_keys, searchable
from mtpdoctor.log.reader import LineReader
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.transport import Transports, learn
from mtpdoctor.log.types import FileInfo, Line

CHUNK = 256 << 10  # bytes read at a time: fits the CPU's cache
KEPT = 2000  # lines kept from the front and from the back, per literal and file
# A literal that stands nearly everywhere is cheaper to count than to report: it leaves the engine
# once it occurred this often in all and more densely than one in so many bytes.
_HOT_TOTAL = 3 * KEPT
_HOT_BYTES = 2048
_SAMPLE = 96 << 10
_REMEMBERED = 40_000  # lines kept after they were checked once; more are made again when asked for


class _Found:
    """Occurrences of one key in one file. ``first`` and ``last`` are line numbers, each line once."""

    __slots__ = ("count", "first", "hot", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []
        self.last: deque[int] = deque(maxlen=KEPT)
        self.hot = False  # only counted since; the last lines are found from the end when asked for

    def add(self, number: int) -> None:
        self.count += 1
        if len(self.first) < KEPT:
            if not self.first or self.first[-1] != number:
                self.first.append(number)
        elif (self.last[-1] if self.last else self.first[-1]) != number:
            self.last.append(number)


class _Chunk(NamedTuple):
    """A stretch of whole lines (but for lines longer than a chunk), as literals are looked for in it.

    ``text[:end]`` counts, hits that end within ``text[:skip]`` were seen in the chunk before. ``raw``
    are the ``size`` bytes at ``offset`` of the source that ``text`` was made of: itself, mostly.
    """

    text: bytes
    end: int
    skip: int
    raw: bytes
    size: int
    offset: int


@lru_cache(maxsize=8)
def _keys_of(
    literals: tuple[str, ...], json_levels: int
) -> tuple[Mapping[str, tuple[bytes, ...]], tuple[bytes, ...], Mapping[bytes, list[str]]]:
    """What is looked for in the raw bytes: by literal, all of it in order, and which literals it stands for.
    Small logs read one after the other share it."""
    keys = {literal: search_keys(literal, json_levels) for literal in literals}
    owners: dict[bytes, list[str]] = {}
    for literal, some in keys.items():
        for key in some:
            owners.setdefault(key, []).append(literal)
    return keys, tuple(sorted(owners)), owners


class _FileScan:
    """One file: the pass over it, and what is known after."""

    def __init__(self, source: LogSource, file: int) -> None:
        self.source = source
        self.transports = learn_from(source)
        self.json = self.transports.json_levels
        self.index = FileIndex(source)
        self.reader = LineReader(self.index, file, self.transports)
        self.keys: Mapping[str, tuple[bytes, ...]] = {}
        self._owners: Mapping[bytes, list[str]] = {}
        self.found: dict[bytes, _Found] = {}
        self._number = 1  # of the line in which the next chunk begins

    def run(self, literals: tuple[str, ...], prefer: str | None, size: int) -> str:
        """The pass. Returns the name of the engine that served; ``size``: bytes to read in all."""
        self.keys, every, self._owners = _keys_of(literals, self.json)
        keys = list(every)
        hot: list[bytes] = []
        engine = make_engine(keys, prefer, size=size)
        with Search(ahead=engine.name == "hyperscan" and self.source.size > 4 * CHUNK) as search:
            for chunk in self._chunks(max(map(len, keys), default=1)):
                for done in search.put(engine, (keys, tuple(hot), chunk), chunk.text):
                    too_many = self._take(*done)
                    if too_many:
                        hot += [key for key in too_many if key not in hot]
                        keys = [key for key in keys if key not in hot]
                        engine = make_engine(keys, engine.name)
            for done in search.rest():
                self._take(*done)
        self.index.finish(self._number)
        for key in hot:
            self.found[key].hot = True
        return engine.name

    def _chunks(self, longest: int) -> Iterator[_Chunk]:
        source = self.source
        offset, skip = 0, 0
        while offset < source.size:
            data = source.read_at(offset, CHUNK)
            if not data:  # shrank under the reader
                source.size = offset
                break
            end = data.rfind(b"\n") + 1
            inside = not end and offset + len(data) < source.size  # of a line longer than a chunk
            if inside or offset + len(data) >= source.size:
                end = len(data)
            text = searchable(data, self.json > 0)
            if text is data:
                yield _Chunk(data, end, skip, data, end, offset)
            else:
                text = searchable(data[:end], self.json > 0) if end < len(data) else text
                before = len(searchable(data[:skip], self.json > 0)) if skip else 0
                yield _Chunk(text, len(text), before, data, end, offset)
            # room for the longest literal with some escape sequences inside
            skip = min(2 * longest + 256, end - 1) if inside else 0
            offset += end - skip

    def _take(
        self, context: tuple[list[bytes], tuple[bytes, ...], _Chunk], hits: list[tuple[int, int]]
    ) -> list[bytes]:
        """Books the lines and the hits of a chunk. Returns the keys that occur too densely."""
        keys, hot, (text, end, skip, raw, size, offset) = context
        found = self.found
        for key in hot:
            found[key].count += text.count(key, max(skip - len(key) + 1, 0), end)
        at, number = 0, self._number
        marks: list[tuple[int, int]] = []
        for i, start in hits:
            if start >= end:
                break  # the unfinished line at the end comes again with the next chunk
            key = keys[i]
            if skip and start + len(key) <= skip:
                continue
            if start > at:
                number += text.count(b"\n", at, start)
                at = start
                marks.append((start, number))
                if text is raw:
                    self.index.place(number, offset + start)
            entry = found.get(key)
            if entry is None:
                entry = found[key] = _Found()
            entry.add(number)
        self._number += self.index.add(raw, size, offset, self._number, marks if text is raw else ())
        most = len(text) // _HOT_BYTES
        if len(hits) <= max(most, 16):
            return []
        counts: dict[int, int] = {}
        for i, _ in hits:
            counts[i] = counts.get(i, 0) + 1
        return [
            keys[i]
            for i, n in counts.items()
            if n > most and (entry := found.get(keys[i])) is not None and entry.count > _HOT_TOTAL
        ]

    def numbers(self, literal: str) -> tuple[list[int], bool]:
        """Numbers of the lines that may hold ``literal``, ascending, and whether that is all of them
        (else the first and the last KEPT)."""
        out: list[int] = []
        whole = True
        for key in self.keys[literal]:
            found = self.found.get(key)
            if found is None:
                continue
            if found.hot:
                found.last = deque(self._from_the_end(key, found.first[-1]))
                found.hot = False
            out = [*found.first, *found.last] if not out else sorted({*out, *found.first, *found.last})
            whole = whole and len(found.last) < KEPT
        return out, whole

    def held(self) -> Iterator[str]:
        """The literals that the raw bytes hold somewhere."""
        for key in self.found:
            yield from self._owners[key]

    def count(self, literal: str) -> int:
        """Occurrences in the raw bytes."""
        return sum(self.found[key].count for key in self.keys[literal] if key in self.found)

    def _from_the_end(self, key: bytes, above: int) -> list[int]:
        """Numbers of the last KEPT lines that hold ``key``, of those after line ``above``."""
        out: list[int] = []
        for start, number, size in self.index.blocks_from_end():
            text = searchable(self.source.read_at(start, size), self.json > 0)
            here: list[int] = []
            at, hit = 0, text.find(key)
            while hit >= 0:
                number += text.count(b"\n", at, hit)
                at = hit
                if number > above and (not here or here[-1] != number):
                    here.append(number)
                hit = text.find(key, hit + 1)
            out = here + out
            if len(out) >= KEPT or number <= above:
                break
        return out[-KEPT:]


def learn_from(source: LogSource) -> Transports:
    """The transports of a source, from whole lines at its head, its middle and its end."""
    size = source.size
    if size <= 3 * _SAMPLE:
        return learn([source.read_at(0, size)])
    samples = []
    for at in (0, size // 2, size - _SAMPLE):
        piece = source.read_at(at, _SAMPLE)
        first = piece.find(b"\n") + 1 if at else 0
        samples.append(piece[first : piece.rfind(b"\n") + 1 or None])
    return learn(samples)


class ScannedLog:
    """The result of a pass over one or several files: implements ``types.Hits``.

    ``engine`` names the engine that served; ``files`` is what ``LogReading.files`` wants.
    """

    def __init__(self, scans: Sequence[_FileScan], engine: str) -> None:
        self._scans = tuple(scans)
        self.engine = engine
        self.files = tuple(
            FileInfo(s.source.name, s.source.size, s.index.line_count, s.source.truncated) for s in scans
        )
        # Most literals occur nowhere, and every rule asks for its own.
        self._asked: Collection[str] = scans[0].keys if scans else ()
        self._held = {literal for s in scans for literal in s.held()}
        self._verified: dict[str, tuple[list[Line], bool]] = {}
        self._spare = _REMEMBERED

    @property
    def transports(self) -> tuple[tuple[str, ...], ...]:
        """Per file, the names of the transports that were learned from it."""
        return tuple(s.transports.names for s in self._scans)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd about the input, for people; complete once the lines wanted were asked for."""
        out = [f"{f.name}: {f.truncated}" for f in self.files if f.truncated]
        for s in self._scans:
            if s.reader.shortened:
                out.append(
                    f"{s.source.name}: lines longer than {TEXT_CAP // 1024} KiB are shown in part "
                    f"(line {min(s.reader.shortened)} is the first)"
                )
        return tuple(out)

    def among(self, literals: Collection[str]) -> list[str]:
        """Those of the literals that stand somewhere in the raw bytes."""
        return [literal for literal in self._held if literal in literals]

    def lines(self, literal: str) -> list[Line]:
        """Logical lines whose ``text`` holds ``literal``, in reading order (see ``types.Hits``).
        Raises KeyError for a literal that was not given to ``scan``."""
        return list(self._verify(literal)[0])

    def count(self, literal: str) -> int:
        """How often the literal occurs in all: exact in clean text up to thousands of lines, beyond
        that as counted in the raw bytes (transport prefixes included)."""
        if literal not in self._held and literal in self._asked:
            return 0
        lines, all_of_them = self._verify(literal)
        if all_of_them:
            return sum(line.text.count(literal) for line in lines)
        return sum(s.count(literal) for s in self._scans)

    def _verify(self, literal: str) -> tuple[list[Line], bool]:
        known = self._verified.get(literal)
        if known is not None:
            return known
        unique: dict[tuple[int, int, int], Line] = {}
        whole = True
        for s in self._scans:
            numbers, all_of_them = s.numbers(literal)
            whole = whole and all_of_them
            for number in numbers:
                for line in s.reader.holding(number, literal):
                    unique[line.key] = line
        result = (list(unique.values()), whole)
        if len(unique) <= self._spare:
            self._verified[literal] = result
            self._spare -= len(unique)
        return result

    def line(self, file: int, number: int) -> tuple[Line, ...]:
        """The logical lines of one physical line; none when there is no such line, and for the later
        records of a line that the container runtime cut (they belong to the first)."""
        return self._scans[file].reader.lines(number)

    def window(self, file: int, first: int, last: int) -> list[Line]:
        """Logical lines of the physical lines ``first``..``last`` (inclusive, clipped)."""
        return self._scans[file].reader.window(first, last)

    def close(self) -> None:
        for s in self._scans:
            s.source.close()


def scan(sources: Sequence[LogSource], literals: Iterable[str], *, engine: str | None = None) -> ScannedLog:
    """Looks for all ``literals`` in all ``sources``, in one pass over each.

    ``engine`` forces one of ``engines.ENGINES``. Raises ValueError for an empty literal, UserError
    when reading fails.
    """
    wanted = tuple(dict.fromkeys(literals))
    if "" in wanted:
        raise ValueError("an empty literal occurs everywhere")
    total = sum(s.size for s in sources)
    scans: list[_FileScan] = []
    name = engine or ""
    for file, source in enumerate(sources):
        s = _FileScan(source, file)
        name = s.run(wanted, engine, total)
        scans.append(s)
    return ScannedLog(scans, name)
