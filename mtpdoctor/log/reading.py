"""From files to a LogReading: one pass for literals, then only the neighbourhoods of what was found.

A log of up to ``WHOLE_LINES`` lines is read entirely; of a longer one only its head, its tail and the
lines around markers, so that hours of healthy serving cost nothing beyond the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

from mtpdoctor.log import attempts as _attempts
from mtpdoctor.log import command_line as _command_line
from mtpdoctor.log import event_patterns as _event_patterns
from mtpdoctor.log import events as _events
from mtpdoctor.log import observe as _observe
from mtpdoctor.log import shown as _shown
from mtpdoctor.log import stages as _stages
from mtpdoctor.log import traceback as _traceback
from mtpdoctor.log.attempts import Item
from mtpdoctor.log.events import RawEvent
from mtpdoctor.log.one_attempt import build_attempt
from mtpdoctor.log.pasted import announces, as_printed
from mtpdoctor.log.quoted import unquoted
from mtpdoctor.log.restarts import is_cut_off, told_before
from mtpdoctor.log.scan import ScannedLog, scan
from mtpdoctor.log.source import LogSource, open_source
from mtpdoctor.log.tracelines import is_frame
from mtpdoctor.log.types import Attempt, EventKind, FileInfo, Hits, Line, LogReading, Span

WHOLE_LINES = 4000
_HEAD, _TAIL = 100, 200
_FREQUENT_KEPT = 100  # lines from the front and from the back of a marker that healthy logs may be full of
_MARKER_KEPT = 400
_STEP = 64  # lines read on while a traceback is open
_MAX_STEPS = 40

# Literal -> lines before and after it that are read.
_MARKERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_observe.LITERALS, (0, 0)),
    **dict.fromkeys(_stages.LITERALS, (0, 0)),
    **dict.fromkeys(_attempts.LITERALS, (0, 1)),
    **dict.fromkeys(_command_line.LITERALS, (4, 60)),
    **dict.fromkeys(_event_patterns.LITERALS, (2, 6)),
    **dict.fromkeys(_traceback.LITERALS, (3, 60)),
    **_shown.LITERALS,
}
_MARKERS["checkpoint shards:"] = (0, 0)
_FEW = _event_patterns.FREQUENT | {"checkpoint shards:", "Capture ", "is free", "NVIDIA_", "device_name="}


def read_logs(
    paths: Sequence[str], literals: Iterable[str] = (), *, stdin: BinaryIO | None = None
) -> LogReading:
    """Reads the log files of one launch (``-`` is standard input) and looks for ``literals`` on the way.

    Raises UserError when an input cannot be read.
    """
    sources: list[LogSource] = []
    try:
        for path in paths:
            sources.append(open_source(path, stdin=stdin))
    except BaseException:
        for source in sources:
            source.close()
        raise
    return _read(sources, literals)


def read_sources(sources: Sequence[LogSource], literals: Iterable[str] = ()) -> LogReading:
    """The reading of inputs that are open already; they stay open, for the lines asked for later."""
    return _read(sources, literals)


def reading_from_text(text: str, literals: Iterable[str] = (), name: str = "log") -> LogReading:
    """The reading of a text that is at hand."""
    return _read([LogSource.of_bytes(text.encode("utf-8", "surrogatepass"), name)], literals)


def outcome(reading: LogReading) -> str:
    """``failed | ready | unfinished | empty`` of the last attempt.

    Ready: the server reached readiness (or was seen serving) and nothing fatal followed that was not due
    to a shutdown asked for. Unfinished: started, neither ready nor failed.
    """
    attempt = reading.attempt
    if attempt is None:
        return "empty"
    if any(e.fatal for e in attempt.events):
        return "failed"
    if attempt.ready is not None or any(m.stage is _stages.Stage.SERVING for m in attempt.marks):
        return "ready"
    return "unfinished"


# -- reading ---------------------------------------------------------------------------------------------


def _read(sources: Sequence[LogSource], literals: Iterable[str]) -> LogReading:
    scanned: ScannedLog = scan(
        [as_printed(source) for source in sources], dict.fromkeys([*literals, *_MARKERS])
    )
    return reading_of(scanned, scanned.files, scanned.notes)


def reading_of(hits: Hits, files: Sequence[FileInfo], notes: Sequence[str] = ()) -> LogReading:
    """The reading of scanned files. ``hits`` must have been asked for the markers too."""
    lines, events = _Reader(hits, files).run()
    launches, restarted = _launches(lines, events, files)
    said = list(notes)
    if len(launches) > 1:
        said.append(
            f"the log holds {len(launches)} launch attempts; the last one counts "
            f"(from line {launches[-1].first[1]})"
        )
        earlier = told_before(launches)
        if earlier is not None:
            said.append(earlier)
    if restarted is not None:
        said.append(
            f"the log ends while the server is being started once more (from line {restarted}); "
            "the launch before that counts"
        )
    return LogReading(
        files=tuple(files),
        attempts=tuple(launches),
        hits=hits,
        is_sglang=_is_sglang(lines, launches),
        notes=tuple(said),
    )


def _is_sglang(lines: Sequence[Line], launches: Sequence[Attempt]) -> bool:
    if any(
        (a.marks and a.marks[0].stage is not _stages.Stage.WARMUP) or a.command is not None for a in launches
    ):
        return True
    return any(
        "sglang" in text.lower() or "sgl_kernel" in text or text.startswith(_stages.BATCH_LINES)
        for text in (line.body for line in lines)
    )


def _launches(
    lines: Sequence[Line], events: Sequence[RawEvent], files: Sequence[FileInfo]
) -> tuple[list[Attempt], int | None]:
    """The launches, and the line from which on one more begins that the log tells nothing of."""
    inside: set[tuple[int, int, int]] = set()
    for event in events:
        for node in event.traceback.chain if event.traceback is not None else ():
            inside.update(line.key for line in node.lines)
    plain = [line for line in lines if line.key not in inside]
    items = _attempts.items_of(plain, events)
    spans: list[list[Span]] = []  # per file, its attempts
    for number, info in enumerate(files):
        own = [i for i in items if i.line.file == number]
        if info.line_count == 0 or not any(x.file == number and x.text.strip() for x in lines):
            spans.append([])
            continue
        starts = [1, *(n for n in _attempts.boundaries(own) if n > 1)]
        ends = [*(n - 1 for n in starts[1:]), max(info.line_count, 1)]
        spans.append([Span(number, a, b) for a, b in zip(starts, ends, strict=True)])
    launches = _built(spans, items, lines)
    if not is_cut_off(launches):
        return launches, None
    kept = [s[:-1] if len(s) == len(launches) else s for s in spans]
    return _built(kept, items, lines), launches[-1].first[1]


def _built(spans: Sequence[Sequence[Span]], items: Sequence[Item], lines: Sequence[Line]) -> list[Attempt]:
    """The launches of these spans (per file, its launches)."""
    total = max((len(s) for s in spans), default=0)
    launches = []
    for index in range(total):
        # the files of one launch end together: their last attempts belong to each other
        mine = [s[i] for s in spans if 0 <= (i := index - total + len(s)) < len(s)]
        launches.append(
            build_attempt(
                index,
                mine,
                [i for i in items if _within(i.anchor, mine)],
                [x for x in lines if _within(x, mine)],
                # only the last attempt is asked for more than its course
                [x for x in lines if not _within(x, mine)] if total > 1 and index == total - 1 else (),
            )
        )
    return launches


def _within(line: Line, spans: Sequence[Span]) -> bool:
    return any(s.file == line.file and s.first <= line.number <= s.last for s in spans)


class _Reader:
    """Reads the regions worth reading and parses tracebacks and events out of them."""

    def __init__(self, hits: Hits, files: Sequence[FileInfo]) -> None:
        self._hits = hits
        self._files = files
        self._parser = _traceback.TracebackParser()
        self._lines: list[Line] = []
        self._plain: list[Line] = []

    def run(self) -> tuple[list[Line], list[RawEvent]]:
        """All lines read, and all events, both in order."""
        regions = self._regions()
        for number, info in enumerate(self._files):
            self._file(number, info.line_count, regions.get(number, []))
            self._parser.cut_off()
        events = [_events.traceback_event(found) for found in self._parser.finish()]
        usage: set[tuple[int, str]] = set()
        previous: Line | None = None
        for line in self._plain:
            place = (line.file, line.stream)
            if "usage: " in line.body:
                usage.add(place)
            event = _events.status_event(previous, line) or _events.line_event(
                line, after_usage=place in usage
            )
            previous = line
            if event is not None:
                if event.kind is EventKind.ARGPARSE:
                    usage.discard(place)
                events.append(event)
        events.sort(key=lambda e: e.line.key)
        return self._lines, _events.with_stacks(events, self._plain)

    def _regions(self) -> dict[int, list[tuple[int, int]]]:
        regions: dict[int, list[tuple[int, int]]] = {}
        long = set()
        for number, info in enumerate(self._files):
            if info.line_count <= WHOLE_LINES:
                regions[number] = [(1, info.line_count)] if info.line_count else []
            else:
                long.add(number)
                regions[number] = [(1, _HEAD), (info.line_count - _TAIL, info.line_count)]
        if not long:
            return regions
        for literal, (before, after) in _MARKERS.items():
            found = self._hits.lines(literal)
            kept = _FREQUENT_KEPT if literal in _FEW else _MARKER_KEPT
            if len(found) > 2 * kept:
                found = found[:kept] + found[-kept:]
            for line in found:
                if line.file in long:
                    regions[line.file].append((line.number - before, line.number + after))
        return {number: _merged(ranges, self._files[number].line_count) for number, ranges in regions.items()}

    def _file(self, number: int, count: int, regions: Sequence[tuple[int, int]]) -> None:
        at = 0  # last line read
        for first, last in regions:
            first = max(first, at + 1)
            if first > last:
                continue
            if first > at + 1:
                first = self._backwards(number, first, at)
            if first > at + 1:
                self._parser.cut_off()
            self._take(number, first, last)
            at = last
            steps = 0
            while self._parser.busy and at < count and steps < _MAX_STEPS:
                upto = min(at + _STEP, count)
                self._take(number, at + 1, upto)
                at = upto
                steps += 1

    def _backwards(self, number: int, first: int, floor: int) -> int:
        """The region may begin inside a traceback: go back to its head."""
        for _ in range(5):
            lines = self._hits.window(number, first, first)
            if not lines or not (is_frame(lines[0]) or lines[0].body.startswith("    ")):
                break
            first = max(first - _STEP, floor + 1)
            if first == floor + 1:
                break
        return first

    def _take(self, number: int, first: int, last: int) -> None:
        for start in range(first, last + 1, 2000):
            for line in self._hits.window(number, start, min(start + 1999, last)):
                if announces(line.text):
                    continue
                line = unquoted(line)
                self._lines.append(line)
                if not self._parser.feed(line):
                    self._plain.append(line)


def _merged(ranges: Iterable[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in sorted((max(a, 1), min(b, count)) for a, b in ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        elif first <= last:
            out.append((first, last))
    return out
