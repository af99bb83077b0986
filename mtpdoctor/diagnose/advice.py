"""What is known of the kind of a failure, where no specific rule knows the failure itself.

Rules of role ``advice`` are held against the failure that was found to be the root cause, and against
nothing else: they never decide which line that is, and a specific rule silences all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import chain
from mtpdoctor.diagnose.remedies import fixes_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.match import found_in, match_rules
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match
from mtpdoctor.log.types import Line
from mtpdoctor.records import dataclass

MAX_FIXES = 6
NEAREST = 3  # frames of SGLang's own, and all that they call
MAX_KINDS = 4  # more say nothing together


@dataclass(frozen=True, slots=True)
class Advice:
    """``fixes`` best first, those handed in among them; ``steps`` say what kinds of failure it is."""

    fixes: tuple[Fix, ...]
    steps: tuple[str, ...]
    references: tuple[str, ...]


def advice_on(cause: Cause, case: Case, knowledge: Knowledge, own: tuple[Fix, ...] = ()) -> Advice:
    """What advice rules say of the root failure. ``own``: fixes of a rule that names a symptom only; they
    go before advice that is no surer than that rule."""
    kinds = _kinds(cause, case, knowledge)
    own_confidence = cause.match.confidence if cause.match is not None else 0.0
    ordered: list[tuple[Fix, ...]] = []
    said: list[Match] = []
    for match in kinds:
        if own and match.confidence <= own_confidence:
            ordered.append(own)
            own = ()
        fixes = fixes_of(match, case, knowledge)
        if fixes or not _computed(match):
            ordered.append(fixes)
            said.append(match)
    fixes = _distinct(fix for fixes in (*ordered, own) for fix in fixes)
    steps = tuple(f"{fill(m.rule.cause, case.facts, m.captures)} ({m.rule.id})" for m in said)
    references = tuple(dict.fromkeys(ref for m in said for ref in m.rule.refs))
    return Advice(fixes, steps, references)


def _kinds(cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Match, ...]:
    """The advice rules that match inside the root failure, surest first, each once."""
    if case.reading is None or case.attempt is None:
        return ()
    matches = match_rules(knowledge, case.reading, case.attempt, case.facts, advice=True)
    inside = _inside(cause)
    best: dict[str, Match] = {}
    for match in matches:
        if match.line.key in inside and _near(match):
            best.setdefault(match.rule.id, match)
    return tuple(sorted(best.values(), key=lambda m: (-m.confidence, m.rule.id))[:MAX_KINDS])


def _computed(match: Match) -> bool:
    """Are all remedies of the rule computed? Where that gives none, the kind is not what it looked like."""
    return bool(match.rule.remedies) and all(r.generate is not None for r in match.rule.remedies)


def _near(match: Match) -> bool:
    """Does it match the message or the frames that are nearest to it? What lies far up the stack only says that
    the launch goes through it, as every launch does."""
    traceback = match.traceback
    if traceback is None or len(traceback.frames) <= NEAREST:
        return True
    own = [i for i, frame in enumerate(traceback.frames) if "/sglang/" in frame.path][-NEAREST:]
    start = traceback.frames[own[0] if own else -NEAREST]
    text = "\n".join(line.body for line in traceback.lines)
    at = text.rfind(f'File "{start.path}", line {start.lineno}, in {start.function}')
    if at < 0:
        return True
    return found_in(match.rule, text[max(0, text.rfind("\n", 0, at)) :])


def _inside(cause: Cause) -> set[tuple[int, int, int]]:
    """Lines of the exception that is the root cause, and of those raised from it."""
    lines: list[Line] = [cause.root, *cause.chain]
    event, root = cause.failure.event, root_traceback(cause)
    if event is not None and event.traceback is not None and root is not None:
        members = chain(event.traceback)
        for member in members[next(i for i, m in enumerate(members) if m is root) :]:
            lines.extend(member.lines)
    elif event is not None:
        lines.append(event.line)
    return {line.key for line in lines}


def _distinct(fixes: Iterator[Fix]) -> tuple[Fix, ...]:
    """Without those that edit the same or say the same as one before them."""
    out: list[Fix] = []
    for fix in fixes:
        if not any(fix.title == f.title or (fix.edits and fix.edits == f.edits) for f in out):
            out.append(fix)
    return tuple(out[:MAX_FIXES])
