"""What goes on after something that reads like an end was no end."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.log.event_patterns import Weight
from mtpdoctor.log.events import RawEvent
from mtpdoctor.log.types import Attempt, EventKind, Line

_SERVES_ON = 2  # batches after an event: one may have been under way


def outlived_by(
    event: RawEvent, raw: Sequence[RawEvent], batches: Sequence[Line], ready: Line | None
) -> bool:
    """Did the server go on serving after words of death, and nothing tell of a death later? They were of
    another process then, or of a user's text that the log repeats."""
    if event.weight is not Weight.DIES or ready is None or event.first.key < ready.key:
        return False
    end = event.end.key
    if any(
        e.first.key > end
        and (
            e.weight is Weight.FOLLOWS
            or (e.weight is Weight.DIES and e.kind in (EventKind.SIGNAL, EventKind.TRACEBACK))
        )
        for e in raw
    ):
        return False
    after = [b for b in batches if b.key > end and (b.file, b.stream) == (event.line.file, event.line.stream)]
    if event.rank is not None:
        after = [b for b in after if b.rank == event.rank]
    return len(after) >= _SERVES_ON


def goes_on(event: RawEvent, healthy: Sequence[Line], ready: Line | None) -> bool:
    """Did the launch get further, in the same stream, after the event?"""
    end = event.end.key
    same = [h for h in healthy if h.key > end and h.stream == event.line.stream and h.file == event.line.file]
    if event.rank is not None and not (ready is not None and ready.key > end):
        same = [h for h in same if h.rank == event.rank]
    return bool(same)


def got_further(attempt: Attempt, line: Line) -> bool:
    """Did the launch enter a stage, in the same stream and on the same rank, after the line?

    A stream or rank that enters no stage anywhere is another name of one that does (torch's ``[rank1]``): then
    any of the file will do.
    """
    here = [m for m in attempt.marks if m.line.file == line.file]
    same = [m for m in here if m.line.stream == line.stream] or here
    rank = line.rank if any(m.rank == line.rank for m in same) else None
    return any(m.line.key > line.key and (rank is None or m.rank == rank) for m in same)
