"""The order in which failures happened.

Ranks write when their buffers are flushed and nodes into files of their own, so what stands first in a
log need not have come first. Where every fatal failure carries SGLang's or PyTorch's own time, the time
decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mtpdoctor.diagnose.failures import Failure
from mtpdoctor.patterns import lazy

_TIME = lazy(r"\[(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)?[ \]]")
_TORCH = lazy(r"(?:\[rank\d+\]:)?\[[EWF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)")  # month, day; no year
# Clocks of hosts agree to seconds, but may show different time zones: times of different files that lie
# further apart (in seconds) are not compared.
_COMPARABLE = 45 * 60


def in_time(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """The failures, the fatal ones among them ordered by time where all of them tell it."""
    fatal = [f for f in failures if f.fatal]
    years = {m[1][:4] for f in fatal if (m := _TIME.match(f.start.text))}
    year = years.pop() if len(years) == 1 else None
    times = [_time_of(f, year) for f in fatal]
    known = [t for t in times if t is not None]
    if len(fatal) < 2 or len(known) < len(fatal):
        return tuple(failures)
    apart = {(f.start.file, f.start.stream) for f in fatal}
    if len(apart) > 1 and (max(known) - min(known)).total_seconds() > _COMPARABLE:
        return tuple(failures)
    ordered = iter(sorted(zip(known, fatal, strict=True), key=lambda pair: (pair[0], pair[1].start.key)))
    return tuple(next(ordered)[1] if f.fatal else f for f in failures)


def _time_of(failure: Failure, year: str | None) -> datetime | None:
    text = failure.start.text
    if found := _TIME.match(text):
        told = found[1]
    elif year is not None and (found := _TORCH.match(text)):
        told = f"{year}-{found[1]:0>2}-{found[2]} {found[3]}"
    else:
        return None
    try:
        return datetime.fromisoformat(told)
    except ValueError:
        return None
