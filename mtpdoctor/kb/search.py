"""Finding rules: by words, by fields, by an error message that was pasted, by what holds in a release."""

from __future__ import annotations

from collections.abc import Iterable

from mtpdoctor.kb.hangs import HangCause
from mtpdoctor.kb.types import Role, Rule
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, release_or_none

_ROLES = (Role.CAUSE, Role.DEGRADES, Role.CONSEQUENCE, Role.NOISE, Role.ADVICE)
HANG = "hang"  # the role, in lists, of what holds launches up
PASTED = 24  # characters from which a text may be a message, not only words


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: all of it must hold. ``text`` is the whole as typed, for messages."""

    text: str = ""
    words: tuple[str, ...] = ()  # lower case
    stage: str | None = None
    role: str | None = None
    release: Release | None = None


def parse_query(text: str) -> Query:
    """``stage:weights role:cause release:0.5.13 other words``. A field with a value that means nothing is a word."""
    stage = role = None
    release: Release | None = None
    words: list[str] = []
    for word in text.split():
        name, colon, value = word.lower().partition(":")
        if colon and value and name == "stage":
            stage = value
        elif colon and value and name == "role":
            role = value
        elif colon and name in ("release", "sglang") and (found := release_or_none(value)) is not None:
            release = found
        else:
            words.append(word.lower())
    return Query(text.strip(), tuple(words), stage, role, release)


def search(rules: Iterable[Rule], query: Query) -> tuple[Rule, ...]:
    """The rules that hold all of the query, the best first: named by id, matching the pasted message, then
    those whose title holds the words, then those that hold them anywhere; causes before the rest."""
    ranked = [
        (rank, _ROLES.index(rule.role), rule.id, rule)
        for rule in rules
        if (rank := _rank(rule, query)) is not None
    ]
    return tuple(rule for *_, rule in sorted(ranked, key=lambda r: r[:3]))


def search_hangs(causes: Iterable[HangCause], query: Query) -> tuple[HangCause, ...]:
    """The causes of launches that stand still that hold all of the query; those named by id or in their title first."""
    if query.role is not None and not HANG.startswith(query.role):
        return ()
    found: list[tuple[bool, HangCause]] = []
    for cause in causes:
        if query.stage is not None and not any(s.value.startswith(query.stage) for s in cause.stages):
            continue
        if query.release is not None and cause.releases.holds(query.release) is False:
            continue
        head = f"{cause.id} {cause.title}".lower()
        whole = f"{head} {cause.tell} {cause.do} {HANG}".lower()
        if all(word in whole for word in query.words):
            found.append((not all(word in head for word in query.words), cause))
    return tuple(cause for _, cause in sorted(found, key=lambda item: item[0]))


def _rank(rule: Rule, query: Query) -> int | None:
    if query.stage is not None and not rule.stage.value.startswith(query.stage):
        return None
    if query.role is not None and not rule.role.value.startswith(query.role):
        return None
    if query.release is not None and rule.releases.holds(query.release) is False:
        return None
    if not query.words:
        return 3
    if len(query.words) == 1 and _is_id(rule.id, query.words[0]):
        return 0
    if len(query.text) >= PASTED and _matches(rule, query.text):
        return 1
    title = rule.title.lower()
    if all(word in title for word in query.words):
        return 2
    whole = _whole(rule)
    return 3 if all(word in whole for word in query.words) else None


def _is_id(rule_id: str, word: str) -> bool:
    number = rule_id.lower().lstrip("mtp")
    return word == rule_id.lower() or (word.isdigit() and int(word) == int(number or -1))


def _matches(rule: Rule, text: str) -> bool:
    """The pasted text is a message that the rule knows."""
    import regex as engine

    for pattern in rule.match:
        if pattern.literal in text:
            try:
                if engine.search(pattern.regex, text, timeout=0.2):
                    return True
            except (engine.error, TimeoutError):
                continue
    return False


def _whole(rule: Rule) -> str:
    parts: list[str] = [rule.id, rule.title, rule.source, rule.stage.value, rule.role.value, rule.cause]
    parts += [p.regex for p in rule.match]
    parts += [p.literal for p in rule.match]
    parts += rule.families
    for remedy in rule.remedies:
        parts.append(remedy.title)
        parts += [f"{e.name} {e.value or ''}" for e in remedy.edits]
    return " ".join(parts).lower()
