"""What a web page, a terminal or a supervisor made of a log on its way here, undone: entities for quotation marks, lines
broken at the terminal's width, lines that only say who wrote the next ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.log.source import LogSource
from mtpdoctor.patterns import lazy

_SAMPLE = 128 << 10  # bytes at the beginning that show it
_MOST = 64 << 20  # bytes of a larger log, which nobody has pasted, and which is left as it is
_ENTITIES = lazy(rb"File &(?:quot|#34);|[=\[(, ]&#(?:x27|39|039);\S|&lt;module&gt;")

_WIDTHS = range(60, 401)  # of terminals, in characters
_FULL = 4  # different lines at least that are as long as the terminal is wide
_PADDED = 0.6  # of all lines: more are as long because they were filled up with blanks
_GO_ON = 0.9  # of those, the share whose next line begins like the middle of one
_BEGINS = lazy(
    r"\[?20\d\d-\d\d-\d\d|\s*File \"|\s*Traceback|\s{4}|[\w.]*(?:Error|Exception|Warning): |(?:INFO|WARN\w*|ERROR|DEBUG|CRITICAL)\b|\[|\(\w[\w ]* pid="
    r"|[\w.-]+ *\| |[A-Z][a-z]{2} [ \d]\d \d\d:|\S+@\S+[#$]|[$+#>] |usage: |\w[\w -]*:\s+\d{1,3}%|\d+: "
)
_FRAME = lazy(r"\bFile \"[^\"]+\", line \d+, in (?:<\w+>|\w+)$")
_USUAL = 80  # of a terminal that nobody made wider: fewer full lines are enough
_MESSAGE = lazy(r"[\w.]*(?:Error|Exception): ")
_MIDDLE = lazy(r" ?[a-z\d'/)_.,-]")
_REST = lazy(r"[a-z_][a-z_\d]*$")  # of a function's name

_ANNOUNCED = " output:"
_ANNOUNCES = lazy(r"^(?:\S+ \S+ )?DEBG '[^']{1,200}' std(?:out|err) output:\s*$")


def announces(text: str) -> bool:
    """Does the line only say which program wrote the lines below it (supervisord at its level debug)?"""
    return _ANNOUNCED in text[-20:] and _ANNOUNCES.search(text) is not None


def as_printed(source: LogSource) -> LogSource:
    """``source``, or where it was pasted out of a page or a terminal: the lines as they were printed, in a source of its
    own. The numbers of lines stay: of a broken line the first one holds it all, the others are empty."""
    sample = source.read_at(0, _SAMPLE)
    if source.size > _MOST:
        return source
    entities = b"&" in sample and b'File "' not in sample and _ENTITIES.search(sample) is not None
    width = _width(sample)
    if not entities and width is None:
        return source
    text = source.read_at(0, source.size).decode("utf-8", "replace")
    if entities:
        import html

        text = html.unescape(re.sub("&nbsp;|&#160;", " ", text))
    if width is not None:
        text = _joined(text, width)
    out = LogSource.of_bytes(text.encode("utf-8", "surrogatepass"), source.name)
    out.truncated = source.truncated
    return out


def _width(sample: bytes) -> int | None:
    """The width of the terminal at which lines were broken; None where they were not."""
    longest = max(map(len, sample.split(b"\n")), default=0)
    if longest not in range(_WIDTHS.start, 4 * _WIDTHS.stop) or b"\x1b[" in sample[:4096]:
        return None
    lines = [line.rstrip("\r") for line in sample.decode("utf-8", "replace").split("\n")]
    width = max(map(len, lines))
    if width not in _WIDTHS:
        return None
    full = [i for i, line in enumerate(lines[:-1]) if len(line) == width]
    if len(full) > _PADDED * len(lines):
        return None
    if any(_is_broken_frame(lines, i) for i in full):
        return width
    going_on = sum(_goes_on(lines, i) for i in full)
    different = len({lines[i] for i in full})
    broken = any(_MESSAGE.match(lines[i]) and _MIDDLE.match(lines[i + 1]) for i in full)
    if width == _USUAL and going_on == len(full) and (broken or different >= 2):
        return width
    return width if different >= _FULL and going_on >= _GO_ON * len(full) else None


def _is_broken_frame(lines: Sequence[str], i: int) -> bool:
    """A line of a traceback that only its rest on the next one completes."""
    if _FRAME.search(lines[i]) is not None:
        return _REST.match(lines[i + 1]) is not None
    return _FRAME.search(lines[i] + lines[i + 1]) is not None


def _goes_on(lines: Sequence[str], i: int) -> bool:
    following = lines[i + 1]
    return bool(following.strip()) and _BEGINS.match(following) is None


def _joined(text: str, width: int) -> str:
    lines = text.split("\n")
    out: list[str] = []
    first = -1  # the line that the broken ones are put onto
    for i, line in enumerate(lines):
        bare = line.rstrip("\r")
        before = lines[i - 1].rstrip("\r") if i else ""
        if i and len(before) == width and bare and _BEGINS.match(bare) is None:
            out[first] += bare
            out.append("")
        else:
            first = i
            out.append(bare)
    return "\n".join(out)
