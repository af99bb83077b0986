"""Packages of another version than is asked for, as a cause: where the failure is of a kind that this explains.

A drift is blamed only where the failure lies in the package, in the one that asks, or between the two. Nothing is said
of other drifts: many have no consequence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.drift.blame import Blame
    from mtpdoctor.diagnose.drift.found import Drift
    from mtpdoctor.diagnose.types import Diagnosis, Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.log.types import Line

RULE = "MTP1993"
_SURE = 0.85  # the log says what is asked, or a compiled library lacks a symbol
_LIKELY = 0.7


def with_drift(diagnosis: Diagnosis, cause: Cause, case: Case, knowledge: Knowledge) -> Diagnosis:
    """The diagnosis with what the versions in the log add to it, and with exact versions in its commands."""
    shown = any(name.startswith(("host.package.", "log.ask.")) for name in case.facts)
    if not shown and not any(fix.run for fix in diagnosis.fixes):
        return diagnosis
    from mtpdoctor.diagnose.drift.exact import as_pinned
    from mtpdoctor.diagnose.drift.found import drifts_of

    blame = _blame(cause)
    drifts = drifts_of(case) if shown else ()
    explaining = explaining_of(drifts, blame) if blame is not None else ()
    if not explaining and drifts and (blame := _by_rule(diagnosis, cause, drifts) or blame) is not None:
        explaining = explaining_of(drifts, blame)
    fixes = as_pinned(diagnosis.fixes, blame.packages if blame is not None else (), case)
    if fixes != diagnosis.fixes:
        diagnosis = replace(diagnosis, fixes=fixes)
    if blame is None or not explaining:
        return diagnosis
    return _told(diagnosis, explaining, blame, cause, case, knowledge)


def _blame(cause: Cause) -> Blame | None:
    from mtpdoctor.diagnose.drift.blame import blame_of

    traceback = root_traceback(cause)
    text = cause.root.body
    if traceback is not None and traceback.message and traceback.exception is not None:
        text = f"{text}\n{traceback.message}"
    frames = traceback.frames if traceback is not None else ()
    return blame_of(text, traceback.type if traceback is not None else text.partition(":")[0], frames)


_INSTALL = re.compile(r"\bpip3? install\s([^\n;&|#]+)")
_WORD = re.compile(r"(?<=[\s'\"])([A-Za-z][\w.-]*)(?:\[[\w,-]*\])?(?:==(\d[\w.]*))?")


def _by_rule(diagnosis: Diagnosis, cause: Cause, drifts: tuple[Drift, ...]) -> Blame | None:
    """The package that the first fix of a rule which knows the failure installs, where it is one of those that differ."""
    rule = cause.match.rule if cause.match is not None else None
    if rule is None or rule.generic or rule.evidence == "symptom" or not diagnosis.fixes:
        return None
    from mtpdoctor.diagnose.drift.blame import Blame, Kind
    from mtpdoctor.diagnose.drift.found import meets

    told = (found[1] for line in diagnosis.fixes[0].run for found in _INSTALL.finditer(line))
    words = {m[1].lower().replace("_", "-"): m[2] for text in told for m in _WORD.finditer(f" {text}")}
    names = [
        drift.name
        for drift in drifts
        if drift.name in words
        and (
            words[drift.name] is None or meets(words[drift.name], drift.spec)
        )  # it may know of another version
    ]
    return Blame(Kind.IMPORT, tuple(dict.fromkeys(names))) if names else None


def explaining_of(drifts: tuple[Drift, ...], blame: Blame) -> tuple[Drift, ...]:
    """Those that explain it, the surest first: at most one for each package."""
    from mtpdoctor.diagnose.drift.blame import Kind

    if blame.kind is Kind.MODEL_TYPE:
        return ()  # whether the version that is asked for knows the model is another question (kinds/model_type.py)
    fitting = []
    for drift in drifts:
        both = drift.owner in blame.packages
        if drift.name not in blame.packages or (
            not drift.far and drift.asked_where is None and blame.kind is not Kind.CHECK
        ):
            continue
        if (
            blame.kind is Kind.SYMBOL
            and drift.name != "torch"
            and not both
            and drift.name not in blame.packages[:2]
        ):
            continue
        fitting.append((not both, blame.packages.index(drift.name), drift))
    fitting.sort(key=lambda row: row[:2])
    out: dict[str, Drift] = {}
    for _, _, drift in fitting:
        out.setdefault(drift.name, drift)
    for leader in ("torch", "flashinfer-python"):  # which bring what they ask for along
        if leader in out:
            rest = {n: d for n, d in out.items() if n != leader and d.owner != leader}
            out = {leader: out[leader]} | rest
    return tuple(out.values())[:2]


def _told(
    diagnosis: Diagnosis,
    drifts: tuple[Drift, ...],
    blame: Blame,
    cause: Cause,
    case: Case,
    knowledge: Knowledge,
) -> Diagnosis:
    from mtpdoctor.diagnose.drift.blame import Kind
    from mtpdoctor.diagnose.drift.commands import install_remedy, reason
    from mtpdoctor.diagnose.remedies import fix_of

    first = drifts[0]
    fix = fix_of(install_remedy(drifts, case), case, knowledge)
    if fix is None:
        return diagnosis
    said = " ".join(
        f"The log shows {d.name} {d.have}{f' ({d.where})' if d.where else ''}; {reason(d)}." for d in drifts
    )
    symbol = blame.kind is Kind.SYMBOL
    told = first.asked_where is not None or first.why == "built"
    sure = first.owner in blame.packages or blame.kind is Kind.CHECK or (symbol and told)
    rule = cause.match.rule if cause.match is not None else None
    evidence = (*diagnosis.evidence, *_lines(drifts, case))
    vague = rule is None or rule.generic or rule.evidence == "symptom"
    if RULE in knowledge.by_id and (vague or _speaks_of_else(diagnosis, first, blame)):
        return replace(
            diagnosis,
            evidence=evidence,
            rule=RULE,
            title=f"{first.name} {first.have} is not the version that {first.asker} asks for ({first.name}{first.spec})"
            if first.why == "asks"
            else f"{first.asker} was compiled against another torch than {first.have}",
            confidence=_SURE if sure else _LIKELY,
            cause=f"{said} The failure lies in {_in_words(first, blame)}, as when versions do not belong together.",
            misleading=None,
            captures=(("package", first.name),),
            fixes=_first(fix, diagnosis.fixes, first),
        )
    doing = [f for f in diagnosis.fixes if f.edits]
    leads = sure or symbol or blame.kind is Kind.IMPORT or not doing
    return replace(
        diagnosis,
        evidence=evidence,
        cause=f"{diagnosis.cause} {said}",
        fixes=_first(fix, diagnosis.fixes, first) if leads else (*diagnosis.fixes, fix),
    )


def _speaks_of_else(diagnosis: Diagnosis, drift: Drift, blame: Blame) -> bool:
    """Does the rule know nothing of versions, where the log itself says that the two packages between which it fails
    do not belong together?"""
    said = drift.asked_where is not None and drift.why == "asks" and drift.owner in blame.packages
    return said and not any("pip" in line for fix in diagnosis.fixes for line in fix.run)


def _lines(drifts: tuple[Drift, ...], case: Case) -> tuple[Line, ...]:
    """Where the log shows what is there and what is asked, in reading order."""
    names = {f"{prefix}.{drift.name}" for drift in drifts for prefix in ("host.package", "log.ask")}
    names |= {f"host.package.{drift.owner}" for drift in drifts} | {"log.built_with.torch"}
    seen = case.attempt.observations if case.attempt is not None else ()
    lines = {o.line.key: o.line for o in seen if o.name in names}
    return tuple(lines[key] for key in sorted(lines))


def _in_words(drift: Drift, blame: Blame) -> str:
    other = drift.owner if drift.owner in blame.packages and drift.owner != drift.name else "its callers"
    return f"{drift.name} or between it and {other}"


def _first(fix: Fix, fixes: tuple[Fix, ...], drift: Drift) -> tuple[Fix, ...]:
    """``fix``, then the others but those that install the same."""
    same = f"{drift.name}{drift.spec}"
    return (
        fix,
        *(f for f in fixes if f.edits or not any(same in line for line in f.run if "install" in line)),
    )
