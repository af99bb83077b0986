"""A log's text for a bundle: as a whole, or its head, its tail and the surroundings of what the diagnosis rests on.

What is left out leaves empty lines behind, so that line numbers stay; the first of them says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.bundle.types import LogText
from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.clean import strip_bytes
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.types import Attempt, Line

LEFT_OUT = "[mtpdoctor bundle: {count} lines left out]"
_PIECE = 1 << 20
_STEPS = (
    (3000, 3000, 400),
    (1000, 1000, 150),
    (300, 400, 60),
    (100, 200, 20),
)  # head, tail, around; in lines
_LINE_CAP = 64 << 10  # bytes kept of a line in a log that is cut


def log_text(source: LogSource, file: int, limit: int, report: Report, attempt: Attempt | None) -> LogText:
    """The text of ``source``, the input number ``file`` of ``report``, in at most about ``limit`` bytes."""
    if source.size <= limit:
        text = "\n".join(_decode(line) for line in _lines(source))
        return LogText(source.name, text, text.count("\n") + bool(text))
    count, sizes = _measure(source)
    ranges: list[tuple[int, int]] = []
    for head, tail, around in _STEPS:
        ranges = _merged(
            [(1, head), (count - tail + 1, count), *_windows(report, attempt, file, around)], count
        )
        if sum(min(sizes[n - 1], _LINE_CAP) for a, b in ranges for n in range(a, b + 1)) <= limit:
            break
    return _cut(source, ranges, count)


def _lines(source: LogSource) -> Iterator[bytes]:
    rest = b""
    at = 0
    while at < source.size:
        piece = source.read_at(at, _PIECE)
        if not piece:
            break
        at += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    yield rest


def _decode(line: bytes) -> str:
    return strip_bytes(line).decode("utf-8", "replace")


def _measure(source: LogSource) -> tuple[int, Sequence[int]]:
    from array import array

    sizes = array("L", (min(len(line), 1 << 30) for line in _lines(source)))
    if sizes and not sizes[-1]:
        sizes.pop()  # behind the last line feed there is no line
    return len(sizes), sizes


def _windows(report: Report, attempt: Attempt | None, file: int, around: int) -> Iterator[tuple[int, int]]:
    near = [line for d in report.diagnoses for line in (d.root, *d.evidence, *d.chain, *d.consequences[:20])]
    near += [f.line for f in report.findings]
    for line in near:
        if line.file == file:
            yield line.number - around, line.number + around
    for line in _telling(attempt):
        if line.file == file:
            yield line.number - 5, line.number + 5
    for event in attempt.events[:200] if attempt is not None else ():
        if event.traceback is not None and event.line.file == file:
            numbers = [x.number for x in event.traceback.lines] or [event.line.number]
            yield min(numbers) - 5, max(numbers) + 5


def _telling(attempt: Attempt | None) -> Iterator[Line]:
    """The lines that facts were read off, and where stages begin and things happen."""
    if attempt is None:
        return
    yield from (o.line for o in attempt.observations)
    yield from (m.line for m in attempt.marks[:500])
    yield from (e.line for e in attempt.events[:500])
    for line in (attempt.command, attempt.ready, attempt.shutdown):
        if line is not None:
            yield line


def _merged(ranges: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for a, b in sorted((max(a, 1), min(b, count)) for a, b in ranges):
        if out and a <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], b))
        elif a <= b:
            out.append((a, b))
    return out


def _cut(source: LogSource, ranges: Sequence[tuple[int, int]], count: int) -> LogText:
    out: list[str] = []
    todo = list(ranges)
    ends = {last for _, last in ranges}
    left_out = 0
    for number, line in enumerate(_lines(source), 1):
        while todo and number > todo[0][1]:
            todo.pop(0)
        if todo and number >= todo[0][0]:
            text = _decode(line[:_LINE_CAP])
            out.append(
                text
                + (
                    f" [mtpdoctor bundle: {len(line) - _LINE_CAP} bytes left out]"
                    if len(line) > _LINE_CAP
                    else ""
                )
            )
        elif number > count:
            out.append("")  # behind the last line feed
        else:
            first = not out or number - 1 in ends
            gap = (todo[0][0] if todo else count + 1) - number
            out.append(LEFT_OUT.format(count=gap) if first else "")
            left_out += 1
    return LogText(source.name, "\n".join(out), count, left_out)
