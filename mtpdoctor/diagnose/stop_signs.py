"""What people put into a log that stands still: the date they typed, the minutes they waited, what nvidia-smi said. Pure.

Such lines are no sign of life of the launch, but they tell how long it had shown none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from mtpdoctor.diagnose.types import SilentBy
from mtpdoctor.log.clock import seconds_of
from mtpdoctor.log.prompt import PROMPT
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

MOST_S = 48 * 3600.0  # more is another day's visit, or a clock of another time zone
_PROMPT = lazy(rf"^\s*{PROMPT}(?:\s|$)")
_LAUNCH = lazy(r"\bsglang\b|launch_server|\bdocker run\b|\bsrun\b|\bkubectl (?:apply|logs)\b|\btorchrun\b")
_TEXT = lazy(r"^\s*(?:```|</?(?:details|summary|pre|code)>|#{1,6} |\*\*|---\s*$)")  # the report begins again
_BAR = lazy(r"\b\d{1,6}/\d{1,6} \[|\d{1,3}%\|")
# Sun May 24 10:43:40 UTC 2026 | Sun May 24 10:43:40 AM UTC 2026 | Sun 24 May 2026 10:43:40 AM UTC | nvidia-smi's own
_DATE = lazy(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? (?:(?P<m>[A-Z][a-z]{2})\w* +(?P<d>\d{1,2})|(?P<d2>\d{1,2}) (?P<m2>[A-Z][a-z]{2})\w* (?P<y2>20\d\d)) "
    r"(?P<h>\d{1,2}):(?P<n>\d\d):(?P<s>\d\d)(?: (?P<p>[AP]M))?(?: [A-Z]{2,5}| [+-]\d{2,4})?(?: (?P<y>20\d\d))?\b"
)
_ISO = lazy(r"^\W{0,3}(20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WAITED = lazy(
    r"(?i)(?:\b(?:after|for|over|than|waited|waiting|stuck|hangs?|hung|hanging|frozen|since|about|still|nothing)\b|[~>])[^\d\n]{0,40}?"
    r"(?P<a>\d+(?:\.\d+)?)\+? ?(?P<au>s|sec(?:ond)?s?|m|mins?|minutes?|h|hrs?|hours?)\b"
    r"|(?P<b>\d+(?:\.\d+)?)\+? ?(?P<bu>sec(?:ond)?s?|mins?|minutes?|hrs?|hours?) (?:later|passed|ago|and (?:counting|nothing))"
)
_ELAPSED = lazy(r"\[(?:(\d+):)?(\d{1,2}):(\d\d)<")
_UP = lazy(r"\bUp (\d+|About an|About a) (minutes?|hours?)\b")
_ETIME = lazy(r"\s(?:(\d+)-)?(?:(\d{1,2}):)?(\d\d):(\d\d)\s+\S*(?:python|sglang)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_SMI = lazy(r"\b(\d{1,3})%\s+(?:Default|E\. ?Process|N/A)\s*\|")
_CSV = lazy(r"^\s*(?:\d{1,2}, *)?(\d{1,3}) ?%(?:,|\s*$)")  # --query-gpu=utilization.gpu --format=csv
_DMON = lazy(r"^\s+\d{1,2}\s+(\d{1,3})\s+\d{1,3}\s+(?:\d+|-)\s+(?:\d+|-)")
_BUSY, _IDLE = 90, 5  # percent


def typed_lines(lines: Sequence[Line]) -> list[Line]:
    """The lines that a person's shell or report put behind the launch's own: from the last prompt or mark of text that
    nothing of the launch follows."""
    out: list[Line] = []
    typing = False
    for line in lines:
        if line.body != line.text or line.rank is not None or _BAR.search(line.body):
            typing = False
            out.clear()
            continue
        if not typing and (
            (_PROMPT.match(line.body) and not _LAUNCH.search(line.body)) or _TEXT.match(line.body)
        ):
            typing = True
        elif typing and _LAUNCH.search(line.body) and _PROMPT.match(line.body):
            typing = False
            out.clear()
            continue
        if typing:
            out.append(line)
    return out


def waited(last: Line | None, lines: Sequence[Line], after: Sequence[Line]) -> SilentBy | None:
    """How long it had been quiet by what people wrote ``after`` the last sign of life; None where they do not tell.
    ``lines``: those of the launch."""
    if last is None:
        return None
    since, like = since_when(last, lines)
    begun = next((t for x in lines if x.file == last.file and (t := seconds_of(x.time)) is not None), since)
    found: SilentBy | None = None
    for line in after:
        seconds: float | None = None
        age = _age(line.body)
        if since is not None and (told := _dated(line.body, like)) is not None:
            seconds = told - since
        elif age is not None:
            if since is None or begun is None:
                continue
            seconds = age - (since - begun)
        if seconds is None or not 0 < seconds <= MOST_S:
            seconds = _said(line.body)
        if seconds is not None and 0 < seconds <= MOST_S and (found is None or seconds > found.seconds):
            found = SilentBy(seconds, line)
    return found


def since_when(last: Line, lines: Sequence[Line]) -> tuple[float | None, str]:
    """When the last sign of life was written, in seconds as :func:`seconds_of` counts them, and the time it was told by:
    its own, else that of the last line before it, and what its bar says to have passed since."""
    before = [
        x for x in lines if x.file == last.file and x.key <= last.key and seconds_of(x.time) is not None
    ]
    if not before:
        return None, ""
    at = seconds_of(before[-1].time)
    m = _ELAPSED.search(last.body) if before[-1] is not last else None
    passed = (int(m[1] or 0) * 60 + int(m[2])) * 60 + int(m[3]) if m else 0
    return (at or 0.0) + passed, before[-1].time or ""


def _age(text: str) -> float | None:
    """How long its process or container has been running, by `ps` or `docker ps`, in seconds."""
    if m := _UP.search(text):
        return (float(m[1]) if m[1].isdecimal() else 1.0) * _UNITS[m[2][0]]
    m = _ETIME.search(text) if "sglang" in text or "python" in text else None
    if m is None:
        return None
    return ((int(m[1] or 0) * 24 + int(m[2] or 0)) * 60 + int(m[3])) * 60.0 + int(m[4])


def _dated(text: str, like: str) -> float | None:
    """The date in the line, in seconds as :func:`seconds_of` counts them."""
    if m := _ISO.match(text):
        return seconds_of(m[1])
    m = _DATE.search(text)
    if m is None:
        return None
    year, month = m["y"] or m["y2"] or like[:4], (m["m"] or m["m2"])
    if not year.isdecimal() or month not in _MONTHS:
        return None
    hour = int(m["h"]) % 12 + (12 if m["p"] == "PM" else 0) if m["p"] else int(m["h"])
    try:
        day = int(m["d"] or m["d2"])
        at = datetime(int(year), _MONTHS.index(month) + 1, day, hour, int(m["n"]), int(m["s"]))
    except ValueError:
        return None
    return at.replace(tzinfo=timezone.utc).timestamp()


def _said(text: str) -> float | None:
    m = _WAITED.search(text[:400])
    if m is None:
        return None
    return float(m["a"] or m["b"]) * _UNITS[(m["au"] or m["bu"])[0].lower()]


def gpus_by(lines: Sequence[Line]) -> str | None:
    """ "busy" or "idle", where nvidia-smi shows all GPUs so."""
    csv = any("utilization.gpu" in line.body for line in lines)
    found = [
        int(m[1])
        for line in lines
        if (m := _SMI.search(line.body) or _DMON.match(line.body) or (_CSV.match(line.body) if csv else None))
    ]
    if not found:
        return None
    return "busy" if min(found) >= _BUSY else "idle" if max(found) <= _IDLE else None
