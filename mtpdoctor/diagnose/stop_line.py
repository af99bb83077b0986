"""A log that just stops, in one line: for lists of launches. Pure; the texts are not cleaned."""

from __future__ import annotations

from mtpdoctor.diagnose.types import Stop

LATE = 4  # ranks named


def stop_line(stop: Stop) -> str:
    """ "ends at weights; 62 of 100 shards; if it hangs: Weights that come slowly ..."."""
    if stop.ended is not None and not stop.overdue:
        return f"stopped from outside at {stop.stage}"
    if stop.answers is not None:
        return f"answers requests, not said to be ready (line {stop.answers.number})"
    words = [f"ends at {stop.stage}"]
    if stop.progress:
        words.append(stop.progress)
    if stop.overdue:
        words.append(f"quiet for {span(stop.silent_s)}")
    if stop.late:
        names = ", ".join(late.rank for late in stop.late[:LATE])
        words.append(f"behind: {names}" + (" ..." if len(stop.late) > LATE else ""))
    if stop.causes:
        words.append(f"if it hangs: {stop.causes[0].title}")
    return "; ".join(words)


def span(seconds: float | None) -> str:
    """ "45 s", "4 min", "1 h 20 min"."""
    if seconds is None:
        return "?"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
