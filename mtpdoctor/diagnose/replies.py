"""The error that a reply quotes: the warm-up asks the server over HTTP and shows only what came back. Pure."""

from __future__ import annotations

from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.kb.types import Match, Role
from mtpdoctor.log.types import Attempt, Event, EventKind, Line
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

SHORTEST = 12  # characters of a message that is no chance
LONGEST = 120  # ... that are compared: replies and logs cut long ones differently
_MESSAGE = lazy(r'"message":\s*"(?:Internal server error: )?((?:[^"\\]|\\["/])*)')


def with_quoted_error(cause: Cause, attempt: Attempt, matches: tuple[Match, ...]) -> Cause:
    """The cause with the server's own line as its root, where the exception holds a reply that quotes it."""
    event = cause.failure.event
    if event is None or event.traceback is None or not event.traceback.root.message.startswith("{"):
        return cause
    said = _MESSAGE.search(event.traceback.root.message)
    quoted = said[1].replace('\\"', '"').strip()[:LONGEST] if said is not None else ""
    if len(quoted) < SHORTEST:
        return cause
    before = (e for e in attempt.events if e is not event and e.line.key < cause.failure.start.key)
    found = [line for e in before if (line := _that_says(e, quoted)) is not None]
    if not found:
        return cause
    root = found[-1]
    known = next((m for m in matches if m.line.key == root.key and _is_specific(m)), None)
    own = cause.match is not None and not cause.match.rule.generic
    return replace(cause, root=root, match=cause.match if own or known is None else known)


def _that_says(event: Event, quoted: str) -> Line | None:
    if event.traceback is not None:
        inner = event.traceback.root
        return inner.exception if quoted in inner.message else None
    return event.line if event.kind is EventKind.ERROR and quoted in event.line.body else None


def _is_specific(match: Match) -> bool:
    return match.rule.role is Role.CAUSE and not match.rule.generic
