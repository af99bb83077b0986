"""Checks of single rules that need no log: references, families, flags, regexes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from mtpdoctor.kb.adversarial import adversarial_texts
from mtpdoctor.kb.conditions import fact_names
from mtpdoctor.kb.growth import growth
from mtpdoctor.kb.lint_edits import impossible_edits
from mtpdoctor.kb.lint_unfixed import unshown
from mtpdoctor.kb.load import origin_problem
from mtpdoctor.kb.types import Pattern, Role, Rule, Safety
from mtpdoctor.kb.unfilled import unfilled
from mtpdoctor.kb.yaml_source import Problem, nearest

MAX_TITLE = 90
FAMILIES = Path(__file__).with_name("families.txt")
_URL = re.compile(r"https?://[^\s/]+\.[^\s/]+(/\S*)?$")
# Quadratic regexes (`.*a.*b`) need a third of this on such texts, cubic ones thrice as much.
_ADVERSARIAL_SECONDS = 1.0


def known_families() -> frozenset[str]:
    """Ids of the families of public reports that rules may name."""
    lines = FAMILIES.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split()[0] for line in lines if line.strip() and not line.startswith("#"))


def check(rules: Sequence[Rule], ids: set[str]) -> list[Problem]:
    """Problems of the rules themselves. ``ids`` are all ids of the knowledge."""
    families = known_families()
    found: list[Problem] = []
    for rule in rules:
        of_flags = (_flags(rule), impossible_edits(rule))
        checks = (
            *(_words(rule), _ranges(rule), unfilled(rule), unshown(rule)),
            *(_links(rule, ids, families), *of_flags, _regexes(rule)),
        )
        for message in chain.from_iterable(checks):
            found.append(origin_problem(rule, message))
    return found


def _words(rule: Rule) -> Iterator[str]:
    if len(rule.title) > MAX_TITLE:
        yield f"the title has {len(rule.title)} characters (at most {MAX_TITLE})"
    if rule.role in (Role.CAUSE, Role.ADVICE) and not rule.remedies:
        yield "a cause without remedies" if rule.role is Role.CAUSE else "advice without remedies"
    if rule.role is Role.ADVICE:
        if any(r.safety is Safety.SAFE and not r.generate for r in rule.remedies):
            yield "advice knows the kind of a failure only: its remedies are risky or manual"
        if rule.evidence == "confirmed" or rule.predicts is not None or rule.explains:
            yield "advice is no cause: neither confirmed, nor a prediction, nor explaining other rules"
    for remedy in rule.remedies:
        if any("\n" in line for line in remedy.run):
            yield f"a command of {remedy.title!r} spans lines; reports indent them, and a here-document would not end"
    if rule.match and not rule.examples.get("bad"):
        yield "examples.bad is missing: the rule must show a log on which it fires"
    if rule.match and not rule.examples.get("ok"):
        yield "examples.ok is missing: the rule must show a look-alike on which it stays silent"
    for kind, use in (("bad_host", "speaks"), ("ok_host", "stays silent")):
        if rule.scope == "host" and not rule.examples.get(kind):
            yield f"examples.{kind} is missing: the rule must show a host on which it {use}"
        if rule.scope != "host" and rule.examples.get(kind):
            yield f"examples.{kind} belongs to `scope: host`"
    for i, remedy in enumerate(rule.remedies):
        if remedy.safety is Safety.SAFE and remedy.risk:
            yield f"remedy {i} is safe and names a risk"


def _ranges(rule: Rule) -> Iterator[str]:
    """Ranges that hold in no release: the comma is "and", so that ``==0.5.1,==0.5.3`` never holds."""
    from mtpdoctor.sglang.releases import known_releases

    known = known_releases()
    span = f"no release known ({known[0]} to {known[-1]})"
    if not any(r in rule.releases for r in known):
        yield f'releases: {span} is in {str(rule.releases)!r} (a comma is "and")'
        return
    for i, remedy in enumerate(rule.remedies):
        if not any(r in remedy.releases and r in rule.releases for r in known):
            yield f"remedy {i}: {span} is in the rule's {str(rule.releases)!r} and its own {str(remedy.releases)!r}"
    for name, notes in (("elsewhere", rule.elsewhere), ("unseen", rule.unseen)):
        for note in notes:
            if not any(r in note.releases for r in known):
                yield f'{name}: {span} is in {str(note.releases)!r} (a comma is "and")'


def _links(rule: Rule, ids: set[str], families: frozenset[str]) -> Iterator[str]:
    for ref in rule.refs:
        if not _URL.match(ref):
            yield f"refs: {ref!r} is no URL"
    for family in rule.families:
        if family not in families:
            yield f"families: unknown family {family!r}{nearest(family, families)}"
    for other in rule.explains:
        if other == rule.id:
            yield "explains itself"
        elif other not in ids:
            yield f"explains: there is no rule {other}"
    for example in (*rule.examples.get("bad", ()), *rule.examples.get("bad_host", ())):
        for other in example.get("also", ()):
            if other not in ids:
                yield f"examples.bad (line {example['line']}): also: there is no rule {other}"
    for example in rule.examples.get("command", ()):
        if example.get("remedy", 0) >= len(rule.remedies):
            yield f"examples.command (line {example['line']}): there is no remedy {example.get('remedy', 0)}"


def _flags(rule: Rule) -> Iterator[str]:
    from mtpdoctor.sglang.flags import flag_table, known_flag

    fields = {spec.dest for spec in flag_table(None).specs}

    for i, remedy in enumerate(rule.remedies):
        for edit in remedy.edits:
            # what is removed may be another engine's flag that no release ever had
            if edit.op in ("set", "add") and "{" not in edit.name and not known_flag(edit.name):
                yield f"remedy {i}: no release has the flag {edit.name}"
    conditions = [rule.when, rule.matters, *(r.when for r in rule.remedies), *(h.when for h in rule.here)] + (
        [rule.predicts] if rule.predicts else []
    )
    for name in dict.fromkeys(n for c in conditions for n in fact_names(c)):
        prefix, _, dest = name.partition(".")
        if prefix in ("flag", "arg") and dest not in fields and not known_flag("--" + dest.replace("_", "-")):
            yield f"no release has the argument {dest} (condition on {name})"


def _regexes(rule: Rule) -> Iterator[str]:
    for pattern in (*rule.match, *rule.requires, *rule.unless):
        yield from _regex(pattern)


def _regex(pattern: Pattern) -> Iterator[str]:
    import regex as engine

    try:
        compiled = engine.compile(pattern.regex)
    except engine.error as error:
        yield f"pattern {pattern.regex!r} does not compile: {error}"
        return
    if compiled.search("") is not None:
        yield f"pattern {pattern.regex!r} matches an empty line"
    weight = growth(pattern.regex)
    if weight is not None and weight[1] <= 1:
        return  # no text can take it longer than it is
    for text in adversarial_texts(pattern.regex, pattern.literal):
        try:
            compiled.search(text, timeout=_ADVERSARIAL_SECONDS)
        except TimeoutError:
            yield f"pattern {pattern.regex!r} is slow on {text[:60]!r}... (nested or adjacent repeats?)"
            return
