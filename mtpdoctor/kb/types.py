"""The typed structures of knowledge. The YAML form is described in docs/knowledge-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from mtpdoctor.records import dataclass, field
from mtpdoctor.release import ReleaseRange

if TYPE_CHECKING:
    from mtpdoctor.log.types import Line, Stage, Traceback


class Role(str, Enum):
    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    NOISE = "noise"
    DEGRADES = "degrades"
    ADVICE = "advice"  # of a whole kind of failures; read only where no specific rule knows the cause


class Safety(str, Enum):
    SAFE = "safe"
    RISKY = "risky"
    MANUAL = "manual"


class Span(str, Enum):
    """What a pattern is held against."""

    LINE = "line"  # one logical line (its ``text``)
    TRACEBACK = "traceback"  # the whole text of one traceback, frames and message, joined by \n


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regex and the literal that must be found before it is tried."""

    regex: str
    literal: str
    span: Span = Span.LINE


@dataclass(frozen=True, slots=True)
class Condition:
    """A node of a condition tree; evaluated three-valued by kb.conditions.

    ``op`` is "all", "any", "not" (with ``children``) or a comparison with ``fact`` and ``operand``.
    """

    op: str
    fact: str = ""
    operand: Any = None
    children: tuple[Condition, ...] = ()

    def mentions(self, text: str) -> bool:
        """Does the text stand in a fact's name or in an operand?"""
        return (
            text in self.fact
            or text in str(self.operand)
            or any(child.mentions(text) for child in self.children)
        )


ALWAYS = Condition("all")


@dataclass(frozen=True, slots=True)
class EditTemplate:
    """An edit whose name and value may hold ``{placeholders}``; resolved over the case."""

    op: str
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which published checkpoints of the launch's model mend a failure (``knowledge/checkpoints/``)."""

    formats: tuple[str, ...] = ()  # the best first; empty: any
    original: bool = False  # the repository that the others were made from
    makers: tuple[str, ...] = ()  # whose checkpoints help in the very format that is in use, too
    smaller: bool = False  # less than the weights in use, and such as fit
    edits: tuple[EditTemplate, ...] = ()  # of the command, that go with them


@dataclass(frozen=True, slots=True)
class Remedy:
    title: str
    safety: Safety
    why: str
    edits: tuple[EditTemplate, ...] = ()
    run: tuple[str, ...] = ()  # what a person would type; never executed by the doctor
    risk: str | None = None
    when: Condition = ALWAYS
    releases: ReleaseRange = field(default_factory=lambda: ReleaseRange.parse("*"))
    generate: str | None = (
        None  # name of a generator (diagnose.generate) that computes the remedies from data
    )
    checkpoints: Wanted | None = None  # another checkpoint of the model is served


@dataclass(frozen=True, slots=True)
class Here:
    """What the cause is where the facts of a launch decide it."""

    when: Condition
    cause: str


@dataclass(frozen=True, slots=True)
class ReleaseNote:
    """Releases in which a rule's text and its claim differ, and why that is right."""

    releases: ReleaseRange
    why: str


@dataclass(frozen=True, slots=True)
class Unfixed:
    """Source text that shows, in every release up to ``through``, that none of them mends a failure."""

    through: str  # the last release that was looked at
    files: tuple[str, ...]  # below sglang/, each place where it stands or stood
    text: str  # part of one line
    since: str = ""  # the first release of which it is so; else the rule's first
    lacks: bool = False  # the files do not have the text, which what mends it would bring


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    title: str
    role: Role
    stage: Stage
    source: str  # whose message it is: "sglang", "torch", "transformers", ...
    evidence: str  # "confirmed" | "stated" | "symptom"
    confidence: float
    releases: ReleaseRange
    match: tuple[Pattern, ...]  # any of
    requires: tuple[Pattern, ...]  # all of, anywhere in the attempt
    unless: tuple[Pattern, ...]  # none of, anywhere in the attempt
    when: Condition
    predicts: Condition | None
    severity: str  # of a prediction: "fatal" | "degrades" | "info"
    generic: bool  # names a symptom; any specific cause beats it
    explains: tuple[str, ...]  # ids of rules whose match this one makes a consequence
    root: str  # "match" | "exception" | "last-exception"
    cause: str
    misleading: str | None
    remedies: tuple[Remedy, ...]
    refs: tuple[str, ...]
    families: tuple[str, ...]
    examples: Mapping[str, Any]  # as written; only lint and tests read it
    origin: str  # file:line of the rule
    scope: str = "launch"  # "host": ``predicts`` reads the host alone, and is said of it without a launch
    matters: Condition = ALWAYS  # of a host rule: the launches that it is of consequence for
    elsewhere: tuple[ReleaseNote, ...] = ()  # the text stands in their sources too, for something else
    unseen: tuple[ReleaseNote, ...] = ()  # claimed although the text does not stand in their sources
    unfixed: tuple[Unfixed, ...] = ()  # what shows that no release mends it
    here: tuple[Here, ...] = ()  # the first that surely holds takes the place of ``cause``


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matched a log at one place."""

    rule: Rule
    line: Line  # the root line
    captures: Mapping[str, str]
    certain: bool  # False when a condition was unknown: say "if"
    traceback: Traceback | None = None
    evidence: tuple[Line, ...] = ()  # further lines (requires)
    confidence: float = 0.0  # the rule's, less where a condition is unknown or the release is another
    notes: tuple[str, ...] = ()  # what the match rests on: "if the platform is cuda"
