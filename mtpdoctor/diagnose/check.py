"""Preflight: would this command start, and if not, which edit makes it start.

Two sources: rules (``predicts`` over command, release, host and model config, and the release's own flag
table), and where asked SGLang itself. Three-valued: a problem that hangs on a fact nobody gave is
uncertain and names the fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mtpdoctor.case import Case, build_case
from mtpdoctor.diagnose.asking import Asker, as_log, confirmed, diagnosis_of
from mtpdoctor.diagnose.contradictions import contradictions_of
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.here import missing_here
from mtpdoctor.diagnose.host_check import host_of_launch, host_rules_of
from mtpdoctor.diagnose.memory import with_memory
from mtpdoctor.diagnose.one_cause import with_facts
from mtpdoctor.diagnose.preflight import Foreseen, foreseen
from mtpdoctor.diagnose.remedies import fixes_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.errors import UserError
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.host.types import HostFacts
from mtpdoctor.kb.here import cause_here
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.resolution import resolved
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.ask import SglangVerdict, arguments
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.parse import parse_error

# What ``argument_checks`` speaks of: SGLang's parser and checks, which read the model's config too.
ARGUMENT_STAGES = frozenset({Stage.ARGPARSE.value, Stage.SERVER_ARGS.value, Stage.CONFIG.value})
MAX_STEPS = 8  # edits one after the other until nothing fatal is left
_NOWHERE = Line(0, 0, 0, "", None, None, "", "")
_RANK = {"fatal": 0, "degrades": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that would go wrong. Not ``certain``: it hangs on the facts in ``unknown``."""

    rule: str | None
    title: str
    cause: str
    severity: str  # fatal | degrades | info
    stage: str
    certain: bool
    unknown: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    references: tuple[str, ...] = ()
    source: str = "rules"  # rules | sglang
    said: str | None = None  # SGLang's own words

    @property
    def decisive(self) -> bool:
        return self.severity == "fatal" and self.certain


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The answer of ``check``. Field names follow the published JSON (docs/check.md).

    ``problems`` that are not certain are there only where they leave the verdict unknown.
    """

    verdict: str  # accept | reject | unknown
    argument_checks: str
    sglang_version: str | None
    version_source: str | None
    source: str  # rules | sglang
    problems: tuple[Problem, ...]
    command: str
    fixed: LaunchDocument | None
    resolved: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # SGLang's own, where it was asked
    typed: Mapping[str, Any] = field(default_factory=dict)  # arguments as the command gives them


def check(
    given: Given,
    knowledge: Knowledge,
    asker: Asker | None = None,
    installed: tuple[str, str] | None = None,
) -> CheckReport:
    """Check ``given.document``.

    ``installed`` is the release found where nobody named one, and where it was found. Raises UserError
    when ``given.release`` is another release than the SGLang that is asked."""
    assert given.document is not None
    verdict = asker.ask(given.document.command) if asker is not None else None
    case = build_case(
        document=given.document,
        command_where=given.command_where,
        host=host_of_launch(given.host, given.document.command, _named(given, verdict, installed)),
        model=given.model,
        release=given.release,
    )
    case = _with_release(case, given.release, verdict, installed)
    return _answer(case, _Launch(given, knowledge, asker), verdict)


def check_case(case: Case, given: Given, knowledge: Knowledge) -> CheckReport:
    """Check the command of a case that is at hand already: one read off a log, say, with edits in it.

    What this machine lacks (model folders, a free port) counts only where ``given.host`` is this machine."""
    host = given.host if given.host is not None else HostFacts(platform=None, gpus=None)
    return _answer(case, _Launch(replace(given, host=host), knowledge, None), None)


def _answer(case: Case, launch: _Launch, verdict: SglangVerdict | None) -> CheckReport:
    assert case.document is not None
    knowledge, asker = launch.knowledge, launch.asker
    problems = launch.problems(case)
    notes = list(contradictions_of(case))
    argument_checks = _argument_checks(problems, case)
    source = "rules"
    if verdict is not None and verdict.verdict != "unknown":
        source, argument_checks = "sglang", verdict.verdict
        problems, more = _corrected(problems, verdict, launch.spoken(verdict, case))
        notes.extend(more)
    elif verdict is not None:
        notes.append(f"SGLang could not be asked: {verdict.reason}")
    fixed = launch.fixed(case, problems)
    if asker is not None and verdict is not None and verdict.verdict != "unknown":
        problems = tuple(replace(p, fixes=confirmed(p.fixes, asker)) if p.decisive else p for p in problems)
    release = case.facts.fact("release")
    answer = _verdict(problems, argument_checks)
    return CheckReport(
        verdict=answer,
        argument_checks=argument_checks,
        sglang_version=str(case.release) if case.release else None,
        version_source=(release.where or release.source.value) if release else None,
        source=source,
        problems=tuple(p for p in problems if p.certain or (answer == "unknown" and p.severity == "fatal")),
        command=case.document.text.strip(),
        fixed=fixed,
        resolved=_resolved(case, knowledge, verdict),
        notes=tuple(dict.fromkeys(notes)),
        warnings=verdict.warnings if verdict else (),
        typed={n[4:]: case.facts[n] for n in case.facts if n.startswith("flag.")},
    )


def _named(given: Given, verdict: SglangVerdict | None, installed: tuple[str, str] | None) -> str | None:
    asked = verdict.version if verdict is not None else None
    return given.release or asked or (installed[0] if installed else None)


def _with_release(
    case: Case, named: str | None, verdict: SglangVerdict | None, installed: tuple[str, str] | None
) -> Case:
    asked = release_or_none(verdict.version) if verdict is not None and verdict.version else None
    if asked is not None and named is not None and release_or_none(named) != asked:
        raise UserError(
            f"--sglang says {named}, but the SGLang that was asked is {asked}",
            hint="leave one of --sglang and --ask-sglang out",
        )
    if named is not None:
        return case
    if asked is not None:
        return case.with_release(asked, "the SGLang that was asked", str(asked), certain=True)
    found = release_or_none(installed[0]) if installed else None
    if installed is None or found is None:
        return case
    return case.with_release(found, installed[1], str(found), certain=True)


def _argument_checks(problems: Sequence[Problem], case: Case) -> str:
    early = [p for p in problems if p.severity == "fatal" and p.stage in ARGUMENT_STAGES]
    if any(p.certain for p in early):
        return "reject"
    return "unknown" if early or case.release is None else "accept"


def _verdict(problems: Sequence[Problem], argument_checks: str) -> str:
    fatal = [p for p in problems if p.severity == "fatal"]
    if any(p.certain for p in fatal) or argument_checks == "reject":
        return "reject"
    return "unknown" if fatal or argument_checks == "unknown" else "accept"


def _corrected(
    problems: tuple[Problem, ...], verdict: SglangVerdict, said: Problem | None
) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """Predictions about the argument checks give way to SGLang's own word."""
    if verdict.verdict == "accept":
        wrong = [p for p in problems if p.severity == "fatal" and p.stage in ARGUMENT_STAGES]
        notes = [
            f"{p.rule} was foreseen ({p.title}), but SGLang {verdict.version} accepts the command"
            for p in wrong
            if p.certain
        ]
        return tuple(p for p in problems if p not in wrong), tuple(notes)
    assert said is not None
    rest = tuple(p for p in problems if p.rule is None or p.rule != said.rule)
    return (said, *rest), ()


def _resolved(case: Case, knowledge: Knowledge, verdict: SglangVerdict | None) -> dict[str, Any]:
    if verdict is not None and verdict.verdict == "accept":
        return dict(verdict.resolved)
    if case.release is None:
        return {n[4:]: case.facts[n] for n in case.facts if n.startswith("arg.")}
    facts = resolved(case.facts, knowledge.resolution).facts
    known = {spec.dest for spec in flag_table(case.release).specs}
    names = [n for n in facts if n.startswith("arg.") and n[4:] in known]
    return {n[4:]: v for n in sorted(names) if (v := facts.look(n)) is not UNKNOWN and n[4:] not in _SECRET}


_SECRET = frozenset({"api_key", "admin_api_key", "ssl_keyfile_password"})


class _Launch:
    """The problems of one launch under different commands."""

    def __init__(self, given: Given, knowledge: Knowledge, asker: Asker | None) -> None:
        self.given, self.knowledge, self.asker = given, knowledge, asker

    def problems(self, case: Case) -> tuple[Problem, ...]:
        """What the release's parser and the rules foresee, the decisive ones first, in launch order."""
        out = [p for p in (self._unparsed(case),) if p is not None]
        out += self._missing(case)
        seen = {p.rule for p in out}
        out += [
            self._foreseen(f, case)
            for f in foreseen(self.knowledge, case.facts, lambda facts: with_memory(case, facts))
            if f.rule.id not in seen
        ]
        out += [
            self._foreseen(Foreseen(rule, fill(rule.title, case.facts), rule.severity, True), case)
            for rule in host_rules_of(case, self.given.host, self.knowledge)
            if rule.id not in seen
        ]
        return tuple(sorted(out, key=_order))

    def _unparsed(self, case: Case) -> Problem | None:
        if case.release is None or case.document is None:
            return None
        text = parse_error(arguments(case.document.command), flag_table(case.release))
        if text is None:
            return None
        return self._from_text(text, Stage.ARGPARSE.value, text.partition("error: ")[2], case, "rules")

    def _missing(self, case: Case) -> list[Problem]:
        """What this machine lacks, where the launch is to be here."""
        host = self.given.host
        if case.document is None or (host is not None and not host.local):
            return []
        found = missing_here(case.document.command)
        return [self._from_text(m.log, m.stage.value, m.said, case, "rules") for m in found]

    def _foreseen(self, seen: Foreseen, case: Case) -> Problem:
        rule = seen.rule
        match = Match(rule, _NOWHERE, {}, True)
        fixes = fixes_of(match, case, self.knowledge) if seen.certain else ()
        return Problem(
            rule=rule.id,
            title=seen.title,
            cause=with_facts(cause_here(rule, seen.facts or case.facts), match, case),
            severity=seen.severity,
            stage=rule.stage.value,
            certain=seen.certain,
            unknown=seen.unknown,
            fixes=fixes,
            references=rule.refs,
        )

    def spoken(self, verdict: SglangVerdict, case: Case) -> Problem | None:
        """The problem that SGLang itself named."""
        if verdict.verdict != "reject":
            return None
        problem = self._from_text(
            as_log(verdict), verdict.stage or Stage.SERVER_ARGS.value, verdict.error, case, "sglang"
        )
        if problem.rule is None and verdict.explanation:
            problem = replace(problem, cause="; ".join(verdict.explanation))
        return problem

    def _from_text(self, text: str, stage: str, said: str, case: Case, source: str) -> Problem:
        found = diagnosis_of(text, case, self.given, self.knowledge)
        known = found is not None and found.rule is not None
        head = " ".join(said.split())
        return Problem(
            rule=found.rule if found else None,
            title=found.title if found and known else f"SGLang refuses it: {head[:160]}",
            cause=found.cause if found and known else head,
            severity="fatal",
            stage=stage,
            certain=True,
            fixes=found.fixes if found else (),
            references=found.references if found else (),
            source=source,
            said=said,
        )

    # -- until nothing fatal is left ------------------------------------------------------------------
    def fixed(self, case: Case, problems: Sequence[Problem]) -> LaunchDocument | None:
        """The command after safe fixes only, re-checked after each; None when nothing is wrong, or when
        something fatal has no safe fix."""
        if not any(p.decisive for p in problems):
            return None
        assert case.document is not None
        seen = {case.document.text}
        current = case
        for _ in range(MAX_STEPS):
            step = _safe_step(problems, seen)
            if step is None:
                return None
            seen.add(step.text)
            current = current.with_document(step)
            problems = self.problems(current)
            if not any(p.decisive for p in problems):
                said = self._refused(current)
                if said is None:
                    return step
                problems = (said, *problems)
        return None

    def _refused(self, case: Case) -> Problem | None:
        """SGLang's objection to a command that the rules find right, where it is asked."""
        if self.asker is None:
            return None
        assert case.document is not None
        return self.spoken(self.asker.ask(case.document.command), case)


def _safe_step(problems: Sequence[Problem], seen: set[str]) -> LaunchDocument | None:
    """The best safe fix of the first problem that has one: proven before unproven."""
    for problem in problems:
        if not problem.decisive:
            continue
        safe = [f for f in problem.fixes if f.safety == "safe" and f.document is not None]
        for fix in sorted(safe, key=lambda f: f.verified not in ("rules", "sglang")):
            if fix.document is not None and fix.document.text not in seen:
                return fix.document
    return None


def _order(problem: Problem) -> tuple[bool, int, int]:
    return (not problem.certain, _RANK.get(problem.severity, 3), Stage(problem.stage).order)
