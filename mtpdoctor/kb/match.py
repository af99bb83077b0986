"""Which rules match a launch attempt.

The log has been searched for all literals already; here only lines and tracebacks that hold a
rule's literal are tried with its regex, each under a time limit, all under a budget. The log is
untrusted: a line made to stall a regex costs its share and no more, and the rule is named.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from mtpdoctor.facts import UNKNOWN, Facts, Source
from mtpdoctor.kb.by_name import evaluate_by_name
from mtpdoctor.kb.conditions import describe, evaluate
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.places import Place, is_source, line_at, owners_of, places_of, root_line
from mtpdoctor.kb.regexes import NotARegex, RuleRegex, rule_regex
from mtpdoctor.kb.types import Match, Pattern, Role, Rule, Span
from mtpdoctor.log.quoted import quotes_request
from mtpdoctor.log.typed import looks
from mtpdoctor.log.types import Attempt, Line, LogReading
from mtpdoctor.patterns import lazy
from mtpdoctor.release import Release, parse_release, release_or_none

SEARCH_SECONDS = 0.2  # one regex on one text
BUDGET_SECONDS = 5.0  # all regexes of one attempt
MAX_TIMEOUTS = 3  # of one rule
MAX_MATCHES = 50  # of one rule
MAX_TRIED = 4000  # lines tried for one pattern
WINDOW = 4096  # characters around a literal in a line that is longer than this
UNKNOWN_CONDITION = 0.8  # confidence is multiplied by this when a condition is not known
OTHER_RELEASE = 0.6  # and by this when the release in use is outside of the rule's range
NEAR_RELEASE = 0.9  # the same for a release that was only worked out: a build of main has lines of several


class Matches(list[Match]):
    """The matches; ``skipped`` names rules that could not be tried everywhere: a regex ran out of time
    on some line, the budget was spent, or a regex does not compile."""

    def __init__(self, matches: Iterable[Match] = (), skipped: tuple[str, ...] = ()) -> None:
        super().__init__(matches)
        self.skipped = skipped


class _Skip(Exception):
    """A rule cannot be tried any further."""


def match_rules(
    knowledge: Knowledge,
    reading: LogReading,
    attempt: Attempt,
    facts: Facts,
    *,
    advice: bool | None = None,
) -> Matches:
    """Every match of every rule in the attempt: by rule id, then line order.

    A rule whose ``when`` is false is silent, and so is one that says of the release in use that its text
    stands for something else there (``elsewhere``); where it is unknown the match is not ``certain``. A release that
    was only worked out (a development build between two has lines of both) silences nothing. A
    message counts as evidence even in a release where the rule does not expect it (development
    builds): such a match has less confidence and a note, and gives way to a match of the same line
    by a rule that does expect it.

    ``advice``: True for the rules of role advice only, False for all others.
    """
    return _Matcher(reading, attempt, facts).run(knowledge, advice)


class _Matcher:
    def __init__(self, reading: LogReading, attempt: Attempt, facts: Facts) -> None:
        self.reading = reading
        self.attempt = attempt
        self.facts = facts
        self.release = known_release(facts)
        named = facts.fact("release")
        self.worked_out = named is not None and named.source is Source.DERIVED
        self.deadline = time.process_time() + BUDGET_SECONDS
        self.timeouts = 0  # of the rule being tried
        self._lines: dict[str, list[Line]] = {}

    @cached_property
    def places(self) -> list[Place]:
        return places_of(self.attempt.events)

    @cached_property
    def owner(self) -> dict[tuple[int, int, int], Place]:
        return owners_of(self.places)

    def run(self, knowledge: Knowledge, advice: bool | None) -> Matches:
        found: list[tuple[Match, bool]] = []
        skipped: list[str] = []
        hits = self.reading.hits
        of_advice = Role.ADVICE.value
        for head in knowledge.heads_with(hits.among(knowledge.matched_literals)):
            of_kinds = head.role == of_advice
            if advice is not None and advice is not of_kinds:
                continue
            if not any(hits.count(literal) for literal in head.literals):
                continue
            rule = knowledge.by_id[head.id]
            self.timeouts = 0
            try:
                matches = self.rule(rule)
            except _Skip:
                skipped.append(rule.id)
                continue
            if self.timeouts:
                skipped.append(rule.id)
            expected = rule.releases.holds(self.release) is not False and not self._elsewhere(rule)
            found.extend((m, expected) for m in matches)
        expected_lines = {
            m.line.key
            for m, expected in found
            if expected and m.rule.role is not Role.ADVICE and not (self.worked_out and _of_symptom(m.rule))
        }
        return Matches(
            (m for m, expected in found if expected or m.line.key not in expected_lines), tuple(skipped)
        )

    def rule(self, rule: Rule) -> list[Match]:
        if evaluate(rule.when, self.facts, None) is False:  # whatever the match will capture
            return []
        if not self.worked_out and self._elsewhere(rule):
            return []  # there the text stands for something else
        candidates = self._candidates(rule)
        first = next(candidates, None)
        if first is None:
            return []
        evidence: list[Line] = []
        for pattern in rule.requires:
            line = self._anywhere(pattern)
            if line is None:
                return []
            evidence.append(line)
        if any(self._anywhere(pattern) is not None for pattern in rule.unless):
            return []
        matches: dict[tuple[int, int, int], Match] = {}
        for line, captures, place in (first, *candidates):
            if line.key in matches:
                continue
            match = self._judged(rule, line, captures, place, tuple(evidence))
            if match is not None:
                matches[line.key] = match
                if len(matches) >= MAX_MATCHES:
                    break
        return [matches[key] for key in sorted(matches)]

    def _elsewhere(self, rule: Rule) -> bool:
        return any(note.releases.holds(self.release) is True for note in rule.elsewhere)

    def _judged(
        self,
        rule: Rule,
        line: Line,
        captures: Mapping[str, str],
        place: Place | None,
        evidence: tuple[Line, ...],
    ) -> Match | None:
        holds = evaluate_by_name(rule.when, self.facts, captures)
        if holds is False:
            return None
        confidence, notes = rule.confidence, []
        if holds is None:
            confidence *= UNKNOWN_CONDITION
            notes.append(f"if {describe(rule.when)}")
        if rule.releases.holds(self.release) is False:
            confidence *= NEAR_RELEASE if self.worked_out else OTHER_RELEASE
            notes.append(f"known of SGLang {rule.releases}, this is {self.release}")
        elif self._elsewhere(rule):
            confidence *= OTHER_RELEASE
            notes.append(f"if this is not SGLang {self.release}, which the log only lets one work out")
        return Match(
            rule=rule,
            line=line,
            captures=captures,
            certain=holds is True,
            traceback=place.traceback if place else None,
            evidence=tuple(e for e in evidence if e.key != line.key),
            confidence=round(confidence, 4),
            notes=tuple(notes),
        )

    # --- where a rule's patterns match ------------------------------------------------------------

    def _candidates(self, rule: Rule) -> Iterator[tuple[Line, Mapping[str, str], Place | None]]:
        """Root line, captures and traceback of every place where a pattern matches."""
        for pattern in rule.match:
            for line, match, place in self._found(pattern):
                if place is None and looks(line.body):  # what somebody looked for, not what was found
                    continue
                captures = {
                    name: _without_full_stop(text)
                    for name, text in match.groupdict().items()
                    if text is not None
                }
                yield root_line(rule.root, line, place), captures, place

    def _anywhere(self, pattern: Pattern) -> Line | None:
        for line, _, _ in self._found(pattern):
            return line
        return None

    def _found(self, pattern: Pattern) -> Iterator[tuple[Line, Any, Place | None]]:
        # Compiling costs a good part of a short run: only where there is something to try it on.
        if not self.reading.hits.count(pattern.literal):
            return
        if pattern.span is Span.TRACEBACK:
            for place in self.places:
                if pattern.literal in place.text:
                    match = self._search(rule_regex(pattern.regex), place.text)
                    if match is not None:
                        yield line_at(place, match.start()), match, place
            return
        for line in self._lines_with(pattern.literal):
            owner = self.owner.get(line.key)
            # Source code says what could be raised; it counts only where the exception says nothing.
            if owner is not None and owner.traceback.message and is_source(line, owner.traceback):
                continue
            if quotes_request(line.body):
                continue
            match = self._search_line(rule_regex(pattern.regex), line.text, pattern.literal)
            if match is not None and not denied(line.text, match.start(), match.end()):
                yield line, match, owner

    def _lines_with(self, literal: str) -> list[Line]:
        lines = self._lines.get(literal)
        if lines is None:
            first, last = self.attempt.first, self.attempt.last
            inside = [
                line for line in self.reading.hits.lines(literal) if first <= (line.file, line.number) <= last
            ]
            if len(inside) > MAX_TRIED:
                inside = inside[: MAX_TRIED // 2] + inside[-MAX_TRIED // 2 :]
            lines = self._lines[literal] = inside
        return lines

    def _search_line(self, regex: RuleRegex, text: str, literal: str) -> Any:
        if len(text) <= 2 * WINDOW:
            return self._search(regex, text)
        at, tried_to = text.find(literal), 0
        for _ in range(16):
            if at < 0:
                return None
            if at >= tried_to:  # windows overlap by half, so that none is tried twice
                tried_to = at + WINDOW // 2
                match = self._search(regex, text, max(0, at - WINDOW), at + WINDOW)
                if match is not None:
                    return match
            at = text.find(literal, tried_to)
        return None

    def _search(self, regex: RuleRegex, text: str, start: int = 0, end: int | None = None) -> Any:
        if time.process_time() > self.deadline:
            raise _Skip
        try:
            return regex.search(text, start, end, timeout=SEARCH_SECONDS)
        except TimeoutError:
            self.timeouts += 1
            if self.timeouts >= MAX_TIMEOUTS:
                raise _Skip from None
            return None
        except NotARegex:
            raise _Skip from None


def _of_symptom(rule: Rule) -> bool:
    return rule.generic or rule.evidence == "symptom"


_WORD = lazy(r"[\w.-]+")
_DENIED_AFTER = lazy(r"(?i)[\"'\\]*\s*[:=]\s*[\"'\\]*(?:false|no|none|null|nil|0|(?=[\"'\\,}]|$))(?![\w.])")
_DENIED_BEFORE = lazy(
    r"(?i)(?:\bnot?|\bnever|\bwithout|n't|\b(?:is|was)_not)(?:[ _-]+(?:an?|any|been|be))?[ _-]+$"
)


def denied(text: str, start: int, end: int) -> bool:
    """Is the word at ``start``..``end`` one that the text says is not so: ``"OOMKilled": false``, ``not OOMKilled``?

    Only of a bare word, as a status field has it: a message that a rule quotes says itself what is so.
    """
    if not _WORD.fullmatch(text, start, end):
        return False
    return bool(_DENIED_AFTER.match(text, end)) or bool(
        _DENIED_BEFORE.search(text[max(0, start - 24) : start])
    )


def known_release(facts: Facts) -> Release | None:
    """The release of the facts; None when it is not known or no release number."""
    value = facts.look("release")
    if value is UNKNOWN or value is None:
        return None
    return parse_release(str(value)) if isinstance(value, Release) else release_or_none(str(value))


def found_in(rule: Rule, text: str) -> bool:
    """Does a pattern of the rule match within ``text``? False where that takes too long."""
    for pattern in rule.match:
        if pattern.literal not in text:
            continue
        try:
            if rule_regex(pattern.regex).search(text, timeout=SEARCH_SECONDS):
                return True
        except (TimeoutError, NotARegex):
            continue
    return False


_VERSION_AND_STOP = lazy(r"\d+(?:\.\d+)+\.")


def _without_full_stop(text: str) -> str:
    """``1.78.1.`` at the end of a sentence is the version 1.78.1."""
    return text[:-1] if text[-1:] == "." and _VERSION_AND_STOP.fullmatch(text) else text
