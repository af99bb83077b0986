"""One launch's log in, one report out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Causality, Cause, find_causes
from mtpdoctor.diagnose.failures import event_lines
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.memory import asks_memory, sum_of, with_model_here
from mtpdoctor.diagnose.remedies import facts_for, filled_in, fixes_of, launch_facts
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.match import Matches, match_rules
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match, Role, Rule
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Form
from mtpdoctor.log.events import exit_status
from mtpdoctor.log.reading import outcome as outcome_of
from mtpdoctor.log.survival import got_further
from mtpdoctor.log.types import Attempt, EventKind, Line, LogReading, Stage
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.diagnose.advice import Advice
    from mtpdoctor.diagnose.raise_site import SourceSays
    from mtpdoctor.diagnose.types import Ended, Stop
    from mtpdoctor.memory.types import MemorySum

UNKNOWN_CONFIDENCE = 0.3  # of the root exception being the root cause when no rule knows it


ABOUT_MODELS = ("architecture", "model-type")  # remedies worked out from what releases know of models
FROM_SOURCES = ("symbol", "own-import", "block", "host-cache", "tensor-name", "callee")
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
    causality = Causality(
        tuple(_by_compiler(cause, reading, attempt, matches) for cause in causality.causes),
        causality.consequences,
    )
    if given.models_here and any(c.match and asks_memory(c.match.rule) for c in causality.causes):
        case = with_model_here(case)
    diagnoses = tuple(
        _as_shown(
            _with_versions(
                _for_this_build(
                    _diagnosis(cause, causality.consequences if i == 0 else (), case, knowledge), cause, case
                ),
                cause,
                case,
                knowledge,
            ),
            reading,
            attempt,
        )
        for i, cause in enumerate(causality.causes)
    )
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


def _diagnosis(cause: Cause, consequences: tuple[Line, ...], case: Case, knowledge: Knowledge) -> Diagnosis:
    match = cause.match
    if match is None:
        from mtpdoctor.diagnose.unknown import cause_of, next_steps, title_of

        said = _tables_say(cause, case, knowledge)
        advice = _advice(cause, case, knowledge, ())
        fixes = _with_gated((*(said.fixes if said else ()), *advice.fixes), said)
        fixes = _with_printed(fixes, cause, case, knowledge)
        return Diagnosis(
            rule=None,
            title=title_of(cause),
            confidence=UNKNOWN_CONFIDENCE,
            cause=cause_of(cause),
            misleading=None,
            root=cause.root,
            ranks=cause.ranks,
            evidence=(),
            consequences=consequences,
            references=advice.references,
            fixes=_with_carried(_with_later(fixes, said), cause, case, knowledge),
            chain=cause.chain,
            next_steps=(*advice.steps, *(said.steps if said else ()), *next_steps(cause, case)),
            raised=root_traceback(cause),
        )
    rule = match.rule
    fixes = fixes_of(match, case, knowledge)
    facts = facts_for(rule, case, knowledge) if asks_memory(rule) else case.facts
    fixes, steps = _completed(fixes, rule, cause, case, knowledge)
    fixes = _with_carried(_with_printed(fixes, cause, case, knowledge), cause, case, knowledge)
    return Diagnosis(
        rule=rule.id,
        title=fill(rule.title, facts, match.captures),
        confidence=round(match.confidence, 2),
        cause=with_facts(fill(rule.cause, facts, match.captures), match, case)
        + _if_it_is(match, case)
        + _whose_code(rule, cause),
        misleading=fill(rule.misleading, facts, match.captures) if rule.misleading else None,
        root=cause.root,
        ranks=cause.ranks,
        evidence=match.evidence,
        consequences=consequences,
        references=rule.refs,
        fixes=fixes,
        chain=cause.chain,
        next_steps=steps,
        marks=_marks(match),
        captures=tuple(match.captures.items()),
        raised=root_traceback(cause),
    )


def _completed(
    fixes: tuple[Fix, ...], rule: Rule, cause: Cause, case: Case, knowledge: Knowledge
) -> tuple[tuple[Fix, ...], tuple[str, ...]]:
    """The fixes of a rule with what else is known, and next steps: a rule may name a symptom only, or have no remedy
    that fits this launch. Nobody is left with nothing."""
    edits = any(fix.edits for fix in fixes)
    if fixes and not rule.generic:
        known = _source_says(cause, case, knowledge) if rule.source == "sglang" and not edits else None
        fixes += known.fixes if known is not None else ()
        return fixes + (_mended_later(cause, case) if _of_programming(cause) else ()), ()
    advice = _advice(cause, case, knowledge, fixes)
    if fixes and not advice.steps:
        return advice.fixes, ()  # the end of a process, told by another: no code is at fault
    said = _tables_say(cause, case, knowledge)
    guesses = said.fixes if said is not None and not edits else ()
    fixes = _with_later(_with_gated((*guesses, *advice.fixes), said), said)
    steps = (*advice.steps, *(said.steps if said is not None else ()))
    return fixes, steps if fixes or steps else _where_to_look(cause, case)


def _whose_code(rule: Rule, cause: Cause) -> str:
    """Where a rule knows the kind of a failure only: which of SGLang's functions failed, at what."""
    if not rule.generic or any(remedy.generate == "callee" for remedy in rule.remedies):
        return ""
    from mtpdoctor.diagnose.unknown import whose_code

    said = whose_code(cause)
    return f" {said}" if said.startswith("It is an error of programming") else ""


def _of_programming(cause: Cause) -> bool:
    """An exception that speaks of one of SGLang's own classes or functions."""
    text = cause.root.body
    return "object has no attribute" in text or "() missing " in text or "unexpected keyword argument" in text


def _mended_later(cause: Cause, case: Case) -> tuple[Fix, ...]:
    from mtpdoctor.diagnose.later import mended_fixes  # reads tables that most failures do not need

    return mended_fixes(root_traceback(cause), case)


def _for_this_build(diagnosis: Diagnosis, cause: Cause, case: Case) -> Diagnosis:
    from mtpdoctor.diagnose.fitness import fitting  # only a failure has fixes
    from mtpdoctor.diagnose.own_build import as_here

    fixes = fitting(as_here(diagnosis.fixes, case, cause), case)
    fixes = tuple(
        fix if (run := filled_in(fix.run, case)) == fix.run else replace(fix, run=run) for fix in fixes
    )
    if cause.match is None or cause.match.rule.generic:
        from mtpdoctor.diagnose.ranking import ranked

        fixes = ranked(fixes)  # what a rule knows of this very failure keeps its order
    return diagnosis if fixes == diagnosis.fixes else replace(diagnosis, fixes=fixes)


def _with_versions(diagnosis: Diagnosis, cause: Cause, case: Case, knowledge: Knowledge) -> Diagnosis:
    from mtpdoctor.diagnose.drift import with_drift  # only a failure needs it

    return with_drift(diagnosis, cause, case, knowledge)


def _as_shown(diagnosis: Diagnosis, reading: LogReading, attempt: Attempt) -> Diagnosis:
    if "atchdog" not in diagnosis.root.body:
        return diagnosis
    from mtpdoctor.diagnose.watchdog import as_the_log_shows  # few failures are ended by it

    return as_the_log_shows(diagnosis, reading, attempt)


def _with_printed(fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    from mtpdoctor.diagnose.printed.placing import with_printed  # only a failure has fixes

    return with_printed(fixes, cause, case, knowledge)


def _with_carried(fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    from mtpdoctor.diagnose.carried import with_carried  # only a failure has fixes

    return with_carried(fixes, cause, case, knowledge)


def _where_to_look(cause: Cause, case: Case) -> tuple[str, ...]:
    from mtpdoctor.diagnose.unknown import next_steps

    return next_steps(cause, case)


def _if_it_is(match: Match, case: Case) -> str:
    """Where the release was only worked out, and the rule's text stands for something else in it: that in words."""
    if case.release is None or not any(case.release in note.releases for note in match.rule.elsewhere):
        return ""
    return f" The log only lets one work out that this is SGLang {case.release}, where this text has another cause."


def with_facts(cause: str, match: Match, case: Case) -> str:
    """The cause, and what the facts of the releases say of it, for a rule whose remedies come from them."""
    if not any(
        remedy.generate in ABOUT_MODELS or remedy.generate in FROM_SOURCES for remedy in match.rule.remedies
    ):
        return cause
    from mtpdoctor.diagnose.kinds import said_of  # few rules have them

    return f"{cause} {said_of(match, case)}".rstrip()


def _advice(cause: Cause, case: Case, knowledge: Knowledge, fixes: tuple[Fix, ...]) -> Advice:
    from mtpdoctor.diagnose.advice import advice_on  # only where no rule knows the cause

    return advice_on(cause, case, knowledge, fixes)


def _source_says(cause: Cause, case: Case, knowledge: Knowledge) -> SourceSays | None:
    from mtpdoctor.diagnose.raise_site import source_says  # parses Python source: only where needed

    return source_says(cause, case, knowledge)


def _tables_say(cause: Cause, case: Case, knowledge: Knowledge) -> SourceSays | None:
    from mtpdoctor.diagnose.raise_site import tables_say  # reads tables that a known failure does not need

    return tables_say(cause, case, knowledge)


def _with_gated(fixes: tuple[Fix, ...], said: SourceSays | None) -> tuple[Fix, ...]:
    """An option of the command that lets the failing code run goes first, what SGLang chose by itself last."""
    if said is None:
        return fixes
    known = {fix.edits: fix for fix in reversed(fixes) if fix.edits}
    first = tuple(known.get(fix.edits, fix) for fix in said.gated.asked)
    last = tuple(fix for fix in said.gated.chosen if fix.edits not in known)
    return (*first, *(fix for fix in fixes if fix not in first), *last)


def _with_later(fixes: tuple[Fix, ...], said: SourceSays | None) -> tuple[Fix, ...]:
    """What other releases have there goes last, once; first where they no longer have the line that fails."""
    if said is None:
        return fixes
    ahead = {fix.title for fix in said.first}
    fixes = (*said.first, *(fix for fix in fixes if fix.title not in ahead))
    more = tuple(f for f in said.later if all(f.title != g.title for g in fixes))
    return (*fixes, *more) or said.last


def _marks(match: Match) -> tuple[str, ...]:
    """The decisive words of the root line: what the rule looked for, and what it captured."""
    text = match.line.text
    words = [p.literal for p in match.rule.match if p.literal in text]
    words += [v for v in match.captures.values() if v and v in text and len(v) > 2]
    return tuple(dict.fromkeys(words))


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
                cause=fill(match.rule.cause, case.facts, match.captures),
                fixes=() if brief else fixes_of(match, case, knowledge),
                marks=_marks(match),
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
    return command_line(case.document.command)


def _untried(matches: Matches) -> tuple[str, ...]:
    if not matches.skipped:
        return ()
    return (f"not tried everywhere, their patterns took too long: {', '.join(matches.skipped)}",)


def _where(case: Case, name: str) -> str | None:
    fact = case.facts.fact(name)
    return fact.where if fact else None
