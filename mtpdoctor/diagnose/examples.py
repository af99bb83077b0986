"""The examples of rules, seen as cases: their facts, and their before -> after commands."""

from __future__ import annotations

from typing import Any

from mtpdoctor.case import build_case
from mtpdoctor.diagnose.engine import Given, case_of
from mtpdoctor.diagnose.remedies import spell
from mtpdoctor.facts import Facts
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.templates import resolve_remedy
from mtpdoctor.kb.types import Rule
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit
from mtpdoctor.log.types import LogReading


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
