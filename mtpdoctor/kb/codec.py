"""Rules to and from plain JSON data, for the compiled cache."""

from __future__ import annotations

from typing import Any

from mtpdoctor.kb.types import (
    ALWAYS,
    Condition,
    EditTemplate,
    Here,
    Pattern,
    ReleaseNote,
    Remedy,
    Role,
    Rule,
    Safety,
    Span,
    Unfixed,
    Wanted,
)
from mtpdoctor.log.types import Stage
from mtpdoctor.release import ReleaseRange


def condition_out(c: Condition) -> list[Any]:
    if c.children:
        return [c.op, [condition_out(child) for child in c.children]]
    return (
        [c.op, c.fact, list(c.operand) if isinstance(c.operand, tuple) else c.operand]
        if c.fact
        else [c.op, []]
    )


def condition_in(data: list[Any]) -> Condition:
    if len(data) == 2:
        children = tuple(condition_in(child) for child in data[1])
        return Condition(data[0], children=children) if children else ALWAYS
    op, fact, operand = data
    return Condition(op, fact, tuple(operand) if isinstance(operand, list) else operand)


def _patterns_out(patterns: tuple[Pattern, ...]) -> list[Any]:
    return [[p.regex, p.literal, p.span.value] for p in patterns]


def _patterns_in(data: list[Any]) -> tuple[Pattern, ...]:
    return tuple(Pattern(regex, literal, Span(span)) for regex, literal, span in data)


def _remedy_out(r: Remedy) -> dict[str, Any]:
    return {
        "title": r.title,
        "safety": r.safety.value,
        "why": r.why,
        "edits": [[e.op, e.name, e.value] for e in r.edits],
        "run": list(r.run),
        "risk": r.risk,
        "when": condition_out(r.when),
        "releases": r.releases.text,
        "generate": r.generate,
        "checkpoints": _wanted_out(r.checkpoints),
    }


def _remedy_in(data: dict[str, Any]) -> Remedy:
    return Remedy(
        title=data["title"],
        safety=Safety(data["safety"]),
        why=data["why"],
        edits=tuple(EditTemplate(*e) for e in data["edits"]),
        run=tuple(data["run"]),
        risk=data["risk"],
        when=condition_in(data["when"]),
        releases=ReleaseRange.parse(data["releases"]),
        generate=data["generate"],
        checkpoints=_wanted_in(data["checkpoints"]),
    )


def _wanted_out(w: Wanted | None) -> list[Any] | None:
    return (
        None
        if w is None
        else [
            *(list(w.formats), w.original, list(w.makers), w.smaller),
            [[e.op, e.name, e.value] for e in w.edits],
        ]
    )


def _wanted_in(data: list[Any] | None) -> Wanted | None:
    if data is None:
        return None
    formats, original, makers, smaller, edits = data
    return Wanted(tuple(formats), original, tuple(makers), smaller, tuple(EditTemplate(*e) for e in edits))


def _notes_out(notes: tuple[ReleaseNote, ...]) -> list[Any]:
    return [[note.releases.text, note.why] for note in notes]


def _notes_in(data: list[Any]) -> tuple[ReleaseNote, ...]:
    return tuple(ReleaseNote(ReleaseRange.parse(text), why) for text, why in data)


def rule_out(r: Rule) -> dict[str, Any]:
    """A rule as JSON data; :func:`rule_in` gives an equal rule back."""
    return {
        "id": r.id,
        "title": r.title,
        "role": r.role.value,
        "stage": r.stage.value,
        "source": r.source,
        "evidence": r.evidence,
        "confidence": r.confidence,
        "releases": r.releases.text,
        "match": _patterns_out(r.match),
        "requires": _patterns_out(r.requires),
        "unless": _patterns_out(r.unless),
        "when": condition_out(r.when),
        "predicts": None if r.predicts is None else condition_out(r.predicts),
        "severity": r.severity,
        "generic": r.generic,
        "explains": list(r.explains),
        "root": r.root,
        "cause": r.cause,
        "misleading": r.misleading,
        "remedies": [_remedy_out(remedy) for remedy in r.remedies],
        "refs": list(r.refs),
        "families": list(r.families),
        "examples": dict(r.examples),
        "origin": r.origin,
        "scope": r.scope,
        "matters": condition_out(r.matters),
        "elsewhere": _notes_out(r.elsewhere),
        "unseen": _notes_out(r.unseen),
        "here": [[condition_out(h.when), h.cause] for h in r.here],
        "unfixed": [[u.through, list(u.files), u.text, u.since, u.lacks] for u in r.unfixed],
    }


def rule_in(data: dict[str, Any]) -> Rule:
    """The rule of :func:`rule_out`'s data."""
    return Rule(
        id=data["id"],
        title=data["title"],
        role=Role(data["role"]),
        stage=Stage(data["stage"]),
        source=data["source"],
        evidence=data["evidence"],
        confidence=data["confidence"],
        releases=ReleaseRange.parse(data["releases"]),
        match=_patterns_in(data["match"]),
        requires=_patterns_in(data["requires"]),
        unless=_patterns_in(data["unless"]),
        when=condition_in(data["when"]),
        predicts=None if data["predicts"] is None else condition_in(data["predicts"]),
        severity=data["severity"],
        generic=data["generic"],
        explains=tuple(data["explains"]),
        root=data["root"],
        cause=data["cause"],
        misleading=data["misleading"],
        remedies=tuple(_remedy_in(remedy) for remedy in data["remedies"]),
        refs=tuple(data["refs"]),
        families=tuple(data["families"]),
        examples=data["examples"],
        origin=data["origin"],
        scope=data["scope"],
        matters=condition_in(data["matters"]),
        elsewhere=_notes_in(data["elsewhere"]),
        unseen=_notes_in(data["unseen"]),
        unfixed=tuple(Unfixed(t, tuple(files), *rest) for t, files, *rest in data["unfixed"]),
        here=tuple(Here(condition_in(when), cause) for when, cause in data["here"]),
    )
