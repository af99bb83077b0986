"""How far a fixed command is proven: against the release's flags, and against what the rules foresee of it.

- ``parsed``: every flag and value of the fixed command exists in the release;
- ``rules``: further, no preflight rule foresees a fatal problem in the fixed command (what was
  foreseen and has an edit was fixed along with it; where that edit is risky, so is the fix).
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.exact import flag_problems, of_another_server
from mtpdoctor.diagnose.memory import before_launch, with_memory
from mtpdoctor.diagnose.preflight import Foreseen, Summing, surely_fatal
from mtpdoctor.diagnose.spelling import contradictory, is_open, merged_edits, removals_first, spell
from mtpdoctor.errors import UserError
from mtpdoctor.facts import Facts, Source
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.resolution import resolved
from mtpdoctor.kb.templates import resolve_remedy
from mtpdoctor.kb.types import Remedy, Rule, Safety
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.types import Stage
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table

MAX_ROUNDS = 6
_BEFORE_CHECKS = frozenset({Stage.ENV.value, Stage.IMPORT.value, Stage.ARGPARSE.value})


@dataclass(frozen=True, slots=True)
class Proof:
    document: LaunchDocument | None  # None where the edits cannot be written in this form
    edits: tuple[Edit, ...]
    verified: str
    notes: tuple[str, ...]
    risks: tuple[str, ...] = ()  # of what else had to be changed


def launch_facts(case: Case, knowledge: Knowledge) -> Facts:
    """The facts that remedies are worked out over: before a launch, the arguments as SGLang would
    resolve them; with a log, as the log shows them."""
    return resolved(case.facts, knowledge.resolution).facts if _untried(case) else case.facts


def _untried(case: Case) -> bool:
    """No log shows what SGLang makes of the command: there is none, or it ended in the parser."""
    return case.reading is None or case.facts.look("log.stage") in _BEFORE_CHECKS


def prove(
    case: Case, edits: tuple[Edit, ...], knowledge: Knowledge, releases: Sequence[Release]
) -> Proof | None:
    """Apply, check against the release, run the preflight rules again until nothing fatal is left.

    None when the edits change nothing, or bring in what the release does not know. Bounded by MAX_ROUNDS; a command seen before ends it (no
    oscillation)."""
    assert case.document is not None
    try:
        document = case.document.apply(edits)
    except UserError as error:
        return Proof(None, edits, "none", (str(error),))
    if document.text == case.document.text:
        return _of_environment(case, edits)
    notes: list[str] = []
    seen = {case.document.text, document.text}
    if not releases:
        return Proof(document, edits, "none", ("the SGLang release is not known, so nothing was checked",))
    old_problems = flag_problems(case.document, releases)
    verified = "parsed"
    risks: tuple[str, ...] = ()
    for _ in range(MAX_ROUNDS):
        unknown = flag_problems(document, releases)
        if set(unknown) - set(old_problems):
            return None
        if unknown and case.release is not None and (renamed := _renamed(document, case.release, seen)):
            document = renamed.document
            seen.add(document.text)
            edits += renamed.edits
            notes.append(renamed.why)
            continue
        if unknown:
            return Proof(document, edits, "none", (*notes, *unknown), risks)
        if of_another_server(document):
            break  # the rules speak of the language server
        trial = case.with_document(document)
        fatal = surely_fatal(knowledge, trial.facts, _trial_memory(case, trial))
        if not fatal:
            verified = "rules"
            break
        step = _next_step(fatal, trial, fatal[0].facts or launch_facts(trial, knowledge), seen)
        if step is None:
            notes.append(f"still in its way: {fatal[0].title} ({fatal[0].rule.id})")
            break
        document = step.document
        seen.add(document.text)
        edits = merged_edits(edits, step.edits)
        notes.append(step.why)
        risks += step.risks
    return Proof(document, edits, verified, tuple(notes), risks)


def _of_environment(case: Case, edits: tuple[Edit, ...]) -> Proof | None:
    """Variables to take out that the command does not set and the log shows: they come from where it is started."""
    facts = {e.name: case.facts.fact(f"env.{e.name}") for e in edits if e.op is EditOp.UNSET}
    shown = {name: f for name, f in facts.items() if f is not None and f.value is not None}
    if (
        not shown
        or any(e.op is not EditOp.UNSET for e in edits)
        or any(f.source is not Source.LOG for f in shown.values())
    ):
        return None
    edits = tuple(e for e in edits if e.name in shown)  # the others are set nowhere
    what = " ".join(shown)
    return Proof(
        None,
        edits,
        "none",
        (f"the command does not set it, the log shows it: unset {what} where the server is started from",),
    )


def _trial_memory(case: Case, trial: Case) -> Summing:
    """The memory of a launch that has not happened: of the log only what it found before."""
    return lambda facts: with_memory(trial, before_launch(facts, case.facts))


@dataclass(frozen=True, slots=True)
class _Step:
    edits: tuple[Edit, ...]
    document: LaunchDocument
    why: str
    risks: tuple[str, ...] = ()


def _next_step(fatal: Sequence[Foreseen], case: Case, facts: Facts, seen: set[str]) -> _Step | None:
    """The first safe remedy of any of the problems; where there is none, the first risky one. With a
    log at hand only safe ones: the log is better evidence of what comes next than a forecast."""
    for safety in (Safety.SAFE, Safety.RISKY) if _untried(case) else (Safety.SAFE,):
        for problem in fatal:
            for remedy in problem.rule.remedies:
                if remedy.safety is safety and (step := _step(remedy, problem.rule, case, facts, seen)):
                    return step
    return None


def _step(remedy: Remedy, rule: Rule, case: Case, facts: Facts, seen: set[str]) -> _Step | None:
    assert case.document is not None
    if remedy.generate or not remedy.edits:
        return None
    if not (remedy.releases.holds(case.release) and evaluate(remedy.when, facts)):
        return None
    filled = resolve_remedy(remedy, facts)
    spelled = [spell(e, case)[0] for e in filled.edits]
    if filled.missing or any(e is None for e in spelled):
        return None
    edits = tuple(removals_first([e for one in spelled if one is not None for e in one]))
    if contradictory(edits) or any(is_open(e) for e in edits):
        return None
    try:
        document = case.document.apply(edits)
    except UserError:
        return None
    if document.text in seen:
        return None
    risks = () if remedy.safety is Safety.SAFE else (filled.risk or filled.title,)
    return _Step(edits, document, f"also needed: {filled.title} ({rule.id})", risks)


def _renamed(document: LaunchDocument, release: Release, seen: set[str]) -> _Step | None:
    """The other flags of the command that the release has under another name, written so: its parser would
    refuse them next."""
    from mtpdoctor.diagnose.strays import switches_with_values, without_value
    from mtpdoctor.sglang.help import HelpKind, explain_unknown

    edits = [without_value(use) for use in switches_with_values(document, release)]
    why = ["a switch takes no value"] if edits else []
    table = flag_table(release)
    for use in document.command.flags:
        if table.resolve(use.name) is None and len(use.values) < 2:
            helped = explain_unknown(use.name, release, use.values[0] if use.values else None)
            if helped.kind is HelpKind.RENAMED and helped.sure and not any(map(is_open, helped.edits)):
                edits += removals_first(helped.edits)
                why.append(helped.text)
    if not edits or any("{" in (e.value or "") for e in edits):
        return None
    try:
        after = document.apply(edits)
    except UserError:
        return None
    return None if after.text in seen else _Step(tuple(edits), after, "; ".join(why))
