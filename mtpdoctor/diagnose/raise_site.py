"""Where SGLang's own code raises a failure that no rule knows, and what decides it there.

From the table of its statements (``sglang.site_table``), which knows every release; for what the table lacks, from the
source of the release where it is at hand (installed, or a wheel in the cache; see ``sglang.source.find_source``). What
comes out is read off the guards of the statement, so every edit is a guess: ``risky``, never ``safe``, and checked like
any fix.
"""

from __future__ import annotations

from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.diagnose.asserted import site_of_assert
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.failures import PEER_ENDED
from mtpdoctor.diagnose.gated import NOTHING, Gated, gated_fixes
from mtpdoctor.diagnose.later import outlook_of, own_frames, releases_here, site_of
from mtpdoctor.diagnose.named_options import number
from mtpdoctor.diagnose.proof import prove
from mtpdoctor.diagnose.remedies import diff_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import deciding_frame, root_traceback
from mtpdoctor.diagnose.upgrading import last_resort, later_fixes, sentence
from mtpdoctor.diagnose.workable import impossible
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.types import Safety
from mtpdoctor.log.types import Traceback
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.sglang.flags import FlagTable, flag_table
from mtpdoctor.sglang.guard_facts import OPEN
from mtpdoctor.sglang.guards import (
    Candidate,
    candidate_edits,
    config_read,
    flags_read,
    guard_words,
    holds_here,
    known_part,
    names_in,
    variables_read,
)
from mtpdoctor.sglang.raise_sites import Guard, RaiseSite, find_site, index_sites, site_at
from mtpdoctor.sglang.site_table import TableSite, sites_in
from mtpdoctor.sglang.source import find_source
from mtpdoctor.sglang.templates import show

MAX_FIXES = 3
_OF_RANKS = lazy(r"(?i)tp[_ -]?size|tensor[_ -]parallel|\bTP\b")
_VAGUE = lazy(r"a computed value|something else")
MAX_GUARDS = 4


@dataclass(frozen=True, slots=True)
class SourceSays:
    """Sentences on where and why it was raised, and the edits that its guards suggest; ``later``: what other releases
    have in that place, as remedies."""

    steps: tuple[str, ...]
    fixes: tuple[Fix, ...]
    later: tuple[Fix, ...] = ()
    last: tuple[Fix, ...] = ()  # where there is no other fix at all
    first: tuple[Fix, ...] = ()  # the upgrade to a release that changed the very thing that fails
    gated: Gated = NOTHING  # edits of the options that let the failing code run
    asks: str = ""  # a sentence on the conditions of the check that refuses
    refuses: bool = False  # it is a check of SGLang's own that says so


def tables_say(cause: Cause, case: Case, knowledge: Knowledge) -> SourceSays | None:
    """What is known of the statement that raised, and of the place in other releases; None where neither is."""
    traceback = root_traceback(cause)
    table = flag_table(case.release)
    found = _in_table(traceback, cause.root.body, case)
    bare = _bare_assert(traceback)
    if found is None:
        said = source_says(cause, case, knowledge)
        site = _asserted(traceback, case, table) if bare and said is None else None
        if site is not None:
            said = _said_of(site, case, knowledge, table)
    else:
        site = _as_site(found, table)
        shown = _asserted(traceback, case, table) if bare else None
        if shown is not None:
            around = tuple(g for g in site.guards if not set(names_in(g.source)) & set(shown.reads))
            reads = tuple(dict.fromkeys((*site.reads, *shown.reads)))
            site = replace(site, guards=(*around, *shown.guards), reads=reads)
        said = _said_of(site, case, knowledge, table)
        said = replace(said, steps=(_where(found), *said.steps), refuses=found.pieces != ("",))
    gated = NOTHING if PEER_ENDED.search(cause.root.body) else gated_fixes(traceback, case, knowledge)
    outlook = outlook_of(traceback, cause.root.body, case)
    steps = (*(said.steps if said is not None else ()), *gated.steps)
    if outlook is None:
        if said is None and gated is NOTHING:
            return None
        return replace(said or SourceSays((), ()), steps=steps, gated=gated)
    if outlook.speaks or outlook.here:
        steps = (*steps, sentence(outlook))
    later = later_fixes(outlook, case)
    first, later = (later[:1], later[1:]) if outlook.concerned else ((), later)
    return replace(
        said or SourceSays((), ()),
        steps=steps, later=later, last=last_resort(outlook), first=first, gated=gated,
    )  # fmt: skip


def source_says(cause: Cause, case: Case, knowledge: Knowledge) -> SourceSays | None:
    """By a source of the release that is at hand; None when none is, or the statement is not found in it."""
    site = _site(cause, case)
    if site is None:
        return None
    table = flag_table(case.release)
    where = f"it is raised in {site.file}:{site.line}, {site.function}: {site.code}"
    said = _said_of(site, case, knowledge, table)
    return replace(said, steps=(where, *said.steps), refuses=True)


def _said_of(site: RaiseSite, case: Case, knowledge: Knowledge, table: FlagTable) -> SourceSays:
    return SourceSays(
        _sentences(site, case, table), _fixes(site, case, knowledge, table), asks=_asks(site, case, table)
    )


def _bare_assert(traceback: Traceback | None) -> bool:
    return traceback is not None and not traceback.message and traceback.type.endswith("AssertionError")


def _in_table(traceback: Traceback | None, said: str, case: Case) -> TableSite | None:
    span = releases_here(case)
    found = site_of(traceback, said, span)
    if found is not None:
        return found
    frames = own_frames(traceback)
    if not frames or not _bare_assert(traceback):
        return None
    # A bare assertion: the only one of its function, else the one whose condition the frame shows.
    frame = frames[0]
    bare = [s for s in sites_in(releases_folder(), frame.path, frame.function) if s.pieces == ("",)]
    if span is not None:
        bare = [s for s in bare if s.stands_in(span[1])]
    if len(bare) > 1:
        bare = [s for s in bare if s.guards and _shown(frame.code, s.guards[-1])]
    return bare[0] if len(bare) == 1 else None


def _shown(code: str, guard: str) -> bool:
    """Does the line of the frame hold the names of the condition?"""
    words = {w for w in guard.lstrip("!").replace("(", " ").replace(")", " ").split() if w.isidentifier()}
    words -= {"and", "or", "not", "in", "is", "None", "True", "False", "_"}
    return bool(words) and all(word in code for word in words)


def _as_site(found: TableSite, table: FlagTable) -> RaiseSite:
    texts = [(known_part(g.removeprefix("!"), table), not g.startswith("!")) for g in found.guards]
    guards = tuple(Guard(text, holds) for text, holds in texts if text != OPEN)
    looked_at = (name for guard in guards for name in names_in(guard.source))
    names = dict.fromkeys((*looked_at, *found.reads))
    return RaiseSite(
        found.file, found.function, 0, 0, "raise", found.exception, show(found.pieces), found.pieces, guards,
        tuple(names), "",
    )  # fmt: skip


def _where(found: TableSite) -> str:
    return f"SGLang raises it in {found.file}, {found.function} ({_spans(found)})"


def _spans(found: TableSite) -> str:
    newest = len(found.releases) - 1
    parts = []
    for first, last in found.numbers:
        a, b = found.releases[first], found.releases[last]
        if last == newest:
            parts.append(f"{a} and later" if first else "all releases known here")
        else:
            parts.append(str(a) if first == last else f"{a} to {b}")
    return ", ".join(parts)


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
    steps = []
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
    variables = variables_read(site)
    if variables:
        steps.append("these variables decide it: " + ", ".join(_variable(name, case) for name in variables))
    fields = config_read(site)
    if fields:
        steps.append("these fields of config.json decide it: " + ", ".join(fields))
    return tuple(steps)


def _asks(site: RaiseSite, case: Case, table: FlagTable) -> str:
    """The conditions of the check, with the values here; "" where none is known."""
    guards = [words for words in guard_words(site, table)[-MAX_GUARDS:] if not _VAGUE.search(words)]
    if not guards:
        return ""
    here = []
    for spec in flags_read(site, table):
        fact = case.facts.fact(f"arg.{spec.dest}")
        if fact is not None and fact.value is not None:
            here.append(f"{spec.name} is {fact.value}")
    known = f" (here {', '.join(here)})" if here else ""
    return f"SGLang refuses it when {', and '.join(guards)}{known}."


def _variable(name: str, case: Case) -> str:
    value = case.facts.look(f"env.{name}")
    return name if value is UNKNOWN or value is None else f"{name} (here {value})"


def _asserted(traceback: Traceback | None, case: Case, table: FlagTable) -> RaiseSite | None:
    """The assertion as its line shows it; None where the options in force meet it: then it names something else."""
    site = site_of_assert(own_frames(traceback), table)
    met = site is not None and all(
        holds_here(g.source, _in_force(case, table), table) is True for g in site.guards
    )
    return None if met else site


def _in_force(case: Case, table: FlagTable) -> dict[str, Any]:
    """The arguments by field; numbers that were typed as numbers."""
    out = {name[4:]: case.facts[name] for name in case.facts if name.startswith("arg.")}
    for name, value in out.items():
        spec = table.by_dest(name) if isinstance(value, str) else None
        if spec is not None and spec.type in ("int", "float") and (read := number(value)) is not None:
            out[name] = int(read) if spec.type == "int" else read
    return out


def _fixes(site: RaiseSite, case: Case, knowledge: Knowledge, table: FlagTable) -> tuple[Fix, ...]:
    if case.document is None or case.release is None:
        return ()
    values = _in_force(case, table)
    out: list[Fix] = []
    for candidate in candidate_edits(site, values, table):
        if candidate.gives_up_gpus and not _OF_RANKS.search(site.template):
            continue  # several GPUs are what the launch is for; the check is about something else
        fix = _fix(candidate, case, knowledge)
        if fix is not None:
            out.append(fix)
        if len(out) == MAX_FIXES:
            break
    return tuple(out)


def _fix(candidate: Candidate, case: Case, knowledge: Knowledge) -> Fix | None:
    assert case.document is not None and case.release is not None
    if impossible(candidate.edits, case.facts, case.release) is not None:
        return None  # this GPU or model cannot run that value
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
