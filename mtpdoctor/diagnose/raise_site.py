"""What SGLang's own source says about a failure that no rule knows.

Needs the source of the release at hand (installed, or a wheel in the cache; see
``sglang.source.find_source``). What comes out is read off the guards of the statement that raised,
so every edit is a guess: ``risky``, never ``safe``, and checked like any fix.
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.remedies import diff_of, prove
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import deciding_frame, root_traceback
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.types import Safety
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import FlagTable, flag_table
from mtpdoctor.sglang.guards import Candidate, candidate_edits, config_read, flags_read, guard_words
from mtpdoctor.sglang.raise_sites import RaiseSite, find_site, index_sites, site_at
from mtpdoctor.sglang.source import find_source

MAX_FIXES = 3
MAX_GUARDS = 4


@dataclass(frozen=True, slots=True)
class SourceSays:
    """Sentences on where and why it was raised, and the edits that its guards suggest."""

    steps: tuple[str, ...]
    fixes: tuple[Fix, ...]


def source_says(cause: Cause, case: Case, knowledge: Knowledge) -> SourceSays | None:
    """None when no source is at hand or the statement is not found in it."""
    site = _site(cause, case)
    if site is None:
        return None
    table = flag_table(case.release)
    return SourceSays(_sentences(site, case, table), _fixes(site, case, knowledge, table))


def _site(cause: Cause, case: Case) -> RaiseSite | None:
    source = find_source(str(case.release) if case.release else None)
    if source is None:
        return None
    traceback = root_traceback(cause)
    if traceback is not None and traceback.frames:
        frame = deciding_frame(traceback)
        site = site_at(source, frame.path, frame.lineno, frame.function)
        if site is not None:
            return site
    found = find_site(index_sites(source), cause.root.body)
    return found[0] if found else None


def _sentences(site: RaiseSite, case: Case, table: FlagTable) -> tuple[str, ...]:
    steps = [f"it is raised in {site.file}:{site.line}, {site.function}: {site.code}"]
    guards = guard_words(site, table)
    if guards:
        steps.append("it is reached when " + ", and ".join(guards[-MAX_GUARDS:]))
    flags = flags_read(site, table)
    if flags:
        shown = []
        for spec in flags:
            fact = case.facts.fact(f"arg.{spec.dest}")
            shown.append(f"{spec.name} ({'not known here' if fact is None else f'here {fact.value}'})")
        steps.append("these options decide it: " + ", ".join(shown))
    fields = config_read(site)
    if fields:
        steps.append("these fields of config.json decide it: " + ", ".join(fields))
    return tuple(steps)


def _fixes(site: RaiseSite, case: Case, knowledge: Knowledge, table: FlagTable) -> tuple[Fix, ...]:
    if case.document is None or case.release is None:
        return ()
    values = {name[4:]: case.facts[name] for name in case.facts if name.startswith("arg.")}
    out: list[Fix] = []
    for candidate in candidate_edits(site, values, table):
        fix = _fix(candidate, case, knowledge)
        if fix is not None:
            out.append(fix)
        if len(out) == MAX_FIXES:
            break
    return tuple(out)


def _fix(candidate: Candidate, case: Case, knowledge: Knowledge) -> Fix | None:
    assert case.document is not None and case.release is not None
    proof = prove(case, candidate.edits, knowledge, (case.release,))
    if proof is None or proof.document is None or proof.verified == "none":
        return None
    return Fix(
        title="Change what the failing check looks at: " + "; ".join(str(e) for e in candidate.edits),
        safety=Safety.RISKY.value,
        why=candidate.why,
        risk="read off the source, not known from experience; it may give up what the option was for",
        edits=proof.edits,
        run=(),
        command=proof.document.line,
        verified=proof.verified,
        notes=proof.notes,
        diff=diff_of(case.document, proof.document),
        document=proof.document,
    )
