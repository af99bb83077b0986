"""Times that logs print, in seconds, to be subtracted from one another. Pure."""

from __future__ import annotations

from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

_TIME = lazy(r"(?:(\d{4})-(\d\d)-(\d\d)[ T])(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
_EPOCH = lazy(r"(1[5-9]\d{8}(?:\.\d+)?)\Z")


def seconds_of(time: str | None) -> float | None:
    """Seconds by the log's own clock, to be compared with others of the same log; None: it tells no date."""
    if not time:
        return None
    m = _TIME.search(time)
    if m is None:
        m = _EPOCH.match(time.strip())
        return float(m[1]) if m else None
    import calendar

    year, month, day, hour, minute, second = (int(m[i]) for i in range(1, 7))
    try:
        whole = calendar.timegm((year, month, day, hour, minute, second))
    except (ValueError, OverflowError):
        return None
    return whole + (float(f"0.{m[7]}") if m[7] else 0.0)


def between(first: Line | None, second: Line | None) -> float | None:
    """Seconds from one line to another; None where that cannot be told.

    A program's own clock and the one of what carries its output may be of different time zones, so that only
    times of one kind are compared.
    """
    if first is None or second is None or first.file != second.file or _own(first) != _own(second):
        return None
    a, b = seconds_of(first.time), seconds_of(second.time)
    return b - a if a is not None and b is not None and b >= a else None


def _own(line: Line) -> bool:
    """Whether the line's time is the program's own: the ``[time rank]`` that ``body`` goes without."""
    return line.body != line.text
