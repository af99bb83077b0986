"""One root cause becomes one diagnosis: what is said of it, and its fixes in the order in which they are offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.memory import asks_memory
from mtpdoctor.diagnose.pointed import as_it_says
from mtpdoctor.diagnose.remedies import case_for, facts_for, filled_in, fixes_of
from mtpdoctor.diagnose.types import Diagnosis, Fix
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.here import cause_here
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match, Role, Rule
from mtpdoctor.log.types import Attempt, EventKind, Line, LogReading
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.diagnose.advice import Advice
    from mtpdoctor.diagnose.raise_site import SourceSays
    from mtpdoctor.diagnose.reached import Reached

UNKNOWN_CONFIDENCE = 0.3  # of the root exception being the root cause when no rule knows it
ABOUT_MODELS = ("architecture", "model-type")  # remedies worked out from what releases know of models
FROM_SOURCES = ("symbol", "own-import", "block", "host-cache", "tensor-name", "callee")
FROM_LAUNCH = ("bare-flag", "link-target", "unknown-flag")


def diagnosed(
    cause: Cause,
    consequences: tuple[Line, ...],
    case: Case,
    knowledge: Knowledge,
    reading: LogReading,
    attempt: Attempt,
) -> Diagnosis:
    """What a rule, or the kind of the failure, says of the cause, fitted to this build, its packages and this log."""
    known = _by_rule if cause.match is not None else _unknown
    case = case_for(cause.match.rule, case) if cause.match is not None else case
    diagnosis = _for_this_build(known(cause, consequences, case, knowledge), cause, case, knowledge, reading)
    diagnosis = _with_versions(diagnosis, cause, case, knowledge)
    diagnosis = _each_once(_as_shown(diagnosis, cause, case, knowledge, reading, attempt))
    diagnosis = _held_against_the_log(diagnosis, cause, attempt)
    return _placed(_with_needs(diagnosis, case, attempt), cause, case, attempt)


def _placed(diagnosis: Diagnosis, cause: Cause, case: Case, attempt: Attempt) -> Diagnosis:
    if not diagnosis.fixes:
        return diagnosis
    from mtpdoctor.diagnose.checkpoints import fitting_weights
    from mtpdoctor.diagnose.own_build import without_wheels
    from mtpdoctor.diagnose.placed import as_placed  # only a failure has fixes

    fixes = as_placed(fitting_weights(diagnosis.fixes, case), case, attempt)
    fixes = without_wheels(fixes, case, cause)
    if any(fix.document is not None for fix in fixes):
        from mtpdoctor.diagnose.beside_others import not_alone
        from mtpdoctor.diagnose.node_count import with_fewer_nodes

        fixes = not_alone(with_fewer_nodes(fixes, case, attempt), case, attempt)
    if case.release is not None and case.release.is_devrelease:
        from mtpdoctor.diagnose.unpublished import as_published  # few launches run a build from source

        fixes = as_published(fixes, case)
    return diagnosis if fixes == diagnosis.fixes else replace(diagnosis, fixes=fixes)


def _is_known(cause: Cause) -> bool:
    """Does a rule know this very failure, not its kind only?"""
    return cause.match is not None and not cause.match.rule.generic


def _each_once(diagnosis: Diagnosis) -> Diagnosis:
    if len(diagnosis.fixes) < 2:
        return diagnosis
    from mtpdoctor.diagnose.installs import once  # only a failure has several fixes

    fixes = once(diagnosis.fixes)
    return diagnosis if fixes == diagnosis.fixes else replace(diagnosis, fixes=fixes)


def _held_against_the_log(diagnosis: Diagnosis, cause: Cause, attempt: Attempt) -> Diagnosis:
    if not any(one.name.startswith(("host.", "model.weights")) for one in attempt.observations):
        return diagnosis
    from mtpdoctor.diagnose.shown import as_shown  # few logs show what tools print

    return as_shown(diagnosis, cause, attempt)


def _with_needs(diagnosis: Diagnosis, case: Case, attempt: Attempt) -> Diagnosis:
    if not any("sglang" in line for fix in diagnosis.fixes for line in fix.run):
        return diagnosis
    from mtpdoctor.diagnose.target import with_needs  # few failures are mended by another release

    return replace(diagnosis, fixes=with_needs(diagnosis.fixes, case, attempt))


def _unknown(cause: Cause, consequences: tuple[Line, ...], case: Case, knowledge: Knowledge) -> Diagnosis:
    from mtpdoctor.diagnose.unknown import next_steps
    from mtpdoctor.diagnose.unknown_cause import cause_of, title_of

    said = _tables_say(cause, case, knowledge)
    reached = _reached(cause, case)
    advice = _advice(cause, case, knowledge, ())
    fixes = _with_gated((*(said.fixes if said else ()), *advice.fixes), said)
    fixes = _with_printed(fixes, cause, case, knowledge)
    return Diagnosis(
        rule=None,
        title=title_of(cause, reached, refuses=said is not None and said.refuses),
        confidence=UNKNOWN_CONFIDENCE,
        cause=cause_of(cause, reached, said.asks if said is not None else ""),
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


def _by_rule(cause: Cause, consequences: tuple[Line, ...], case: Case, knowledge: Knowledge) -> Diagnosis:
    match = cause.match
    assert match is not None
    rule = match.rule
    fixes = fixes_of(match, case, knowledge)
    facts = facts_for(rule, case, knowledge) if asks_memory(rule) else case.facts
    fixes, steps = _completed(fixes, rule, cause, case, knowledge)
    fixes = _with_carried(_with_printed(fixes, cause, case, knowledge), cause, case, knowledge)
    told = with_facts(cause_here(rule, facts, match.captures), match, case)
    told += as_it_says(told, cause.root)
    return Diagnosis(
        rule=rule.id,
        title=fill(rule.title, facts, match.captures),
        confidence=round(match.confidence, 2),
        cause=told + _if_it_is(match, case) + _whose_code(rule, cause, case, told),
        misleading=fill(rule.misleading, facts, match.captures) if rule.misleading else None,
        root=cause.root,
        ranks=cause.ranks,
        evidence=match.evidence,
        consequences=consequences,
        references=rule.refs,
        fixes=fixes,
        chain=cause.chain,
        next_steps=steps,
        marks=marks_of(match),
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
    if any(
        remedy.generate == "tensor-name" for remedy in rule.remedies
    ):  # it has asked the later loaders itself
        fixes = tuple(f for f in fixes if "in nothing that the failing line names" not in f.why)
    steps = (*advice.steps, *(said.steps if said is not None else ()))
    return fixes, steps if fixes or steps else _where_to_look(cause, case)


def _whose_code(rule: Rule, cause: Cause, case: Case, told: str) -> str:
    """Where a rule knows the kind of a failure only: which part of SGLang failed, at what, and what leads there."""
    if not rule.generic and rule.role is Role.CAUSE and not _of_this_build(rule) and "--" not in told:
        return _asked(cause, case)
    if not rule.generic or asks_memory(rule) or any(r.generate == "callee" for r in rule.remedies):
        return ""
    from mtpdoctor.diagnose.unknown_cause import AS_TOLD, whose_code

    said = (whose_code(cause).removesuffix(AS_TOLD).rstrip(), str(_reached(cause, case)))
    return "".join(f" {sentence}" for sentence in said if sentence)


def _of_this_build(rule: Rule) -> bool:
    """Does it say that the code itself is at fault, by what is known of the releases?"""
    return any(remedy.generate in FROM_SOURCES for remedy in rule.remedies)


def _asked(cause: Cause, case: Case) -> str:
    """Where a rule names no option: those of the command without which the failing code does not run."""
    reached = _reached(cause, case)
    return f" {replace(reached, chosen=(), near=())}" if reached.asked else ""


def _reached(cause: Cause, case: Case) -> Reached:
    from mtpdoctor.diagnose.reached import reached_by  # reads tables that a known failure does not need

    traceback = root_traceback(cause)
    return reached_by(traceback.frames if traceback is not None else (), case)


def _of_programming(cause: Cause) -> bool:
    """An exception that speaks of one of SGLang's own classes or functions."""
    text = cause.root.body
    return "object has no attribute" in text or "() missing " in text or "unexpected keyword argument" in text


def _mended_later(cause: Cause, case: Case) -> tuple[Fix, ...]:
    from mtpdoctor.diagnose.upgrading import mended_fixes  # reads tables that most failures do not need

    return mended_fixes(root_traceback(cause), case)


def _for_this_build(
    diagnosis: Diagnosis, cause: Cause, case: Case, knowledge: Knowledge, reading: LogReading
) -> Diagnosis:
    from mtpdoctor.diagnose.fitness import fitting  # only a failure has fixes
    from mtpdoctor.diagnose.own_build import as_here

    fixes = fitting(as_here(diagnosis.fixes, case, cause), case)
    fixes = tuple(
        fix if (run := filled_in(fix.run, case)) == fix.run else replace(fix, run=run) for fix in fixes
    )
    if not _is_known(cause):
        from mtpdoctor.diagnose.element_types import typed_otherwise
        from mtpdoctor.diagnose.native import frames_at_death
        from mtpdoctor.diagnose.odd_values import odd_fixes
        from mtpdoctor.diagnose.other_parsers import serves_diffusion
        from mtpdoctor.diagnose.ranking import ranked
        from mtpdoctor.diagnose.suspects import with_suspects

        if serves_diffusion(case):
            from mtpdoctor.diagnose.diffusion import diffusion_fixes, without_foreign

            own = diffusion_fixes(cause, case, knowledge)
            fixes = (
                *own,
                *(
                    fix
                    for fix in without_foreign(fixes)
                    if fix.edits not in {f.edits for f in own if f.edits}
                ),
            )
        # What a rule knows of this very failure keeps its order.
        odd = odd_fixes(cause, case, knowledge)
        other = typed_otherwise(cause, case, knowledge)
        odd = (*odd, other) if other is not None else odd
        rest = tuple(fix for fix in ranked(fixes) if fix.edits not in {f.edits for f in odd})
        fixes = with_suspects((*odd, *rest), cause, case, knowledge, frames_at_death(cause, reading))
    elif cause.failure.event is not None:
        from mtpdoctor.diagnose.native import frames_at_death
        from mtpdoctor.diagnose.tied import with_tied

        fixes = as_here(
            with_tied(fixes, cause, case, knowledge, frames_at_death(cause, reading)), case, cause
        )
    return diagnosis if fixes == diagnosis.fixes else replace(diagnosis, fixes=fixes)


def _with_versions(diagnosis: Diagnosis, cause: Cause, case: Case, knowledge: Knowledge) -> Diagnosis:
    from mtpdoctor.diagnose.drift import with_drift  # only a failure needs it

    return with_drift(diagnosis, cause, case, knowledge)


def _as_shown(
    diagnosis: Diagnosis,
    cause: Cause,
    case: Case,
    knowledge: Knowledge,
    reading: LogReading,
    attempt: Attempt,
) -> Diagnosis:
    known = _is_known(cause)
    if "atchdog" in diagnosis.root.body:
        from mtpdoctor.diagnose.watchdog import as_the_log_shows  # few failures are ended by it

        return as_the_log_shows(diagnosis, reading, attempt, case, knowledge, known=known)
    event = cause.failure.event
    if event is not None and event.kind is EventKind.NATIVE:
        from mtpdoctor.diagnose.native import as_the_stack_shows

        return as_the_stack_shows(diagnosis, event.line, reading, case, knowledge, known=known)
    return diagnosis


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
        remedy.generate in (*ABOUT_MODELS, *FROM_SOURCES, *FROM_LAUNCH) for remedy in match.rule.remedies
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


def marks_of(match: Match) -> tuple[str, ...]:
    """The decisive words of the root line: what the rule looked for, and what it captured."""
    text = match.line.text
    words = [p.literal for p in match.rule.match if p.literal in text]
    words += [v for v in match.captures.values() if v and v in text and len(v) > 2]
    return tuple(dict.fromkeys(words))
