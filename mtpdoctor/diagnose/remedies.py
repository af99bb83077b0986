"""From the remedies of a rule to fixes: resolved, spelled for the release, applied, proven.

A remedy is offered only when its condition does not fail, its flags exist in the release in use and it changes something.
"""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.case import Case
from mtpdoctor.diagnose.config_file import only_in_file
from mtpdoctor.diagnose.exact import NOT_EXACT, doubts
from mtpdoctor.diagnose.in_force import (
    chosen_again,
    names_missing_option,
    without_those_in_force,
    written_bare,
)
from mtpdoctor.diagnose.memory import asks_memory, with_memory
from mtpdoctor.diagnose.proof import launch_facts, prove
from mtpdoctor.diagnose.spelling import contradictory, is_open, removals_first, spell
from mtpdoctor.diagnose.splits import Together, going_together
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.workable import impossible, unsure
from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.by_name import evaluate_by_name
from mtpdoctor.kb.conditions import describe, evaluate, fact_names
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.templates import resolve_remedy
from mtpdoctor.kb.types import ALWAYS, Match, Remedy, Rule, Safety
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit, EditOp, Form
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.release import Release
from mtpdoctor.sglang.releases import known_releases

BARE_UPGRADE = "pip install --upgrade sglang"


def fixes_of(match: Match, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """The fixes of a matched rule for this case, best first."""
    certain: list[Fix] = []
    conditional: list[Fix] = []
    case = case_for(match.rule, case)
    facts = facts_for(match.rule, case, knowledge)
    for remedy in _expanded(match, case):
        truth = _applies(remedy, case, facts, match)
        if truth is False:
            continue
        fix = _fix(remedy, match.captures, match.rule, case, facts, knowledge, truth)
        if fix is not None and all(
            f.command != fix.command or f.title != fix.title for f in certain + conditional
        ):
            fits = truth or _keeps_its_place(remedy, case, facts, match)
            (certain if fits and _has_a_place(fix, case) else conditional).append(fix)
    return tuple(certain + conditional)


def _has_a_place(fix: Fix, case: Case) -> bool:
    """Can its edits be made in the launch that was found? (A container's GPUs cannot where no container is started.)"""
    of_container = any(
        e.op in (EditOp.GPUS, EditOp.SHM_SIZE, EditOp.IPC, EditOp.IMAGE_TAG) for e in fix.edits
    )
    return not of_container or fix.document is not None or case.document is None


def case_for(rule: Rule, case: Case) -> Case:
    """Where the release was only worked out, and the rule's message is of other releases, it is not known."""
    unlike = case.release_range is not None and rule.releases.holds(case.release) is False
    return case.without_release() if unlike else case


def fix_of(remedy: Remedy, case: Case, knowledge: Knowledge) -> Fix | None:
    """The fix of a remedy that no rule holds (a log says it); None where it changes nothing or cannot be here."""
    return _fix(remedy, {}, None, case, launch_facts(case, knowledge), knowledge, True)


def facts_for(rule: Rule, case: Case, knowledge: Knowledge) -> Facts:
    """``launch_facts``, with the memory sum where the rule asks for it."""
    facts = launch_facts(case, knowledge)
    if not asks_memory(rule):
        return facts
    return with_memory(case, facts, failed=case.reading is not None)


def _expanded(match: Match, case: Case) -> list[Remedy]:
    out: list[Remedy] = []
    for remedy in match.rule.remedies:
        if remedy.checkpoints is not None and remedy.checkpoints.smaller:
            from mtpdoctor.diagnose.published import with_fewer_bits

            out.extend(with_fewer_bits(remedy))
        elif remedy.generate is None:
            out.append(remedy)
        else:
            from mtpdoctor.diagnose.generate import generated_remedies  # few rules have them

            out.extend(generated_remedies(remedy.generate, match, case))
    return out


def _applies(remedy: Remedy, case: Case, facts: Facts, match: Match) -> bool | None:
    in_release = remedy.releases.holds(case.release)
    holds = evaluate_by_name(remedy.when, facts, match.captures)
    if in_release is False or holds is False:
        return False
    return None if in_release is None or holds is None else True


def _keeps_its_place(remedy: Remedy, case: Case, facts: Facts, match: Match) -> bool:
    """Is it only the release that is open, or part of a condition whose other parts hold? What is asked of the
    launch itself, and nothing known speaks for, goes behind what surely fits; what may be unknown speaks for nothing."""
    if remedy.releases.holds(case.release) is None:
        return evaluate(remedy.when, facts, match.captures) is True
    parts = remedy.when.children if remedy.when.op == "all" else ()
    return any(
        evaluate(part, facts, match.captures)
        and any(name.startswith("capture.") or facts.look(name) is not UNKNOWN for name in fact_names(part))
        for part in parts
    )


def _fix(
    remedy: Remedy,
    captures: Mapping[str, str],
    rule: Rule | None,
    case: Case,
    facts: Facts,
    knowledge: Knowledge,
    truth: bool | None,
) -> Fix | None:
    notes: list[str] = []
    served = case  # with what is known of the weights that the fix serves
    if remedy.checkpoints is not None:
        from mtpdoctor.diagnose.published import with_checkpoint  # few remedies ask for it

        answer = with_checkpoint(remedy, case, facts, knowledge.checkpoints)
        if answer.remedy is None:
            return None
        remedy, served = answer.remedy, answer.case
        notes.extend(answer.notes)
    filled = resolve_remedy(remedy, facts, captures)
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
    together = going_together(edits, case, facts) if any(e.op is EditOp.SET for e in edits) else Together(())
    if together is None:
        return None
    if together.edits:
        edits = list(together.edits)
        notes.append(together.note)
    edits = removals_first(edits)
    if impossible(edits, facts, case.release) is not None:
        return None
    if case.document is not None and edits:
        from mtpdoctor.diagnose.partners import (
            overruled,
            partners_of,
            whole_speculation,
        )  # only where something is changed

        before, why_before = overruled(edits, case.document.command, case.release)
        if before:
            edits = removals_first([*edits, *before])
            notes.append(why_before)
            safety = Safety.RISKY.value if safety == Safety.SAFE.value else safety
    changing = without_those_in_force(edits, facts, case.release)
    if len(changing) < len(edits):
        changing = tuple(e for e in edits if e in changing or written_bare(e, case.document))
    if edits and not changing and not filled.run:
        return None
    asked, edits = edits, list(changing)
    if case.document is not None and edits:
        command = case.document.command
        along, with_them = partners_of(edits, command, case.release, asked)
        edits = removals_first([*edits, *along])
        notes.append(with_them)
        along, with_them = whole_speculation(edits, command, case.release)
        edits = removals_first([*edits, *along])
        notes.append(with_them)
    if not edits and names_missing_option(filled.title, case.release):
        return None
    if safety == Safety.SAFE.value and (why := unsure(edits, facts, case.release)) is not None:
        safety = Safety.RISKY.value
        notes.append(f"the GPU is not known: {why}")
    if safety == Safety.SAFE.value and evaluate_by_name(remedy.when, facts, captures) is None:
        safety = Safety.RISKY.value  # whether it helps at all is open: the note says on what that hangs
    if filled.missing and remedy.edits:
        notes.append(f"not known here: {', '.join(filled.missing)}")
        safety = Safety.MANUAL.value
        edits = []
    fix = Fix(
        title=together.title or filled.title,
        safety=safety,
        why=f"{filled.why}; {together.why}" if together.why else filled.why,
        risk=filled.risk,
        edits=tuple(edits),
        run=filled_in(tuple(map(with_number, filled.run)), case),
        command=None,
        verified="none",
        notes=tuple(n for n in notes if n),
    )
    if not edits or case.document is None or any(is_open(edit) for edit in edits):
        return fix
    if (elsewhere := only_in_file(edits, case.document.command)) is not None:
        file, names = elsewhere
        said = f"change it in {file}: the command line cannot take {' and '.join(names)} out of the file"
        return replace(fix, safety=Safety.MANUAL.value, notes=(*fix.notes, said))
    releases = candidate_releases(case, rule)
    wanted = tuple(r for r in releases if remedy.releases.holds(r))  # the remedy is for these only
    proof = prove(served, tuple(edits), knowledge, wanted or releases)
    if proof is None:
        return None
    fixed = proof.document
    open_points = doubts(fixed, case.lost) if fixed else ()
    safety = Safety.RISKY.value if proof.risks or (open_points and safety == Safety.SAFE.value) else safety
    risks = proof.risks if not open_points or fix.safety != Safety.SAFE.value else (*proof.risks, NOT_EXACT)
    if fixed is None and safety == Safety.SAFE.value:
        safety = Safety.MANUAL.value
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


_STAND_IN = lazy(r"[A-Z]{2}|<[a-z]|\w/[\w.]*(?:\*|\w\.json\b)")  # MODEL_DIR, <model>, files of a model


def filled_in(lines: tuple[str, ...], case: Case) -> tuple[str, ...]:
    """Commands to type with what the case tells in place of their stand-ins."""
    if not any(_STAND_IN.search(line) for line in lines):
        return lines
    from mtpdoctor.diagnose.filled import filled  # few commands have any

    return filled(lines, case)


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


def candidate_releases(case: Case, rule: Rule | None) -> tuple[Release, ...]:
    """The release in use; where it is not known, every release in which the rule's message occurs
    (none when that says nothing)."""
    if case.release is not None:
        return (case.release,)
    if rule is None or not rule.releases.bounds:
        return ()
    return tuple(r for r in known_releases() if r in rule.releases)
