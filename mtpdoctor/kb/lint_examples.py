"""Checks of rules against logs: their own examples, each other's, and healthy ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import UserError
from mtpdoctor.facts import Fact, Facts, Source, make_facts
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.here import cause_here
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import origin_problem
from mtpdoctor.kb.match import known_release, match_rules
from mtpdoctor.kb.templates import resolve_remedy
from mtpdoctor.kb.types import Match, Role, Rule
from mtpdoctor.kb.yaml_source import Problem
from mtpdoctor.release import release_or_none

if TYPE_CHECKING:
    from mtpdoctor.kb.lint import Hooks
    from mtpdoctor.log.types import Attempt, LogReading

FREQUENT = 20  # a literal on more lines of one healthy log than this is a bad one to look for
_GPU = re.compile(r"(?:(?P<count>\d+)x)?(?:sm(?P<sm>\d+)|(?P<platform>[a-z]+))(?:@(?P<gib>[\d.]+))?$")


def check(
    rules: Sequence[Rule], knowledge: Knowledge, hooks: Hooks, healthy: Sequence[Path], ci: bool
) -> list[Problem]:
    """Problems of ``rules`` against the examples of each and the healthy logs."""
    found: list[Problem] = []
    for rule in rules:
        for example in rule.examples.get("bad", ()):
            found += [_at(rule, example, m) for m in _bad(rule, example, knowledge, hooks)]
        for example in rule.examples.get("ok", ()):
            found += [_at(rule, example, m) for m in _ok(rule, example, knowledge, hooks)]
        found += _commands(rule, hooks)
    if hooks.apply_remedy is None:
        found += _unchecked(rules, ci)
    focus = {rule.id for rule in rules}
    for path in healthy:
        found += _healthy(path, focus, knowledge)
    if rules and not healthy and ci:
        found.append(
            Problem(rules[0].origin.rpartition(":")[0], 1, "no healthy logs to hold the rules against")
        )
    return found


def _at(rule: Rule, example: dict[str, Any], message: str, level: str = "error") -> Problem:
    return origin_problem(rule, message, example["line"], level)


def read_text(text: str, knowledge: Knowledge) -> LogReading:
    """The reading of a log's text, searched for every literal of the knowledge."""
    from mtpdoctor.log.reading import reading_from_text

    return reading_from_text(text, knowledge.literals)


def matches_in(
    text: str, knowledge: Knowledge, example: dict[str, Any], hooks: Hooks | None = None
) -> tuple[list[Match], tuple[str, ...], Facts]:
    """The matches in the last attempt of a log's text, the rules that ran out of time, and the facts."""
    reading = read_text(text, knowledge)
    facts = example_facts(example)
    if hooks is not None and hooks.facts_of is not None:
        facts = hooks.facts_of(example, reading)
    if reading.attempt is None:
        return [], (), facts
    matches = match_rules(knowledge, reading, reading.attempt, facts)
    return matches, matches.skipped, facts


def example_facts(example: dict[str, Any]) -> Facts:
    """The facts that an example states itself: ``release`` and ``gpu``."""
    facts: dict[str, Fact] = {}
    release = release_or_none(example.get("release"))
    if release is not None:
        facts["release"] = Fact("release", release, Source.USER, "example")
    gpu = _GPU.match(example.get("gpu") or "")
    if gpu:
        values: dict[str, Any] = {
            "host.platform": "cuda" if gpu["sm"] else gpu["platform"],
            "host.gpu.count": int(gpu["count"] or 1),
        }
        if gpu["sm"]:
            values["host.gpu.sm"] = int(gpu["sm"])
        if gpu["gib"]:
            values["host.gpu.memory_gib"] = float(gpu["gib"])
        facts.update({name: Fact(name, v, Source.USER, "example") for name, v in values.items()})
    return Facts(facts) if facts else make_facts({}, Source.USER)


def _bad(rule: Rule, example: dict[str, Any], knowledge: Knowledge, hooks: Hooks) -> Iterator[str]:
    try:
        matches, skipped, facts = matches_in(example["log"], knowledge, example, hooks)
    except UserError as error:
        yield f"bad example: {error}"
        return
    for rule_id in skipped:
        yield f"bad example: rule {rule_id} ran out of time"
    own = [m for m in matches if m.rule.id == rule.id]
    if not own:
        yield f"bad example: the rule does not fire{_why_silent(rule, example, facts)}"
        return
    root = example.get("root")
    if root and root not in own[0].line.text:
        yield f"bad example: the root line is {own[0].line.text[:100]!r}, which does not hold {root!r}"
    declared = {rule.id, *example.get("also", ()), *rule.explains}
    for other in dict.fromkeys(m.rule.id for m in matches):
        if other not in declared and _must_be_silent(knowledge.by_id[other]):
            title = knowledge.by_id[other].title
            yield f"bad example: {other} ({title}) fires too; narrow it or declare `also`"
    cause = cause_here(rule, facts, own[0].captures)
    if example.get("said", "") not in cause:
        yield f"bad example: its cause is {cause!r}, without {example['said']!r}"
    if example.get("fix"):
        yield from _first_fix(rule, own[0], example["fix"], facts)


def _must_be_silent(rule: Rule) -> bool:
    """Symptoms, consequences and findings may stand in any failing log; specific causes may not."""
    return rule.role is Role.CAUSE and not rule.generic


def _why_silent(rule: Rule, example: dict[str, Any], facts: Facts) -> str:
    held = [p.literal for p in rule.match if p.literal in example["log"]]
    if not held:
        wanted = ", ".join(repr(p.literal) for p in rule.match)
        return f": none of its literals is there ({wanted})"
    if evaluate(rule.when, facts, None) is False:
        return ": its `when` is false"
    return f": the literal {held[0]!r} is there; see the regex, `requires` and `unless`"


def _first_fix(rule: Rule, match: Match, wanted: str, facts: Facts) -> Iterator[str]:
    for remedy in rule.remedies:
        if remedy.generate:
            return  # computed above the knowledge
        if remedy.releases.holds(known_release(facts)) is False:
            continue
        if evaluate(remedy.when, facts, match.captures) is False:
            continue
        resolved = resolve_remedy(remedy, facts, match.captures)
        text = " ; ".join([*map(str, resolved.edits), *resolved.run, resolved.title])
        if wanted not in text:
            yield f"bad example: the first fix is {text!r}, without {wanted!r}"
        return
    yield f"bad example: no remedy applies, {wanted!r} was expected"


def _ok(rule: Rule, example: dict[str, Any], knowledge: Knowledge, hooks: Hooks) -> Iterator[str]:
    try:
        matches, _, _ = matches_in(example["log"], knowledge, example, hooks)
    except UserError as error:
        yield f"ok example: {error}"
        return
    for match in matches:
        if match.rule.id == rule.id:
            yield f"ok example: the rule fires on {match.line.text[:100]!r}"
            return


def _unchecked(rules: Sequence[Rule], ci: bool) -> list[Problem]:
    """Command examples need the layers that parse and repair commands; say when they are not there."""
    left = [(rule, e) for rule in rules for e in rule.examples.get("command", ())]
    if not left:
        return []
    message = f"{len(left)} command examples not checked: nothing to apply remedies with"
    return [_at(*left[0], message, "error" if ci else "note")]


def _commands(rule: Rule, hooks: Hooks) -> list[Problem]:
    examples = rule.examples.get("command", ())
    if hooks.apply_remedy is None:
        return []
    found = []
    for example in examples:
        try:
            after = hooks.apply_remedy(
                rule, example.get("remedy", 0), example["before"], example.get("release"), example.get("gpu")
            )
        except (UserError, IndexError) as error:
            found.append(_at(rule, example, f"command example: {error}"))
            continue
        if after is None:
            found.append(_at(rule, example, "command example: the remedy does not apply"))
        elif after.strip() != example["after"].strip():
            found.append(_at(rule, example, f"command example: comes out as {after.strip()!r}"))
    return found


def _survived(attempt: Attempt) -> set[tuple[int, int, int]]:
    """Lines of errors that the reading itself knows to have taken nothing down."""
    lines: set[tuple[int, int, int]] = set()
    for event in attempt.events:
        if event.fatal:
            continue
        lines.add(event.line.key)
        for node in event.traceback.chain if event.traceback is not None else ():
            lines.update(line.key for line in node.lines)
    return lines


def _healthy(path: Path, focus: set[str], knowledge: Knowledge) -> list[Problem]:
    text = path.read_text(encoding="utf-8", errors="replace")
    reading = read_text(text, knowledge)
    found = []
    for head in knowledge.heads:
        if head.id not in focus:
            continue
        for literal in head.literals:
            count = reading.hits.count(literal)
            if count > FREQUENT:
                rule = knowledge.by_id[head.id]
                found.append(
                    origin_problem(rule, f"literal {literal!r} is on {count} lines of healthy {path.name}")
                )
    if reading.attempt is None:
        return found
    survived = _survived(reading.attempt)
    for match in match_rules(knowledge, reading, reading.attempt, example_facts({})):
        rule = match.rule
        if rule.id in focus and _must_be_silent(rule) and match.line.key not in survived:
            where = f"{path.name}:{match.line.number}"
            found.append(origin_problem(rule, f"fires on a healthy log, {where}: {match.line.text[:100]!r}"))
    return found
