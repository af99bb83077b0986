"""Failures of one launch attempt: its error events with the rules that matched inside them.

Pure: events and matches in, failures out. What a failure *means* (cause or consequence of another)
is decided in ``causality``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpdoctor.kb.types import Match, Role
from mtpdoctor.log.types import Attempt, Event, EventKind, Line, Traceback
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

Key = tuple[int, int, int]

# Events that only report that some process ended; a cause only when a rule says so.
_REPORTS = frozenset({EventKind.SIGNAL, EventKind.EXIT})


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong: an error event, or a line that only a rule recognised.

    ``matches`` are the cause rules that matched inside, ``members`` the exception lines of the
    chain that no consequence rule explains (innermost first; the line itself outside tracebacks),
    ``explained_by`` the rules that declare a match inside to follow from theirs.
    """

    event: Event | None
    matches: tuple[Match, ...]
    members: tuple[Line, ...]
    rank: str | None
    fatal: bool
    start: Line
    explained_by: frozenset[str] = frozenset()

    @property
    def specific(self) -> tuple[Match, ...]:
        return tuple(m for m in self.matches if not m.rule.generic)

    @property
    def is_consequence(self) -> bool:
        return not self.members and not self.matches


def chain(traceback: Traceback) -> tuple[Traceback, ...]:
    """The chained tracebacks, innermost first."""
    return traceback.chain[::-1]


def event_lines(event: Event) -> set[Key]:
    """Every log line that belongs to an event."""
    keys = {event.line.key}
    if event.traceback is not None:
        for member in chain(event.traceback):
            keys.update(line.key for line in member.lines)
            keys.update(line.key for line in (member.head, member.exception) if line is not None)
    return keys


def collect(attempt: Attempt, matches: Sequence[Match]) -> tuple[Failure, ...]:
    """The failures of an attempt in reading order."""
    silent = keys_of(matches, Role.NOISE)
    follows = keys_of(matches, Role.CONSEQUENCE)
    # Words of a symptom on a line after which the launch is known to go on are none.
    harmless = silent | keys_of(matches, Role.DEGRADES)
    every_cause = [
        m for m in matches if m.rule.role is Role.CAUSE and not (m.rule.generic and m.line.key in harmless)
    ]
    causes = unexplained(every_cause)
    named_causes = {m.line.key for m in causes}
    failures: list[Failure] = []
    covered: set[Key] = set()
    for event in attempt.events:
        if event.kind is EventKind.SHUTDOWN:
            continue
        keys = event_lines(event) | _said_below(event, causes)
        inside = tuple(m for m in causes if m.line.key in keys)
        if event.kind in _REPORTS and not inside:
            continue
        if not inside and _telling_lines(event) & silent:
            covered |= keys
            continue
        covered |= keys
        members = tuple(
            line for line in _exception_lines(event) if line.key not in follows or line.key in named_causes
        )
        failures.append(
            Failure(
                event=event,
                matches=inside,
                members=members,
                rank=event.rank,
                fatal=event.fatal,
                start=event.traceback.root.head if event.traceback else event.line,
                explained_by=_explaining(every_cause, keys),
            )
        )
    for match in causes:
        if match.line.key not in covered:
            covered.add(match.line.key)
            same_line = tuple(m for m in causes if m.line.key == match.line.key)
            failures.append(Failure(None, same_line, (match.line,), match.line.rank, False, match.line))
    return tuple(sorted(failures, key=lambda f: f.start.key))


# Rust says where on one line, and what on the next.
PANIC = lazy(r"panicked at \S+:\d+:\d+:\s*$")


def _said_below(event: Event, causes: Sequence[Match]) -> set[Key]:
    """The line of a known cause that holds the words of a panic."""
    at = event.line
    if event.kind is not EventKind.NATIVE or not PANIC.search(at.body):
        return set()
    below = range(at.number + 1, at.number + 4)
    near = (
        x.line.key
        for x in causes
        if x.line.file == at.file and x.line.number in below and x.line.stream == at.stream
    )
    return set(sorted(near)[:1])


def last_resort(attempt: Attempt, silent: set[Key]) -> Failure | None:
    """The earliest fatal event, where all that went wrong is known to follow from something that the log does not
    show; an exception before a bare exit status."""
    fatal = [
        e
        for e in attempt.events
        if e.fatal and e.kind is not EventKind.SHUTDOWN and not _telling_lines(e) & silent
    ]
    event = next((e for e in fatal if e.kind not in _REPORTS), fatal[0] if fatal else None)
    if event is None:
        return None
    start = event.traceback.root.head if event.traceback else event.line
    return Failure(event, (), _exception_lines(event), event.rank, True, start)


_ECHO = lazy(
    r"\bframe #\d+: |\*\*\* (?:SIG\w+|Signal|Aborted|Process received|Check failure)|^(?:\s*Fatal Python error: (?:Aborted|Segmentation fault)"
    r"|(?:.*\s)?Aborted(?: \(core dumped\))?\s*$)"
)


# Another process has ended, and this one only notices: neither its code, nor that of another release, nor an option is why.
PEER_ENDED = lazy(r"Connection (?:closed by peer|reset by peer)")


def is_echo(event: Event) -> bool:
    """A line of a native stack, or that only names the signal a process died of: why stands elsewhere."""
    return event.kind is EventKind.NATIVE and _ECHO.search(event.line.body) is not None


def keys_of(matches: Iterable[Match], role: Role) -> set[Key]:
    return {m.line.key for m in matches if m.rule.role is role}


def unexplained(causes: Sequence[Match]) -> list[Match]:
    """Without the matches that another matching rule declares to follow from it."""
    explained = {rule for m in causes for rule in m.rule.explains}
    return [m for m in causes if m.rule.id not in explained]


def _explaining(causes: Sequence[Match], keys: set[Key]) -> frozenset[str]:
    inside = {m.rule.id for m in causes if m.line.key in keys}
    return frozenset(m.rule.id for m in causes if inside.intersection(m.rule.explains))


def _exception_lines(event: Event) -> tuple[Line, ...]:
    if event.traceback is None:
        return (event.line,)
    lines = tuple(t.exception for t in chain(event.traceback) if t.exception is not None)
    return lines or (event.line,)


def _telling_lines(event: Event) -> set[Key]:
    keys = {line.key for line in _exception_lines(event)}
    keys.add(event.line.key)
    return keys
