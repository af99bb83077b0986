"""A server that is started again and again: which of its launches a log can tell the end of.

Supervisors (``restart: always``, systemd, Kubernetes) start a server anew as soon as it has died, so a log that is taken
at any moment mostly ends in the middle of one more launch that is about to fail as the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Attempt, Event, EventKind, Stage, Traceback

LEAST = 2  # failures of one kind in a row, before a launch that has not failed yet is held to be one more


def is_cut_off(launches: Sequence[Attempt]) -> bool:
    """Did the last launch begin as those before it, which failed, and does the log end before it can tell how it ends?

    So where its errors are tracebacks (or a usage text) that the end of the log cuts short, at places where one before failed, and where it has shown none yet
    but at least two launches before it failed alike, at a stage that it has not passed.
    """
    if len(launches) < 2:
        return False
    last, before = launches[-1], launches[-2]
    failure = _failure(before)
    if failure is None or last.ready is not None or last.shutdown is not None:
        return False
    if last.command_text and before.command_text and last.command_text != before.command_text:
        return False
    fatal = [e for e in last.events if e.fatal]
    if fatal:
        if all(_has_no_end(event) for event in fatal):  # different failures may take turns
            return any(_failed_at(one, fatal) for one in launches[:-1] if _failure(one) is not None)
        return _failed_at(before, fatal) and _exceptions(last) < _exceptions(before)
    if last.marks and all(m.stage is Stage.ARGPARSE for m in last.marks):
        return True
    if _furthest(last) > _furthest(before):
        return False
    alike = 0
    for attempt in reversed(launches[:-1]):
        told = _failure(attempt)
        if told is None or (told.summary, told.stage) != (failure.summary, failure.stage):
            break
        alike += 1
    return alike >= LEAST


def told_before(launches: Sequence[Attempt]) -> str | None:
    """Of a last launch that has not failed (yet): what ended the one before it, in a sentence."""
    if len(launches) < 2 or any(e.fatal for e in launches[-1].events):
        return None
    failure = _failure(launches[-2])
    if failure is None:
        return None
    return f"the launch before it failed (line {failure.line.number}): {failure.summary}"


def _failure(attempt: Attempt) -> Event | None:
    fatal = [e for e in attempt.events if e.fatal and not _has_no_end(e)]
    telling = (e for e in fatal if e.kind not in (EventKind.EXIT, EventKind.SIGNAL))
    return next(telling, next(iter(fatal), None))


def _failed_at(launch: Attempt, fatal: Sequence[Event]) -> bool:
    """Did the launch fail at all the places at which these errors did?"""
    seen = {place for event in launch.events for place in _frames(event)}
    return all(seen.issuperset(_frames(event)) for event in fatal)


def _furthest(attempt: Attempt) -> int:
    return max((mark.stage.order for mark in attempt.marks), default=0)


def _exceptions(attempt: Attempt) -> set[str]:
    """The exceptions of its failures and of those behind them, by their lines."""
    nodes = (node for event in attempt.events if event.fatal for node in _chain(event))
    return {node.exception.body for node in nodes if node.exception is not None}


def _frames(event: Event) -> Iterator[tuple[str, int]]:
    return ((frame.path, frame.lineno) for node in _chain(event) for frame in node.frames)


def _chain(event: Event) -> tuple[Traceback, ...]:
    return event.traceback.chain if event.traceback is not None else ()


def _has_no_end(event: Event) -> bool:
    return event.traceback is not None and event.traceback.exception is None
