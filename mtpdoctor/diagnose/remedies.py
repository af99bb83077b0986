"""From the remedies of a rule to fixes: resolved, spelled for the release, applied, proven.

A remedy is offered only when its condition does not fail, its flags exist in the release in use and
it changes something. ``verified`` says how far the proof went:

- ``parsed``: every flag and value of the fixed command exists in the release;
- ``rules``: further, no preflight rule foresees a fatal problem in the fixed command (what was
  foreseen and has an edit was fixed along with it; where that edit is risky, so is the fix).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.config_file import only_in_file
from mtpdoctor.diagnose.exact import NOT_EXACT, doubts, flag_problems, of_another_server
from mtpdoctor.diagnose.in_force import chosen_again, names_missing_option, without_those_in_force
from mtpdoctor.diagnose.memory import asks_memory, before_launch, with_memory
from mtpdoctor.diagnose.preflight import Foreseen, Summing, surely_fatal
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.workable import impossible, unsure
from mtpdoctor.errors import UserError
from mtpdoctor.facts import Facts
from mtpdoctor.kb.conditions import describe, evaluate
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.resolution import resolved
from mtpdoctor.kb.templates import resolve_edit, resolve_remedy
from mtpdoctor.kb.types import ALWAYS, EditTemplate, Match, Remedy, Rule, Safety
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit, EditOp, Form
from mtpdoctor.log.types import Stage
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import OF_SERVE, flag_table
from mtpdoctor.sglang.options import translate_edit
from mtpdoctor.sglang.releases import known_releases

MAX_ROUNDS = 6
BARE_UPGRADE = "pip install --upgrade sglang"
_OPEN = re.compile(r"<[^<>]+>")
_BEFORE_CHECKS = frozenset({Stage.ENV.value, Stage.IMPORT.value, Stage.ARGPARSE.value})


@dataclass(frozen=True, slots=True)
class Proof:
    document: LaunchDocument | None  # None where the edits cannot be written in this form
    edits: tuple[Edit, ...]
    verified: str
    notes: tuple[str, ...]
    risks: tuple[str, ...] = ()  # of what else had to be changed


def fixes_of(match: Match, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """The fixes of a matched rule for this case, best first."""
    certain: list[Fix] = []
    conditional: list[Fix] = []
    facts = facts_for(match.rule, case, knowledge)
    for remedy in _expanded(match, case):
        truth = _applies(remedy, case, facts, match)
        if truth is False:
            continue
        fix = _fix(remedy, match.captures, match.rule, case, facts, knowledge, truth)
        if fix is not None and all(
            f.command != fix.command or f.title != fix.title for f in certain + conditional
        ):
            (certain if truth or _keeps_its_place(remedy, case, facts, match) else conditional).append(fix)
    return tuple(certain + conditional)


def fix_of(remedy: Remedy, case: Case, knowledge: Knowledge) -> Fix | None:
    """The fix of a remedy that no rule holds (a log says it); None where it changes nothing or cannot be here."""
    return _fix(remedy, {}, None, case, launch_facts(case, knowledge), knowledge, True)


def launch_facts(case: Case, knowledge: Knowledge) -> Facts:
    """The facts that remedies are worked out over: before a launch, the arguments as SGLang would
    resolve them; with a log, as the log shows them."""
    return resolved(case.facts, knowledge.resolution).facts if _untried(case) else case.facts


def facts_for(rule: Rule, case: Case, knowledge: Knowledge) -> Facts:
    """``launch_facts``, with the memory sum where the rule asks for it."""
    facts = launch_facts(case, knowledge)
    if not asks_memory(rule):
        return facts
    return with_memory(case, facts, failed=case.reading is not None)


def _untried(case: Case) -> bool:
    """No log shows what SGLang makes of the command: there is none, or it ended in the parser."""
    return case.reading is None or case.facts.look("log.stage") in _BEFORE_CHECKS


def _expanded(match: Match, case: Case) -> list[Remedy]:
    out: list[Remedy] = []
    for remedy in match.rule.remedies:
        if remedy.generate is None:
            out.append(remedy)
        else:
            from mtpdoctor.diagnose.generate import generated_remedies  # few rules have them

            out.extend(generated_remedies(remedy.generate, match, case))
    return out


def _applies(remedy: Remedy, case: Case, facts: Facts, match: Match) -> bool | None:
    in_release = remedy.releases.holds(case.release)
    holds = evaluate(remedy.when, facts, match.captures)
    if in_release is False or holds is False:
        return False
    return None if in_release is None or holds is None else True


def _keeps_its_place(remedy: Remedy, case: Case, facts: Facts, match: Match) -> bool:
    """Is it only the release that is open, or part of a condition whose other parts hold? What is asked of the
    launch itself, and nothing known speaks for, goes behind what surely fits."""
    if remedy.releases.holds(case.release) is None:
        return evaluate(remedy.when, facts, match.captures) is True
    parts = remedy.when.children if remedy.when.op == "all" else ()
    return any(evaluate(part, facts, match.captures) for part in parts)


def _fix(
    remedy: Remedy,
    captures: Mapping[str, str],
    rule: Rule | None,
    case: Case,
    facts: Facts,
    knowledge: Knowledge,
    truth: bool | None,
) -> Fix | None:
    filled = resolve_remedy(remedy, facts, captures)
    notes: list[str] = []
    if truth is None:
        notes.append(_condition_in_words(remedy, case, facts, captures))
    safety = remedy.safety.value
    edits: list[Edit] = []
    for edit in filled.edits:
        spelled, note = spell(edit, case)
        if spelled is None:
            return None
        if note:
            notes.append(note)
        edits.extend(spelled)
    if contradictory(edits):
        return None
    edits = removals_first(edits)
    if impossible(edits, facts, case.release) is not None:
        return None
    changing = without_those_in_force(edits, facts, case.release)
    if edits and not changing and not filled.run:
        return None
    edits = list(changing)
    if case.document is not None and edits:
        from mtpdoctor.diagnose.partners import partners_of  # only where something is taken out

        along, with_them = partners_of(edits, case.document.command, case.release)
        edits = removals_first([*edits, *along])
        notes.append(with_them)
    if not edits and names_missing_option(filled.title, case.release):
        return None
    if safety == Safety.SAFE.value and (why := unsure(edits, facts, case.release)) is not None:
        safety = Safety.RISKY.value
        notes.append(f"the GPU is not known: {why}")
    if filled.missing and remedy.edits:
        notes.append(f"not known here: {', '.join(filled.missing)}")
        safety = Safety.MANUAL.value
        edits = []
    fix = Fix(
        title=filled.title,
        safety=safety,
        why=filled.why,
        risk=filled.risk,
        edits=tuple(edits),
        run=filled_in(tuple(map(with_number, filled.run)), case),
        command=None,
        verified="none",
        notes=tuple(n for n in notes if n),
    )
    if not edits or case.document is None or any(_is_open(edit) for edit in edits):
        return fix
    if (elsewhere := only_in_file(edits, case.document.command)) is not None:
        file, names = elsewhere
        said = f"change it in {file}: the command line cannot take {' and '.join(names)} out of the file"
        return replace(fix, safety=Safety.MANUAL.value, notes=(*fix.notes, said))
    releases = candidate_releases(case, rule)
    wanted = tuple(r for r in releases if remedy.releases.holds(r))  # the remedy is for these only
    proof = prove(case, tuple(edits), knowledge, wanted or releases)
    if proof is None:
        return None
    fixed = proof.document
    open_points = doubts(fixed, case.lost) if fixed else ()
    safety = Safety.RISKY.value if proof.risks or (open_points and safety == Safety.SAFE.value) else safety
    risks = proof.risks if not open_points or fix.safety != Safety.SAFE.value else (*proof.risks, NOT_EXACT)
    if fixed is not None and chosen_again(edits, case, fixed, knowledge):
        return None
    return replace(
        fix,
        safety=safety,
        risk="; ".join(dict.fromkeys(r for r in (fix.risk, *risks) if r)) or None,
        edits=proof.edits,
        command=fixed.line if fixed else None,
        diff=diff_of(case.document, fixed) if fixed else None,
        document=fixed,
        verified="none" if open_points else proof.verified,
        notes=fix.notes + proof.notes + open_points,
    )


def with_number(line: str) -> str:
    """``pip install --upgrade sglang`` with the newest release that is known: a command that names none may install anything."""
    return f"pip install sglang=={known_releases()[-1]}" if line == BARE_UPGRADE else line


_STAND_IN = lazy(r"[A-Z]{2}|<[a-z]")  # MODEL_DIR, <model>


def filled_in(lines: tuple[str, ...], case: Case) -> tuple[str, ...]:
    """Commands to type with what the case tells in place of their stand-ins."""
    if not any(_STAND_IN.search(line) for line in lines):
        return lines
    from mtpdoctor.diagnose.filled import filled  # few commands have any

    return filled(lines, case)


def contradictory(edits: Sequence[Edit]) -> bool:
    """Do they write the very flag that they take out? So a new name spelled for a release that has the old one."""
    gone = {e.name for e in edits if e.op is EditOp.REMOVE}
    return any(e.op in (EditOp.SET, EditOp.ADD) and e.name in gone for e in edits)


def removals_first(edits: Sequence[Edit]) -> list[Edit]:
    """In an order that loses nothing: a flag is taken out under all its names, the new one too."""
    return sorted(edits, key=lambda e: e.op is not EditOp.REMOVE)


def _is_open(edit: Edit) -> bool:
    """The value is left to the person (``<path of the model>``): no command can be ready to paste."""
    return edit.value is not None and bool(_OPEN.search(edit.value))


def diff_of(before: LaunchDocument, after: LaunchDocument) -> str | None:
    """The change to a file; a bare command line needs none, it is shown whole."""
    return (
        None if before.form is Form.SHELL or before.one_line else before.diff(after, before.name.lstrip("/"))
    )


def _condition_in_words(remedy: Remedy, case: Case, facts: Facts, captures: Mapping[str, str]) -> str:
    parts = []
    from mtpdoctor.kb.undecided import undecided

    open_part = undecided(remedy.when, facts, captures)
    if open_part != ALWAYS:
        parts.append(describe(open_part))
    if remedy.releases.holds(case.release) is None:
        parts.append(f"the SGLang release is {remedy.releases}")
    return f"if {' and '.join(parts)}" if parts else ""


def spell(edit: Edit, case: Case) -> tuple[tuple[Edit, ...] | None, str]:
    """The edit as the release in use spells it (a renamed flag, or a value that became another
    option); None with the reason when that release has no such option. What is removed is spelled
    as it stands in the command."""
    if edit.op not in (EditOp.SET, EditOp.ADD) or edit.name == OF_SERVE:
        return (edit,), ""
    edits, note = translate_edit(edit, case.release)
    if edits is None:
        return None, note
    filled = []
    for one in edits:
        written, missing = resolve_edit(EditTemplate(one.op.value, one.name, one.value), case.facts)
        if missing:
            return None, f"{note}; not known here: {', '.join(missing)}"
        filled.append(written)
    return tuple(filled), note


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
        return None
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
    if contradictory(edits) or any(_is_open(e) for e in edits):
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
            if helped.kind is HelpKind.RENAMED and helped.sure and not any(map(_is_open, helped.edits)):
                edits += removals_first(helped.edits)
                why.append(helped.text)
    if not edits or any("{" in (e.value or "") for e in edits):
        return None
    try:
        after = document.apply(edits)
    except UserError:
        return None
    return None if after.text in seen else _Step(tuple(edits), after, "; ".join(why))


def merged_edits(first: tuple[Edit, ...], more: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Both, a later edit of the same flag or variable replacing the earlier."""
    names = {e.name for e in more if e.name}
    return tuple(e for e in first if not e.name or e.name not in names) + more


def candidate_releases(case: Case, rule: Rule | None) -> tuple[Release, ...]:
    """The release in use; where it is not known, every release in which the rule's message occurs
    (none when that says nothing)."""
    if case.release is not None:
        return (case.release,)
    if rule is None or not rule.releases.bounds:
        return ()
    return tuple(r for r in known_releases() if r in rule.releases)
