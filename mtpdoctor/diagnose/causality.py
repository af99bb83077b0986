"""Which failure is the root cause, and what merely follows from it.

The order: the earliest failure that took its process down and that no rule calls a consequence.
A failure that is only a symptom (a ``generic`` rule, or no rule) yields to a specific cause that
stands before it in the attempt; a generic one also to a specific cause another rank reports.
Inside a chain the inner exception counts, unless a rule names the outer one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.diagnose.failures import Failure, collect, is_echo, keys_of, last_resort
from mtpdoctor.diagnose.order import in_time
from mtpdoctor.diagnose.said_before import below_banner, line_that_says_why
from mtpdoctor.kb.types import Match, Role
from mtpdoctor.log.survival import got_further
from mtpdoctor.log.types import Attempt, Event, EventKind, Line
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

MAX_CAUSES = 4


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a failed launch; ``match`` is None when no rule knows it."""

    match: Match | None
    failure: Failure
    root: Line
    ranks: tuple[str, ...]
    chain: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Causality:
    """Causes, the root cause first, and the lines that follow from it."""

    causes: tuple[Cause, ...]
    consequences: tuple[Line, ...]


_OF_A_PEER = lazy(
    r"(?i)clients joined|connection (?:closed|reset) by peer|broken pipe|socket (?:has )?timed out|watchdog caught collective|DistStoreError"
    r"|DistNetworkError|remote process exited|heartbeat monitor|recvValue failed"
)


def find_causes(attempt: Attempt, matches: Sequence[Match]) -> Causality:
    """The causes of an attempt that failed; none when nothing in it looks like a failure."""
    failures = in_time(collect(attempt, matches))
    open_failures = [f for f in failures if not f.is_consequence]
    silent = keys_of(matches, Role.NOISE) | keys_of(matches, Role.DEGRADES)
    first = _first(open_failures, attempt)
    if first is None:  # nothing but what follows from something: the first that is fatal stands for it
        first = last_resort(attempt, silent)
        if first is None:
            return Causality((), _consequences(attempt, matches, failures, None, ()))
        open_failures = [*open_failures, first]
    root = _explained_by(first, open_failures, attempt)
    causes = [_cause(root, open_failures, line_that_says_why(root, attempt, silent))]
    for failure in open_failures:
        if len(causes) >= MAX_CAUSES:
            break
        if failure is root or failure is first or not failure.specific or not failure.fatal:
            continue
        cause = _cause(failure, open_failures)
        if _OF_A_PEER.search(cause.root.body) and failure.start.key != root.start.key:
            continue  # what the others say when one of them has died
        if all(
            c.match is None or cause.match is None or c.match.rule.id != cause.match.rule.id for c in causes
        ):
            causes.append(cause)
    consequences = _consequences(attempt, matches, failures, root, tuple(c.root for c in causes))
    return Causality(tuple(causes), consequences)


def _first(failures: Sequence[Failure], attempt: Attempt) -> Failure | None:
    """The earliest fatal failure; without one, the earliest that a specific rule knows, else the
    last traceback, else the last error line."""
    fatal = [f for f in failures if f.fatal]
    if fatal:
        known_before = [f for f in fatal if f.specific or f.event is None]
        # An ERROR line that no rule knows yields to the traceback or report that comes with it, not to a stack.
        strong = [f for f in fatal if f.matches or (f.event is not None and _tells(f.event))]
        return (strong or known_before or fatal)[0]
    after_ready = attempt.ready.key if attempt.ready else None
    if after_ready is not None and attempt.shutdown is not None:
        failures = [f for f in failures if f.start.key < after_ready]
    for wanted in (
        [f for f in failures if f.specific],
        [f for f in failures if f.matches],
    ):
        if wanted:
            return wanted[0]
    tracebacks = [f for f in failures if f.event is not None and f.event.kind is EventKind.TRACEBACK]
    if tracebacks:
        return tracebacks[-1]
    return failures[-1] if failures else None


def _tells(event: Event) -> bool:
    return event.kind is not EventKind.ERROR and not is_echo(event)


def _explained_by(first: Failure, failures: Sequence[Failure], attempt: Attempt) -> Failure:
    """The failure that explains the first one, or itself.

    What no rule knows is not explained by a line that the launch went on after: nothing ties the two.
    """
    if first.specific:
        return first
    raised = _raised_inside(first, failures)
    if raised is not None:
        return raised
    for failure in failures:
        if any(m.rule.id in first.explained_by for m in failure.matches):
            return failure
    answered = _answered_so(first, failures)
    if answered is not None:
        return answered
    specific = [f for f in failures if f.specific and f is not first]
    earlier = failures[: next(i for i, f in enumerate(failures) if f is first)]
    before = [
        f for f in earlier if f.specific and (first.matches or f.fatal or not got_further(attempt, f.start))
    ]
    if before:
        return before[-1]
    if first.matches and specific:  # a symptom here, the cause named by another rank or process
        return specific[0]
    if not first.matches:
        symptom_before = [f for f in earlier if f.matches and f.fatal]
        if symptom_before:
            return symptom_before[-1]
    return first


# Ray raises a task's exception again in the caller and names its type; the task's own lines come under its prefix.
_RAY_TASK = lazy(r"RayTaskError\((\w+)\): ")


def _raised_inside(wrapper: Failure, failures: Sequence[Failure]) -> Failure | None:
    """The known failure of the type that Ray's wrapper names, wherever in the log its lines stand."""
    named = _RAY_TASK.search(wrapper.event.line.body) if wrapper.event is not None else None
    if named is None:
        return None
    for failure in failures:
        said = failure.members[0].body if failure.members else ""
        if failure is not wrapper and failure.specific and said.startswith(f"{named[1]}: "):
            return failure
    return None


# The server's own first request, or a client, was answered with an error: what went wrong was told where it was answered.
_ANSWER = lazy(r"<Response \[5\d\d\]>|\b500 (?:Server Error|Internal Server Error)|Internal Server Error$")


def _answered_so(asker: Failure, failures: Sequence[Failure]) -> Failure | None:
    """The exception because of which the server answered with an error; None where the log shows none before it."""
    if not asker.members or not _ANSWER.search(asker.members[0].body):
        return None
    before = [
        f
        for f in failures
        if f is not asker
        and f.start.key < asker.start.key
        and f.event is not None
        and f.event.kind is EventKind.TRACEBACK
    ]
    return before[-1] if before else None


def _cause(failure: Failure, failures: Sequence[Failure], why: Line | None = None) -> Cause:
    """``why``: the line before an exception (or exit status) that says what it does not."""
    match = best_match(failure)
    innermost = failure.members[0] if failure.members else failure.start
    # A symptom's rule says where it showed; the exception that it was raised from says what happened.
    root = innermost if match is None or (match.rule.generic and failure.members) else match.line
    if why is not None and (match is None or match.rule.generic):
        root = why
    elif failure.event is not None and failure.event.traceback is not None:
        root = below_banner(root, failure.event.traceback)
    return Cause(match, failure, root, _ranks(failure, match, failures), failure.members)


def best_match(failure: Failure) -> Match | None:
    """Specific before generic, then the inner exception, then the surer rule."""
    if not failure.matches:
        return None
    return min(failure.matches, key=lambda m: (m.rule.generic, m.line.key, not m.certain, -m.rule.confidence))


_VARIES = lazy(r"0x[0-9a-f]+|\d+")


def _same(a: Failure, b: Failure) -> bool:
    if not a.members or not b.members:
        return False
    return _VARIES.sub("#", a.members[0].body) == _VARIES.sub("#", b.members[0].body)


def _ranks(failure: Failure, match: Match | None, failures: Sequence[Failure]) -> tuple[str, ...]:
    """The rank of the failure, then every other rank that says the same."""
    ranks: list[str] = []
    for other in [failure, *failures]:
        alike = other is failure or _same(failure, other)
        if match is not None and not alike:
            alike = any(m.rule.id == match.rule.id for m in other.matches)
        rank = other.rank or other.start.stream or None
        if alike and rank and rank not in ranks:
            ranks.append(rank)
    return tuple(ranks)


def _consequences(
    attempt: Attempt,
    matches: Sequence[Match],
    failures: Sequence[Failure],
    root: Failure | None,
    roots: tuple[Line, ...],
) -> tuple[Line, ...]:
    """Lines that follow from the root cause, in reading order, each once."""
    taken = {line.key for line in roots}
    lines: dict[tuple[int, int, int], Line] = {}
    for match in matches:
        if match.rule.role is Role.CONSEQUENCE:
            lines[match.line.key] = match.line
    for event in attempt.events:
        if event.kind in (EventKind.SIGNAL, EventKind.EXIT):
            lines[event.line.key] = event.line
    after = False
    for failure in failures:
        if failure.event is not None and (failure.is_consequence or (after and failure.fatal)):
            lines[failure.event.line.key] = failure.event.line
        after = after or failure is root
    return tuple(line for key, line in sorted(lines.items()) if key not in taken)
