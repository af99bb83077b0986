"""The knowledge of hangs: ``knowledge/watch/hangs.yaml``, and which of its causes fit what is seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.log.types import Stage
from mtpdoctor.watch.types import Process

BUSY_CPU = 50.0  # percent of one processor
IDLE_CPU = 8.0
BUSY_GPU = 90
READING = 256 * 1024  # bytes per second
# How much a condition speaks for a cause; what a process merely looks like weighs 1.
_WEIGHTS = {"found": 6, "compiler": 5, "stack": 4, "ranks": 3, "line": 2}
_CONDITIONS = frozenset(
    ("stack", "line", "found", "state", "cpu", "gpu", "io", "ranks", "several", "nodes", "compiler")
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What is seen of a launch that stands still. None: not known."""

    processes: tuple[Process, ...]
    lines: tuple[str, ...]  # the last ones
    found: tuple[str, ...]  # processes.signs()
    behind: tuple[str, ...]
    ranks: int  # how many there are
    nodes: int | None


@dataclass(frozen=True, slots=True)
class Cause:
    id: str
    title: str
    stages: tuple[Stage, ...]
    must: tuple[tuple[str, Any], ...]  # conditions that must not be untrue
    seen: tuple[tuple[str, Any], ...]  # conditions that speak for it
    tell: str
    do: str
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hangs:
    quiet_s: Mapping[Stage, float]
    chatter: re.Pattern[str]
    compilers: frozenset[str]
    compiling_stack: re.Pattern[str]
    compiling_line: re.Pattern[str]
    causes: tuple[Cause, ...]

    def compiling(self, stage: Stage, scene: Scene) -> str | None:
        """What shows that kernels are being compiled; None when nothing does."""
        busy = [p for p in scene.processes if p.name in self.compilers and _works(p)]
        if busy:
            return f"{busy[0].name} (pid {busy[0].pid}) is at work"
        for process in scene.processes:
            if process.cpu_percent is None or process.cpu_percent >= BUSY_CPU:
                for frame in process.stack:
                    if self.compiling_stack.search(frame):
                        return f"{_named(process)} is in {frame}"
        last = scene.lines[-1] if scene.lines else ""
        cpu = _cpu(scene)
        if cpu == "busy" and _gpu(scene) in (None, "idle") and self.compiling_line.search(last):
            return f'the last line is "{last[:120]}", and a processor is busy'
        # A rank that waits for a collective keeps its GPU at 100 %; one that waits for a socket is idle.
        if stage in (Stage.GRAPH_CAPTURE, Stage.WARMUP) and cpu == "busy" and _gpu(scene) == "idle":
            return "a processor is busy and the GPU is idle"
        return None

    def likely(self, stage: Stage, scene: Scene, most: int = 4) -> tuple[str, ...]:
        """The causes that fit, likeliest first, each with what speaks for it and how to tell it from the others."""
        compiling = self.compiling(stage, scene)
        ranked: list[tuple[int, int, str]] = []
        for at, cause in enumerate(self.causes):
            seen_at_work = compiling is not None and cause.id == "compiling"  # on a loaded host: hardly busy
            if not seen_at_work and (
                stage not in cause.stages
                or any(self._holds(c, v, scene, compiling)[0] is False for c, v in cause.must)
            ):
                continue
            score = 0
            evidence: list[tuple[int, str]] = []
            for name, value in cause.seen:
                truth, what = self._holds(name, value, scene, compiling)
                if truth:
                    weight = _WEIGHTS.get(name, 1)
                    score += weight
                    evidence += [(-weight, what)] if what else []
            score += 100 * seen_at_work  # what is said before all else is told first
            evidence.sort(key=lambda item: item[0])
            ranked.append((-score, at, _told(cause, [what for _, what in evidence])))
        ranked.sort()
        shown = [text for score, _, text in ranked if score < 0]
        guesses = [text for score, _, text in ranked if score == 0]
        return tuple((shown + guesses[: 2 if not shown else 1])[:most])

    def _holds(self, name: str, value: Any, scene: Scene, compiling: str | None) -> tuple[bool | None, str]:
        """Three-valued, with what shows it."""
        if name == "stack":
            pattern = self.compiling_stack if value == "@compiling" else _regex(value)
            for process in scene.processes:
                for frame in reversed(process.stack):
                    if pattern.search(frame):
                        return True, f"{_named(process)} is in {frame}"
            return (False if any(p.stack for p in scene.processes) else None), ""
        if name == "line":
            pattern = self.compiling_line if value == "@compiling" else _regex(value)
            for line in reversed(scene.lines):
                if pattern.search(line):
                    return True, f'it wrote "{line[:140]}"'
            return False, ""
        if name == "found":
            return next(((True, f) for f in scene.found if _regex(value).search(f)), (False, ""))
        if name == "state":
            hit = next((p for p in scene.processes if p.state == value), None)
            return (hit is not None) if scene.processes else None, f"{_named(hit)}: {value}" if hit else ""
        if name == "compiler":
            return (compiling is not None) is value, compiling or ""
        if name in ("several", "nodes"):
            count = scene.ranks if name == "several" else scene.nodes
            return (None if not count else (count > 1) is value), ""
        if name == "ranks":
            return (bool(scene.behind) == (value == "behind")), f"behind: {', '.join(scene.behind)}"
        known = {"cpu": _cpu, "gpu": _gpu, "io": _io}[name](scene)
        return (None if known is None else known == value), f"{_WORDS[name]} {known}" if known else ""


_WORDS = {"cpu": "processors", "gpu": "GPU", "io": "disk"}


def _told(cause: Cause, evidence: Sequence[str]) -> str:
    seen = f" ({'; '.join(evidence[:2])})" if evidence else ""
    return f"{cause.title}{seen}. To tell: {cause.tell}. Then: {cause.do}."


def _named(process: Process) -> str:
    return process.rank or f"{process.name} (pid {process.pid})"


def _works(process: Process) -> bool:
    """Running now, or a compiler's driver that waits for the one that works."""
    return process.state not in ("zombie", "stopped")


def _cpu(scene: Scene) -> str | None:
    known = [p.cpu_percent for p in scene.processes if p.cpu_percent is not None]
    if not known:
        return None
    return "busy" if max(known) >= BUSY_CPU else "idle" if max(known) <= IDLE_CPU else "some"


def _gpu(scene: Scene) -> str | None:
    known = [p.gpu_percent for p in scene.processes if p.gpu_percent is not None]
    if not known:
        return None
    return "busy" if max(known) >= BUSY_GPU else "idle" if max(known) <= 2 else "some"


def _io(scene: Scene) -> str | None:
    known = [p.read_bytes_per_s for p in scene.processes if p.read_bytes_per_s is not None]
    if not known:
        return None
    return "reading" if sum(known) >= READING else "still" if sum(known) < 1 else "some"


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def load_hangs(file: Path | None = None) -> Hangs:
    """The knowledge of hangs. Raises UserError naming what is wrong in the file."""
    if file is None:
        from mtpdoctor.paths import knowledge_folder

        file = knowledge_folder() / "watch" / "hangs.yaml"
    return _load(file)


@lru_cache(maxsize=4)
def _load(file: Path) -> Hangs:
    import yaml

    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        compiling = data["compiling"]
        return Hangs(
            quiet_s={Stage(name): float(about["quiet_s"]) for name, about in data["stages"].items()},
            chatter=re.compile("|".join(f"(?:{_inline(p)})" for p in data["chatter"])),
            compilers=frozenset(compiling["processes"]),
            compiling_stack=re.compile(compiling["stacks"]),
            compiling_line=re.compile(compiling["lines"]),
            causes=tuple(_cause(c) for c in data["causes"]),
        )
    except OSError as error:
        raise UserError(
            f"{file}: {error.strerror or error}", hint="reinstall mtpdoctor, or mend the knowledge folder"
        ) from None
    except (yaml.YAMLError, KeyError, ValueError, TypeError, AttributeError, re.error) as error:
        raise UserError(f"{file}: {type(error).__name__}: {error}", hint="see docs/hangs.md") from None


def _inline(pattern: str) -> str:
    """``(?i)`` at the head of one alternative, as a group of its own."""
    return f"(?i:{pattern[4:]})" if pattern.startswith("(?i)") else pattern


def _cause(data: Mapping[str, Any]) -> Cause:
    seen = tuple((name, value) for item in data["seen"] for name, value in item.items())
    must = tuple(data["if"].items())
    for name, value in (*must, *seen):
        if name not in _CONDITIONS:
            raise ValueError(
                f"{data['id']}: no condition {name!r}; there are {', '.join(sorted(_CONDITIONS))}"
            )
        if name in ("stack", "line", "found") and not value.startswith("@"):
            _regex(value)
    return Cause(
        id=data["id"],
        title=data["title"],
        stages=tuple(Stage(name) for name in data["stages"]),
        must=must,
        seen=seen,
        tell=data["tell"],
        do=data["do"],
        refs=tuple(data.get("refs", ())),
    )
