"""Trying a regex out before it is a rule: what it finds, what it costs, and who else speaks on those lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.types import ALWAYS, Match, Pattern, Role, Rule, Span
from mtpdoctor.log.types import LogReading, Stage
from mtpdoctor.release import ReleaseRange

COST_LIMIT_S = 1.0  # as lint demands


@dataclass(frozen=True, slots=True)
class Found:
    """A line that the pattern hits in a place other than the logs tried. ``text`` is the line."""

    where: str  # "051_x.log:12", "MTP0123 bad"
    text: str


def pattern_from(regex: str, literal: str | None = None, *, traceback: bool = False) -> Pattern:
    """The pattern of a regex as it would stand in a rule. Raises UserError where no rule can be made of it."""
    import regex as engine

    from mtpdoctor.kb.literals import MIN_LITERAL, required_literal

    try:
        compiled = engine.compile(regex)
    except engine.error as error:
        raise UserError(f"not a regex: {error}") from None
    if compiled.search("") is not None:
        raise UserError("the regex matches an empty line", hint="name some text that every match contains")
    if literal is None:
        try:
            literal = required_literal(regex)
        except ValueError as error:
            raise UserError(f"no rule can be made of it: {error}") from None
    elif len(literal.strip()) < MIN_LITERAL:
        raise UserError(f"a literal has at least {MIN_LITERAL} characters")
    return Pattern(regex, literal, Span.TRACEBACK if traceback else Span.LINE)


def trial_rule(pattern: Pattern) -> Rule:
    """A rule that fires wherever the pattern matches, and says nothing else."""
    return Rule(
        id="MTP0000",
        title="trial",
        role=Role.CAUSE,
        stage=Stage.ENV,
        source="trial",
        evidence="symptom",
        confidence=0.6,
        releases=ReleaseRange.parse("*"),
        match=(pattern,),
        requires=(),
        unless=(),
        when=ALWAYS,
        predicts=None,
        severity="fatal",
        generic=False,
        explains=(),
        root="match",
        cause="",
        misleading=None,
        remedies=(),
        refs=(),
        families=(),
        examples={},
        origin="trial:1",
    )


def cost_s(pattern: Pattern) -> float:
    """Seconds of processor time that the regex takes on the worst of the texts built to make it slow (``adversarial``);
    ``COST_LIMIT_S`` where it took longer and was stopped."""
    import regex as engine

    from mtpdoctor.kb.adversarial import adversarial_texts

    compiled = engine.compile(pattern.regex)
    worst = 0.0
    for text in adversarial_texts(pattern.regex, pattern.literal):
        begin = time.process_time()
        try:
            compiled.search(text, timeout=COST_LIMIT_S)
        except TimeoutError:
            return COST_LIMIT_S
        worst = max(worst, time.process_time() - begin)
    return worst


def matches_of(pattern: Pattern, reading: LogReading) -> Sequence[Match]:
    """Where the pattern matches in the last attempt. Raises UserError when it runs out of time."""
    from mtpdoctor.kb.match import match_rules

    if reading.attempt is None:
        return ()
    knowledge = Knowledge.of([trial_rule(pattern)])
    matches = match_rules(knowledge, reading, reading.attempt, make_facts({}, Source.USER))
    if matches.skipped:
        raise UserError("the regex takes too long on this log", hint="avoid nested and adjacent repeats")
    return matches


def rules_on(
    matches: Sequence[Match], reading: LogReading, knowledge: Knowledge, facts: Facts | None = None
) -> dict[tuple[int, int, int], list[Rule]]:
    """The rules of ``knowledge`` that fire on the same lines (or the same tracebacks), by the line's key."""
    from mtpdoctor.kb.match import match_rules

    if reading.attempt is None or not matches:
        return {}
    wanted = {m.line.key for m in matches}
    out: dict[tuple[int, int, int], list[Rule]] = {}
    known = facts or make_facts({}, Source.USER)
    for other in match_rules(knowledge, reading, reading.attempt, known, advice=False):
        if other.line.key in wanted and other.rule not in out.get(other.line.key, ()):
            out.setdefault(other.line.key, []).append(other.rule)
    return out


def healthy_logs(folder: Path | None = None) -> list[Path]:
    """The logs of servers that are fine, beside the knowledge; none where only the package is installed."""
    from mtpdoctor.kb.lint import HEALTHY_FOLDERS
    from mtpdoctor.paths import knowledge_folder

    base = (folder or knowledge_folder()).resolve().parent
    return sorted(path for pattern in HEALTHY_FOLDERS for path in base.glob(pattern))


def healthy_hits(pattern: Pattern, logs: Sequence[Path]) -> tuple[list[Found], dict[str, int]]:
    """Lines of healthy logs that match, and how often the literal stands in each log that holds it."""
    from mtpdoctor.log.reading import reading_from_text

    found, counts = [], {}
    for path in logs:
        text = path.read_text(encoding="utf-8", errors="replace")
        if pattern.literal not in text:
            continue
        reading = reading_from_text(text, (pattern.literal,))
        counts[path.name] = reading.hits.count(pattern.literal)
        found += [Found(f"{path.name}:{m.line.number}", m.line.text) for m in matches_of(pattern, reading)]
    return found, {name: count for name, count in counts.items() if count}


def example_hits(pattern: Pattern, rules: Sequence[Rule]) -> Iterator[Found]:
    """Examples of rules that the pattern matches."""
    from mtpdoctor.log.reading import reading_from_text

    for rule in rules:
        for kind in ("bad", "ok"):
            for example in rule.examples.get(kind, ()):
                if pattern.literal not in example["log"]:
                    continue
                reading = reading_from_text(example["log"], (pattern.literal,))
                match = next(iter(matches_of(pattern, reading)), None)
                if match is not None:
                    yield Found(f"{rule.id} {kind}", match.line.text)
