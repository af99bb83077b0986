"""What goes wrong with a server that is ready, by its lines alone: transfers from another server, an address that nobody
answers at. It takes no process down, so that the launch has not failed."""

from __future__ import annotations

from mtpdoctor.kb.types import Match, Role
from mtpdoctor.log.types import Attempt, LogReading, Stage
from mtpdoctor.patterns import lazy

LOOKED_AT = 400  # physical lines after the one in question, and at the log's end
_WORKS = lazy(r"\b(?:Decode|Prefill) batch\b|\"POST /\S* HTTP/[\d.]+\" 200\b")


def still_broken(match: Match, reading: LogReading, attempt: Attempt) -> bool:
    """Does the match tell of such a trouble, and no later line that requests are served again?"""
    rule, ready, line = match.rule, attempt.ready, match.line
    if rule.role is not Role.CAUSE or rule.generic or rule.stage is not Stage.SERVING:
        return False
    if ready is None or line.key < ready.key or match.traceback is not None or not match.certain:
        return False
    last = attempt.last[1] if attempt.last[0] == line.file else line.number + LOOKED_AT
    after = reading.hits.window(line.file, line.number + 1, min(last, line.number + LOOKED_AT))
    if last > line.number + LOOKED_AT:
        after += reading.hits.window(line.file, max(line.number + LOOKED_AT, last - LOOKED_AT), last)
    return not any(_WORKS.search(other.body) for other in after)
