"""The examples of rules, seen as cases: their facts, and their before -> after commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpdoctor.case import Case, build_case
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.host_check import example_case, host_findings, host_rules_of
from mtpdoctor.diagnose.remedies import fixes_of
from mtpdoctor.diagnose.spelling import spell
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.facts import Facts
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.host.types import HostFacts
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.host_examples import Finder, Said
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.templates import fill, resolve_remedy
from mtpdoctor.kb.types import Match, Rule
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit
from mtpdoctor.log.types import Line, LogReading

NOWHERE = Line(0, 0, 0, "", None, None, "", "")


def apply_remedy(rule: Rule, index: int, command: str, release: str | None, gpu: str | None) -> str | None:
    """The command after the remedy's edits, spelled for the release; None when it does not apply.

    Raises IndexError when the rule has no such remedy, UserError when the command cannot be read.
    """
    remedy = rule.remedies[index]
    case = build_case(
        document=read_launch(command),
        command_where="example",
        host=parse_gpu_spec(gpu) if gpu else None,
        release=release,
    )
    if evaluate(remedy.when, case.facts) is False or remedy.releases.holds(case.release) is False:
        return None
    resolved = resolve_remedy(remedy, case.facts)
    if resolved.missing or not resolved.edits:
        return None
    edits: list[Edit] = []
    for edit in resolved.edits:
        spelled, _ = spell(edit, case)
        if spelled is None:
            return None
        edits.extend(spelled)
    assert case.document is not None
    return case.document.apply(edits).text


def facts_of(example: dict[str, Any], reading: LogReading) -> Facts:
    """The facts of a bad or ok example: its own log, command, release and GPU."""
    command, gpu = example.get("command"), example.get("gpu")
    given = Given(
        document=read_launch(command) if command else None,
        command_where="example",
        host=parse_gpu_spec(gpu) if gpu else None,
        release=example.get("release"),
    )
    if reading.attempt is None:
        return build_case(document=given.document, host=given.host, release=given.release).facts
    return case_of(reading, reading.attempt, given)[0].facts


def host_finder(knowledge: Knowledge) -> Finder:
    """What the rules on hosts say of an example's host; with a command, what stands in its check."""

    def find(host: HostFacts, release: str | None, command: str | None) -> list[Said]:
        if command is None:
            found = host_findings(host, knowledge, release)
            return [Said(f.rule, f"{f.title}. {f.cause}", _first_fix(f.remedies)) for f in found]
        case = example_case(host, release, command)
        return [
            Said(r.id, fill(f"{r.title}. {r.cause}", case.facts), _first_fix(_fixes(r, case)))
            for r in host_rules_of(case, host, knowledge)
        ]

    def _fixes(rule: Rule, case: Case) -> tuple[Fix, ...]:
        return fixes_of(Match(rule, NOWHERE, {}, True), case, knowledge)

    return find


def _first_fix(fixes: Sequence[Fix]) -> str:
    if not fixes:
        return ""
    first = fixes[0]
    return " ; ".join([*map(str, first.edits), *first.run, first.title])
