"""One launch's log in, one report out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Causality, Cause, find_causes
from mtpdoctor.diagnose.failures import event_lines
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.memory import asks_memory, sum_of, with_model_here
from mtpdoctor.diagnose.one_cause import diagnosed, marks_of
from mtpdoctor.diagnose.proof import launch_facts
from mtpdoctor.diagnose.remedies import fixes_of
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.types import Finding, Report
from mtpdoctor.kb.here import cause_here
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.match import Matches, match_rules
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match, Role
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Form
from mtpdoctor.log.events import exit_status
from mtpdoctor.log.reading import outcome as outcome_of
from mtpdoctor.log.survival import got_further
from mtpdoctor.log.types import Attempt, EventKind, LogReading, Stage

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Ended, Stop
    from mtpdoctor.memory.types import MemorySum

NOTHING = Given()
NOT_SGLANG = "nothing in it looks like SGLang"


def diagnose(
    reading: LogReading, knowledge: Knowledge, given: Given = NOTHING, *, brief: bool = False
) -> Report:
    """The report on one launch (one or several logs of it). Only its last attempt is diagnosed.

    ``brief``: findings come without their fixes, which take as long to prove as those of failures.
    """
    outcome = outcome_of(reading)
    files = tuple(f.name for f in reading.files)
    attempt = reading.attempt
    if attempt is None:
        return Report(outcome, Stage.ENV.value, None, None, None, (), (), 0, files, reading.notes)
    case, notes = case_of(reading, attempt, given)
    matches = match_rules(knowledge, reading, attempt, case.facts, advice=False)
    causality = find_causes(attempt, matches) if outcome in ("failed", "unfinished") else Causality((), ())
    if outcome == "unfinished":  # only what a rule knows makes a launch without an end a failed one
        known = (
            c
            for c in causality.causes
            if c.match and not _outlived(c, attempt) and not _after_stop(c.match, attempt)
        )
        causality = Causality(tuple(known), causality.consequences)
        outcome = "failed" if causality.causes else outcome
    unserved = tuple(m for m in matches if outcome == "ready" and _unserved(m, reading, attempt))
    if unserved:
        from mtpdoctor.diagnose.serving import never_served, without_symptoms

        broken = never_served(unserved, reading, attempt)
        unserved = () if broken is not None else without_symptoms(unserved)
        outcome, causality = ("failed", broken) if broken is not None else (outcome, causality)
    if outcome == "ready" and any(e.kind is EventKind.TRACEBACK for e in attempt.events):
        from mtpdoctor.diagnose.serving import dead_transfers  # a healthy server seldom writes tracebacks

        broken = dead_transfers(reading, attempt, matches)
        outcome, causality = ("failed", broken) if broken is not None else (outcome, causality)
        unserved = unserved if broken is None else ()
    causality = Causality(
        _each_once(tuple(_by_compiler(cause, reading, attempt, matches) for cause in causality.causes)),
        causality.consequences,
    )
    if given.models_here and any(c.match and asks_memory(c.match.rule) for c in causality.causes):
        case = with_model_here(case)
    diagnoses = tuple(
        diagnosed(cause, causality.consequences if i == 0 else (), case, knowledge, reading, attempt)
        for i, cause in enumerate(causality.causes)
    )
    if outcome == "unfinished" and reading.is_sglang:
        from mtpdoctor.diagnose.foretold import foretold  # of launches without an end

        notes = (*notes, *foretold(case, knowledge, attempt))
    return Report(
        outcome=outcome,
        stage=_stage(causality, attempt).value,
        sglang_version=str(case.release) if case.release and case.release_is_certain else None,
        version_source=_where(case, "release"),
        command=_as_found(case),
        diagnoses=diagnoses,
        findings=_findings(matches, case, knowledge, brief, unserved),
        attempts=len(reading.attempts),
        files=files,
        notes=(*reading.notes, *notes, *_untried(matches), *(() if reading.is_sglang else (NOT_SGLANG,))),
        facts={name: case.facts[name] for name in case.facts},
        release_range=case.release_range,
        memory=_memory(causality, case, knowledge) if outcome == "failed" else None,
        stop=_stop(reading, attempt, case) if outcome == "unfinished" and reading.is_sglang else None,
        ended=_ended(attempt, outcome),
    )


def _each_once(causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """Without those that no rule knows and whose line is that of one which a rule knows."""
    known = {cause.root.key for cause in causes if cause.match is not None}
    return tuple(cause for cause in causes if cause.match is not None or cause.root.key not in known)


def _by_compiler(cause: Cause, reading: LogReading, attempt: Attempt, matches: Matches) -> Cause:
    from mtpdoctor.diagnose.compiler import of_a_build, with_compilers_error  # only a failure needs it

    if of_a_build(cause):
        return with_compilers_error(cause, reading, attempt)
    event = cause.failure.event
    if event is not None and event.kind is EventKind.NATIVE:
        from mtpdoctor.diagnose.stack_lines import with_error_above

        return with_error_above(cause, reading, attempt)
    if event is not None and event.kind in (EventKind.SIGNAL, EventKind.EXIT) and cause.match is None:
        from mtpdoctor.diagnose.stack_lines import with_last_words

        silent = {m.line.key for m in matches if m.rule.role in (Role.NOISE, Role.DEGRADES)}
        return with_last_words(cause, reading, attempt, silent)
    if event is not None and event.traceback is not None and event.traceback.type == "AssertionError":
        from mtpdoctor.diagnose.replies import with_quoted_error

        return with_quoted_error(cause, attempt, tuple(matches))
    return cause


def _stop(reading: LogReading, attempt: Attempt, case: Case) -> Stop:
    from mtpdoctor.diagnose.stops import stop_of  # only a log that just stops needs the knowledge of hangs
    from mtpdoctor.kb.hangs_source import load_hangs

    return stop_of(reading, attempt, case, load_hangs())


def _ended(attempt: Attempt, outcome: str) -> Ended | None:
    if outcome not in ("ready", "unfinished"):
        return None
    if attempt.shutdown is None and not any(e.kind is EventKind.EXIT for e in attempt.events):
        return None
    from mtpdoctor.diagnose.ended import ended_of  # few logs show their end

    return ended_of(attempt, ready=outcome == "ready")


def _after_stop(match: Match, attempt: Attempt) -> bool:
    """Is it how a launch that was asked to stop came to its end?"""
    if attempt.shutdown is None or match.line.key <= attempt.shutdown.key:
        return False
    return any(
        e.line.key == match.line.key
        and (
            e.kind is EventKind.SIGNAL or (e.kind is EventKind.EXIT and exit_status(e.line.body) is not None)
        )
        for e in attempt.events
    )


def _memory(causality: Causality, case: Case, knowledge: Knowledge) -> MemorySum | None:
    """The sum, where the root cause is one of memory."""
    match = causality.causes[0].match if causality.causes else None
    if match is None or not asks_memory(match.rule):
        return None
    return sum_of(case, launch_facts(case, knowledge), failed=True)


def _outlived(cause: Cause, attempt: Attempt) -> bool:
    """In a launch without an end: did it go on after this, or was the exception one that was handled?"""
    event = cause.failure.event
    handled = event is not None and event.kind is EventKind.TRACEBACK and not event.fatal
    return handled or got_further(attempt, cause.failure.start)


def _unserved(match: Match, reading: LogReading, attempt: Attempt) -> bool:
    if match.rule.stage is not Stage.SERVING or _after_stop(match, attempt):
        return False
    from mtpdoctor.diagnose.serving import still_broken  # few servers that are ready need it

    return still_broken(match, reading, attempt)


def _findings(
    matches: Matches, case: Case, knowledge: Knowledge, brief: bool, unserved: tuple[Match, ...]
) -> tuple[Finding, ...]:
    """What works but not as wanted, each rule once, at its first line; of a server that is ready also what its
    lines say to go wrong with what it serves (transfers between servers), which takes no process down."""
    out: dict[str, Finding] = {}
    degrades = (m for m in matches if m.rule.role is Role.DEGRADES)
    for match in (*degrades, *unserved):
        if match.rule.id not in out:
            out[match.rule.id] = Finding(
                rule=match.rule.id,
                title=fill(match.rule.title, case.facts, match.captures),
                line=match.line,
                cause=cause_here(match.rule, case.facts, match.captures),
                fixes=() if brief else fixes_of(match, case, knowledge),
                marks=marks_of(match),
            )
    return tuple(sorted(out.values(), key=lambda f: f.line.key))


def _stage(causality: Causality, attempt: Attempt) -> Stage:
    """Where the root cause struck: as the event was read, else as the rule says, else how far it got."""
    if not causality.causes:
        return attempt.stage
    cause = causality.causes[0]
    event = cause.failure.event
    if event is not None and (event.stage_told or cause.match is None):
        own = event.traceback is not None and (
            cause.match is None or cause.match.line.key in event_lines(event)
        )
        if not own and cause.match is not None and not cause.match.rule.generic:
            # marks before a line only tell that the launch had got so far, and processes do not write in order
            return max(event.stage, cause.match.rule.stage, key=lambda s: s.order)
        return event.stage
    if cause.match is None:
        return attempt.stage
    stage = cause.match.rule.stage
    if event is not None and stage is Stage.IMPORT and event.stage.order > stage.order:
        return event.stage  # imported where it is first used
    return stage


def _as_found(case: Case) -> str | None:
    """The launch command: as it was typed, or as one line where it stands in a file's form."""
    if case.document is None or case.reconstructed:
        return None
    if case.document.form is Form.SHELL:
        return case.document.text.strip()
    return command_line(case.document.command, written=case.document.written)


def _untried(matches: Matches) -> tuple[str, ...]:
    if not matches.skipped:
        return ()
    return (f"not tried everywhere, their patterns took too long: {', '.join(matches.skipped)}",)


def _where(case: Case, name: str) -> str | None:
    fact = case.facts.fact(name)
    return fact.where if fact else None
