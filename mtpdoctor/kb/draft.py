"""A rule drafted from a log, written as YAML: what is fact is filled in, what a person must say is marked.

``FILL IN`` stands where a person must write; lint names each such place (``kb.unfilled``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mtpdoctor.kb.literals import MIN_LITERAL, required_literal, required_pieces
from mtpdoctor.kb.types import Rule
from mtpdoctor.kb.unfilled import FILL_IN

COMMON = 5  # lines of other logs that a literal may stand in before a rarer one is taken
_UNSAFE = re.compile(r"""[^ -~]|["'\\<>&]""")
_WORD = re.compile(r"[A-Za-z_]{3,}")
_MIN_SHARED = 2  # rare words that a look-alike has in common with the message


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a draft says. ``remarks`` become comments at its head, ``proposals`` at its remedies."""

    id: str
    stage: str
    source: str
    regex: str
    literal: str | None  # given only where it cannot be derived
    traceback: bool
    releases: str
    example: tuple[str, ...]  # lines, redacted
    root: str | None  # part of the root line, where the example has several lines
    also: tuple[str, ...]
    command: str | None
    release: str | None
    ok: str | None  # a look-alike line on which it stays silent
    remarks: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()  # flags that the failing check looks at
    proposals: tuple[str, ...] = ()  # edits that would make the check pass


def next_id(rules: Iterable[Rule], least: int | None = None) -> str:
    """The first id that no rule has, from ``least`` on (default: after the highest)."""
    taken = {int(rule.id.removeprefix("MTP")) for rule in rules}
    number = max(taken, default=0) + 1 if least is None else least
    while number in taken:
        number += 1
    return f"MTP{number:04d}"


def look_alike(message: str, regex: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``message`` that the regex does not match: the one that shares the most of its rare
    words. None when none shares enough."""
    import regex as engine

    lines = list(dict.fromkeys(c for c in candidates if len(c) < 400))
    spread = Counter(word for line in lines for word in set(_WORD.findall(line)))
    wanted = set(_WORD.findall(message))
    compiled = engine.compile(regex)
    best, most = None, 0.0
    for line in lines:
        shared = wanted & set(_WORD.findall(line))
        if len(shared) < _MIN_SHARED:
            continue
        score = sum(1 / (1 + spread[w]) ** 0.5 for w in shared) / (1 + len(line) / 400)
        if score > most and compiled.search(line, timeout=1.0) is None:
            best, most = line, score
    return best


def rare_literal(regex: str, lines: Iterable[str]) -> str | None:
    """The text to look for where the longest one that the regex requires is common and another is not; None where
    the longest will do, or the regex has none."""
    try:
        derived = required_literal(regex)
        pieces = required_pieces(regex)
    except ValueError:
        return None
    others = {p.strip() for piece in pieces for p in _UNSAFE.split(piece) if len(p.strip()) >= MIN_LITERAL}
    count = dict.fromkeys({derived, *others}, 0)
    for line in lines:
        for piece in count:
            count[piece] += piece in line
    best = min(count, key=lambda piece: (count[piece], -len(piece), piece))
    return best if count[derived] > count[best] + COMMON else None


def draft_text(draft: Draft) -> str:
    """The draft as a YAML file with one rule, in the order of docs/knowledge-format.md."""
    out = [f"# {_comment(remark)}" for remark in draft.remarks]
    out += [
        "rules:",
        f"- id: {draft.id}",
        f"  title: {_quote(FILL_IN + ': what is wrong, in a few words')}",
        "  role: cause",
        f"  stage: {draft.stage}",
        f"  source: {draft.source}",
        "  evidence: symptom  # confirmed: the cause is proven; stated: somebody who knows says so",
        f"  releases: {_quote(draft.releases)}",
        "  match:",
        *_pattern(draft),
        *(["  root: exception"] if draft.traceback else []),
        f"  cause: {_quote(FILL_IN + ': why it happens, in one or two sentences')}",
        "  misleading: null  # what people wrongly conclude from the message",
        "  remedies:",
        *_remedy(draft),
        "  refs: []  # addresses of reports, issues, pull requests",
        "  examples:",
        "    bad:",
        *_log(draft.example),
    ]
    if draft.root:
        out.append(f"      root: {_quote(draft.root)}")
    if draft.command:
        out.append(f"      command: {_quote(draft.command)}")
    if draft.release:
        out.append(f"      release: {_quote(draft.release)}")
    if draft.also:
        out.append(f"      also: [{', '.join(draft.also)}]")
    out.append("    ok:")
    out += _log((draft.ok or f"{FILL_IN}: a line that looks like it and means something else",))
    return "\n".join(out) + "\n"


def _pattern(draft: Draft) -> list[str]:
    if not draft.traceback and draft.literal is None:
        return [f"  - {_quote(draft.regex)}"]
    out = [f"  - pattern: {_quote(draft.regex)}"]
    if draft.traceback:
        out.append("    span: traceback")
    if draft.literal is not None:
        out.append(f"    literal: {_quote(draft.literal)}")
    return out


def _remedy(draft: Draft) -> list[str]:
    out = [f"  - title: {_quote(FILL_IN + ': what helps')}"]
    if draft.reads:
        out.append(f"    # the check that failed reads {', '.join(draft.reads)}")
    if draft.proposals:
        out.append("    # edits that would make it pass, read off the source and tried by nobody:")
        out += [f"    # edits: [{_comment(proposal)}]" for proposal in draft.proposals]
    out += [
        "    safety: manual  # safe: cannot lose what was asked for; risky: say in `risk` what may go wrong",
        f"    why: {_quote(FILL_IN + ': why it helps')}",
    ]
    return out


def _log(lines: Sequence[str]) -> list[str]:
    indent = "2" if lines[0].startswith(" ") else ""
    return [f"    - log: |{indent}", *(f"        {line}".rstrip() for line in lines)]


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _comment(text: str) -> str:
    return " ".join(text.split())
