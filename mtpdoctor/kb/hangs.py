"""What usually holds a launch up, and which of it fits what is seen: of a live launch, or of a log alone.

Conditions are three-valued: what is not known speaks neither for nor against a cause, and is named as what would
decide. The data is ``knowledge/hangs`` (``hangs_source.py`` reads it); docs/hangs.md explains it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mtpdoctor.facts import Facts
from mtpdoctor.kb.conditions import evaluate, fact_names, unknown_facts
from mtpdoctor.kb.fact_names import fact_words
from mtpdoctor.kb.types import Condition
from mtpdoctor.log.stacks import Stack
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.records import dataclass
from mtpdoctor.release import ReleaseRange, release_or_none

MOST = 4  # causes that are told
# How much a condition speaks for a cause; what a process merely looks like weighs 1.
WEIGHTS = {"found": 6, "typed": 6, "compiler": 5, "ranks": 5, "stack": 4, "last": 4, "line": 2, "launch": 2}
# What is asked for where a condition is not known.
_OPEN = {
    "stack": "the Python stacks of the ranks",
    "found": "locks, downloads, mounts and interfaces of the host",
    "state": "the states of the processes",
    "cpu": "whether processors are busy",
    "gpu": "whether the GPUs are busy",
    "io": "whether bytes are read",
    "compiler": "whether compilers run",
    "several": "how many ranks there are",
    "nodes": "how many nodes there are",
    "local": "whether a node has several ranks",
    "ranks": "how far each rank has got",
}
_WAITS = re.compile(r"file_baton|filelock/")
_LAST = 3  # lines that say something, of which ``last`` speaks
CONDITIONS = frozenset({*_OPEN, "line", "last", "typed", "launch"})


@dataclass(frozen=True, slots=True)
class Scene:
    """What is seen of a launch that stands still. None: not known."""

    lines: tuple[Line, ...] = ()  # the last ones
    stacks: tuple[Stack, ...] | None = None
    found: tuple[str, ...] | None = None  # what the host shows: "build lock ...", "iommu ..."
    states: tuple[tuple[str, str], ...] | None = None  # process, state
    compilers: tuple[str, ...] | None = None  # those that run
    cpu: str | None = None  # busy | some | idle
    gpu: str | None = None
    io: str | None = None  # reading | some | still
    behind: tuple[str, ...] | None = None
    ranks: int | None = None  # how many there are
    nodes: int | None = None
    facts: Facts | None = None  # of the launch: command, release, host
    typed: tuple[Line, ...] = ()  # what people asked of the machine, and its answers


@dataclass(frozen=True, slots=True)
class Test:
    """One condition; ``value`` is a compiled pattern, a Condition over facts, or what the thing must be."""

    name: str
    value: Any
    weight: int = 1  # how much it speaks for the cause


@dataclass(frozen=True, slots=True)
class HangCause:
    id: str
    title: str
    stages: tuple[Stage, ...]
    releases: ReleaseRange
    must: tuple[Test, ...]  # conditions that must not be untrue
    seen: tuple[Test, ...]  # conditions that speak for it
    against: tuple[Test, ...]  # conditions that rule it out where they hold
    tell: str
    do: str
    refs: tuple[str, ...]
    usual: tuple[Stage, ...] = ()  # stages in which it is told where nothing speaks for any cause
    origin: str = ""  # file:line
    first: tuple[Mapping[str, Any], ...] = ()  # scenes in which it must come first
    not_first: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Clue:
    """What speaks for a cause; ``line`` where it stands in the log."""

    weight: int
    text: str
    line: Line | None = None
    fact: str | None = None  # of the launch, where that speaks for it


@dataclass(frozen=True, slots=True)
class Likely:
    cause: HangCause
    score: int
    clues: tuple[Clue, ...]  # the weightiest first
    open: tuple[str, ...]  # what is not known and would decide

    @property
    def told(self) -> str:
        """In one paragraph."""
        seen = f" ({'; '.join(c.text for c in self.clues[:2])})" if self.clues else ""
        return f"{self.cause.title}{seen}. To tell: {self.cause.tell}. Then: {self.cause.do}."


@dataclass(frozen=True, slots=True)
class Hangs:
    quiet_s: Mapping[Stage, float]
    quiet_why: Mapping[Stage, str]
    chatter: re.Pattern[str]
    compilers: frozenset[str]
    compiling_stack: re.Pattern[str]
    compiling_line: re.Pattern[str]
    causes: tuple[HangCause, ...]

    def compiling(self, stage: Stage, scene: Scene) -> str | None:
        """What shows that kernels are being compiled; None when nothing does."""
        if scene.compilers:
            return f"{scene.compilers[0]} is at work"
        for stack in scene.stacks or ():
            if stack.busy is not False:
                for frame in reversed(stack.frames):
                    if _WAITS.search(frame):
                        break  # it waits for the lock of one that compiles, or that was killed
                    if self.compiling_stack.search(frame):
                        return f"{stack.who} is in {frame}"
        last = scene.lines[-1].text if scene.lines else ""
        if scene.cpu == "busy" and scene.gpu in (None, "idle") and self.compiling_line.search(last):
            return f'the last line is "{last[:120]}", and a processor is busy'
        # A rank that waits for a collective keeps its GPU at 100 %; one that waits for a socket is idle.
        if stage in (Stage.GRAPH_CAPTURE, Stage.WARMUP) and scene.cpu == "busy" and scene.gpu == "idle":
            return "a processor is busy and the GPU is idle"
        return None

    def likely(self, stage: Stage, scene: Scene, most: int = MOST) -> tuple[Likely, ...]:
        """The causes that fit, likeliest first. Where nothing speaks for any, the two that are usual in the stage."""
        compiling = self.compiling(stage, scene)
        release = _release(scene)
        ranked: list[tuple[int, bool, int, Likely]] = []
        for at, cause in enumerate(self.causes):
            seen_at_work = compiling is not None and cause.id == "compiling"  # on a loaded host: hardly busy
            if not seen_at_work and not self._fits(cause, stage, scene, compiling, release):
                continue
            clues: list[Clue] = []
            score = 100 * seen_at_work  # what is said before all else is told first
            for test in cause.seen:
                truth, text, line = self._holds(test, scene, compiling)
                if truth:
                    weight = test.weight
                    if (
                        test.name == "last"
                        and line is not None
                        and line is not _end(self.telling(scene.lines))
                    ):
                        weight -= 1  # something else has been said since
                    score += weight
                    fact = _fact(test.value, scene) if test.name == "launch" else None
                    clues += [Clue(weight, text, line, fact)] if text else []
            clues.sort(key=lambda clue: -clue.weight)
            one = Likely(cause, score, tuple(clues), self._open(cause, scene, compiling))
            ranked.append((-score, cause.id == "unknown", at, one))
        ranked.sort(key=lambda item: item[:3])
        shown = [one for score, _, _, one in ranked if score < 0]
        if shown:
            return tuple(shown[:most])
        usual = [one for *_, one in ranked if stage in one.cause.usual]
        usual.sort(key=lambda one: len(one.cause.usual))  # what is usual in this stage alone goes first
        return tuple(usual[:2] or [one for *_, one in ranked][-1:])

    def _fits(
        self, cause: HangCause, stage: Stage, scene: Scene, compiling: str | None, release: str | None
    ) -> bool:
        if stage not in cause.stages:
            return False
        if release is not None and cause.releases.holds(release_or_none(release)) is False:
            return False
        for test in cause.must:
            truth = self._holds(test, scene, compiling)[0]
            # What a cause asks of the launch must be known: nobody is told of an option that he may not use.
            if truth is False or (truth is None and test.name == "launch"):
                return False
        return not any(self._holds(test, scene, compiling)[0] for test in cause.against)

    def _open(self, cause: HangCause, scene: Scene, compiling: str | None) -> tuple[str, ...]:
        out: list[str] = []
        for test in (*cause.must, *cause.seen):
            if self._holds(test, scene, compiling)[0] is not None:
                continue
            if test.name == "launch":
                out += [fact_words(name) for name in unknown_facts(test.value, scene.facts or Facts({}))]
            else:
                out.append(_OPEN[test.name])
        return tuple(dict.fromkeys(out))

    def _holds(self, test: Test, scene: Scene, compiling: str | None) -> tuple[bool | None, str, Line | None]:
        """Three-valued, with what shows it and where."""
        name, value = test.name, test.value
        if name == "stack":
            for stack in scene.stacks or ():
                for frame in reversed(stack.frames):
                    if value is self.compiling_stack and _WAITS.search(frame):
                        break
                    if value.search(frame):
                        return True, f"{stack.who} is in {frame}", stack.line
            return (False if any(s.frames for s in scene.stacks or ()) else None), "", None
        if name in ("line", "last", "typed"):
            lines = (
                self.telling(scene.lines)
                if name == "last"
                else scene.typed
                if name == "typed"
                else scene.lines
            )
            for line in reversed(lines):
                if value.search(line.text):
                    told = "somebody looked, and saw" if name == "typed" else "it wrote"
                    return True, f'{told} "{line.text[:140]}"', line
            return False, "", None
        if name == "found":
            if scene.found is None:
                return None, "", None
            hit = next((f for f in scene.found if value.search(f)), None)
            return hit is not None, hit or "", None
        if name == "state":
            if not scene.states:
                return None, "", None
            who = next((who for who, state in scene.states if state == value), None)
            return who is not None, f"{who}: {value}" if who else "", None
        if name == "compiler":
            if scene.compilers is None and compiling is None:
                return None, "", None
            return (compiling is not None) is value, compiling or "", None
        if name in ("several", "nodes"):
            count = scene.ranks if name == "several" else scene.nodes
            text = f"there are {count} nodes" if name == "nodes" and count and count > 1 else ""
            return (None if not count else (count > 1) is value), text, None
        if name == "local":
            if not scene.ranks or not scene.nodes:
                return None, "", None
            return (scene.ranks > scene.nodes) is value, "", None
        if name == "ranks":
            if scene.behind is None:
                return None, "", None
            late = ", ".join(scene.behind[:8]) + (" ..." if len(scene.behind) > 8 else "")
            return bool(scene.behind) == (value == "behind"), f"behind: {late}" if late else "", None
        if name == "launch":
            truth = evaluate(value, scene.facts if scene.facts is not None else Facts({}))
            return truth, _said(value, scene) if truth else "", None
        known = {"cpu": scene.cpu, "gpu": scene.gpu, "io": scene.io}[name]
        word = {"cpu": "processors", "gpu": "GPU", "io": "disk"}[name]
        return (None if known is None else known == value), f"{word} {known}" if known else "", None

    def telling(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """The last lines that say something of progress."""
        out: list[Line] = []
        for line in reversed(lines):
            if line.text.strip() and not self.chatter.search(line.text):
                out.append(line)
                if len(out) == _LAST:
                    break
        return tuple(reversed(out))


def _end(lines: tuple[Line, ...]) -> Line | None:
    return lines[-1] if lines else None


def _fact(condition: Condition, scene: Scene) -> str | None:
    """The fact of the launch that a condition holds by: the first that is known and set."""
    if condition.op == "any" and scene.facts is not None:
        for child in condition.children:
            if evaluate(child, scene.facts):
                return _fact(child, scene)
    facts = scene.facts if scene.facts is not None else Facts({})
    names = fact_names(condition)
    return next((n for n in names if facts.get(n) not in (None, False)), next(iter(names), None))


def _said(condition: Condition, scene: Scene) -> str:
    """ "nnodes is 2"; of environment variables only that they are set, since a proxy's address may hold a password."""
    name = _fact(condition, scene)
    value = scene.facts.get(name) if scene.facts is not None and name is not None else None
    if name is None or value in (None, False):
        return ""
    kind, _, dest = name.partition(".")
    shown = dest if kind in ("arg", "env", "flag") else fact_words(name)
    if kind == "env":
        return f"{shown} is set"
    return f"{shown} is {'on' if value is True else str(value)[:80]}"


def _release(scene: Scene) -> str | None:
    value = scene.facts.look("release") if scene.facts is not None else None
    return value if isinstance(value, str) else None


@lru_cache(maxsize=512)
def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
