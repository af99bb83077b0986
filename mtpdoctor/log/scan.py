"""One pass over the bytes of a log: where the literals stand, where the lines begin.

The pass keeps a sparse index (one entry per 64 KiB) and, per literal, the numbers of the first and
last lines that hold it, so memory does not grow with the log. Lines are cut, cleaned and checked
only when asked for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from mtpdoctor.log.engines import Engine, make_engine
from mtpdoctor.log.index import FileIndex, LineReader
from mtpdoctor.log.lines import TEXT_CAP
from mtpdoctor.log.rawtext import searchable, search_key
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.transport import Transports, learn
from mtpdoctor.log.types import FileInfo, Line

CHUNK = 1 << 20  # bytes read at a time
KEPT = 2000  # hits kept from the front and from the back, per literal and file
_HOT_TOTAL = 20_000  # a literal that occurs this often ...
_HOT_CHUNK = 1000  # ... and this often in one chunk is taken out of the engine
_SAMPLE = 96 << 10


class _Found:
    """Occurrences of one key in one file. ``first`` and ``last`` are line numbers, each line once."""

    __slots__ = ("count", "first", "last", "hot")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []
        self.last: deque[int] = deque(maxlen=KEPT)
        self.hot = False  # no longer looked for: the last lines are found from the end when asked for

    def add(self, number: int) -> None:
        self.count += 1
        if len(self.first) < KEPT:
            if not self.first or self.first[-1] != number:
                self.first.append(number)
        elif (self.last[-1] if self.last else self.first[-1]) != number:
            self.last.append(number)


class _FileScan:
    """One file after the pass."""

    def __init__(self, source: LogSource, number: int) -> None:
        self.source = source
        self.transports = learn_from(source)
        self.json = self.transports.has_json
        self.index = FileIndex(source)
        self.reader = LineReader(self.index, number, self.transports)
        self.found: dict[bytes, _Found] = {}

    def run(self, keys: Sequence[bytes], engine_name: str | None, size: int) -> str:
        """The pass. Returns the name of the engine that served."""
        active = list(keys)
        engine = make_engine(active, engine_name, size=size)
        name = engine.name
        overlap = max((len(k) for k in keys), default=1) - 1 + 64
        hot: list[bytes] = []
        offset, number, skip = 0, 1, 0
        while offset < self.source.size:
            data = self.source.read_at(offset, CHUNK)
            if not data:
                self.source.size = offset
                break
            end = data.rfind(b"\n") + 1
            last = offset + len(data) >= self.source.size
            inside_line = not end and not last  # a line longer than a chunk
            if last or inside_line:
                end = len(data)
            body = data if end == len(data) else data[:end]
            newlines = self.index.add(body, offset, number, skip)
            text = searchable(body, self.json)
            skipped = len(searchable(body[:skip], self.json)) if skip and text is not body else skip
            self._collect(engine, active, text, number, skipped, hot)
            for key in hot:
                found = self.found[key]
                if key in active:
                    active.remove(key)
                    engine = make_engine(active, engine.name)
                    found.hot = True
                else:
                    found.count += text.count(key) - (text[:skipped].count(key) if skip else 0)
            number += newlines
            skip = min(overlap, end - 1) if inside_line else 0
            offset += end - skip
        self.index.finish(number)
        return name

    def _collect(
        self, engine: Engine, active: Sequence[bytes], text: bytes, number: int, skip: int, hot: list[bytes]
    ) -> None:
        hits = engine.find(text)
        if not hits:
            return
        found = self.found
        at = 0
        for i, start in hits:
            if start + len(active[i]) <= skip:
                continue  # seen in the chunk before
            if start > at:
                number += text.count(b"\n", at, start)
                at = start
            entry = found.get(active[i])
            if entry is None:
                entry = found[active[i]] = _Found()
            entry.add(number)
        if len(hits) > _HOT_CHUNK:
            counts: dict[int, int] = {}
            for i, _ in hits:
                counts[i] = counts.get(i, 0) + 1
            for i, n in counts.items():
                if n > _HOT_CHUNK and found[active[i]].count > _HOT_TOTAL:
                    hot.append(active[i])

    def numbers(self, key: bytes) -> list[int]:
        """Numbers of the lines that hold ``key``: the first and the last KEPT, ascending."""
        found = self.found.get(key)
        if found is None:
            return []
        if found.hot:
            found.last = deque(self._from_the_end(key, found.first[-1]), maxlen=KEPT)
            found.hot = False
        return found.first + list(found.last)

    def _from_the_end(self, key: bytes, above: int) -> list[int]:
        """Numbers of the last KEPT lines holding ``key``, only lines after ``above``."""
        out: list[int] = []
        for start, number, size in self.index.blocks_from_end():
            text = searchable(self.source.read_at(start, size), self.json)
            here: list[int] = []
            line, at, hit = number, 0, text.find(key)
            while hit >= 0:
                line += text.count(b"\n", at, hit)
                at = hit
                if line > above and (not here or here[-1] != line):
                    here.append(line)
                hit = text.find(key, hit + 1)
            out = here + [n for n in out if not here or n != here[-1]]
            if len(out) >= KEPT or number <= above:
                break
        return out[-KEPT:]


def learn_from(source: LogSource) -> Transports:
    """The transports of a source, from whole lines at its head, its middle and its end."""
    size = source.size
    if size <= 3 * _SAMPLE:
        return learn([source.read_at(0, size)])
    samples = [source.read_at(0, _SAMPLE)]
    samples[0] = samples[0][: samples[0].rfind(b"\n") + 1 or None]
    for at in (size // 2, size - _SAMPLE):
        piece = source.read_at(at, _SAMPLE)
        samples.append(piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1 or None])
    return learn(samples)


class ScannedLog:
    """The result of a pass over one or several files: implements ``types.Hits``."""

    def __init__(self, scans: Sequence[_FileScan], keys: dict[str, tuple[bytes, bytes]], engine: str) -> None:
        self._scans = tuple(scans)
        self._keys = keys
        self.engine = engine
        self.files = tuple(
            FileInfo(s.source.name, s.source.size, s.index.line_count, s.source.truncated) for s in scans
        )
        self._lines: OrderedDict[str, tuple[list[Line], bool]] = OrderedDict()

    @property
    def transports(self) -> tuple[tuple[str, ...], ...]:
        """Per file, the names of the transports that were learned from it."""
        return tuple(s.transports.names for s in self._scans)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd about the input, for people."""
        out = [f"{f.name}: {f.truncated}" for f in self.files if f.truncated]
        for scan in self._scans:
            if scan.reader.cut:
                out.append(
                    f"{scan.source.name}: lines longer than {TEXT_CAP // 1024} KiB are shown in part "
                    f"(first: line {min(scan.reader.cut)})"
                )
        return tuple(out)

    def _key(self, scan: _FileScan, literal: str) -> bytes:
        return self._keys[literal][scan.json]

    def lines(self, literal: str) -> list[Line]:
        """Logical lines whose ``text`` holds ``literal``, in reading order (see ``types.Hits``).
        Raises KeyError for a literal that was not given to ``scan``."""
        return list(self._verified(literal)[0])

    def _verified(self, literal: str) -> tuple[list[Line], bool]:
        """The lines, and whether they are all."""
        known = self._lines.get(literal)
        if known is not None:
            return known
        self._keys[literal]  # KeyError for a stranger
        out: list[Line] = []
        whole = True
        for scan in self._scans:
            key = self._key(scan, literal)
            numbers = scan.numbers(key) if key else []
            found = scan.found.get(key)
            whole = whole and (found is None or not found.last)
            for number in numbers:
                out.extend(scan.reader.holding(number, literal))
        if len(out) > 1:
            out = list({line.key: line for line in out}.values())
        self._lines[literal] = (out, whole)
        if len(self._lines) > 512:
            self._lines.popitem(last=False)
        return out, whole

    def count(self, literal: str) -> int:
        """How often the literal occurs in all: exact in clean text up to thousands of lines, beyond
        that as counted in the raw bytes (a transport prefix may then count too)."""
        lines, whole = self._verified(literal)
        if whole:
            return sum(line.text.count(literal) for line in lines)
        return sum(
            found.count for s in self._scans if (found := s.found.get(self._key(s, literal))) is not None
        )

    def line(self, file: int, number: int) -> tuple[Line, ...]:
        """The logical lines of one physical line; empty when there is no such line, and for the later
        pieces of a line that the container runtime cut (they belong to the first)."""
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
    keys: dict[str, tuple[bytes, bytes]] = {}
    for literal in literals:
        if not literal:
            raise ValueError("an empty literal occurs everywhere")
        keys[literal] = (literal.encode("utf-8", "surrogatepass"), search_key(literal))
    total = sum(s.size for s in sources)
    scans = []
    name = engine or "python"
    for number, source in enumerate(sources):
        file_scan = _FileScan(source, number)
        wanted = sorted({pair[file_scan.json] for pair in keys.values()} - {b""})
        name = file_scan.run(wanted, engine, total)
        scans.append(file_scan)
    return ScannedLog(scans, keys, name)
