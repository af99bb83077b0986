"""Checks of the knowledge of hangs: its syntax, and the scenes in which each cause must and must not come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.kb.hangs import HangCause, Hangs, Scene
from mtpdoctor.kb.hangs_source import hang_files, read_hangs
from mtpdoctor.kb.yaml_source import Problem
from mtpdoctor.log.lines import make_line
from mtpdoctor.log.stacks import Stack
from mtpdoctor.log.types import Stage

_KEYS = {
    "stage", "lines", "stacks", "found", "state", "compilers", "cpu", "gpu", "io", "behind", "ranks", "nodes", "facts",
    "typed",
}  # fmt: skip


def lint_hangs(folder: Path, base: Path | None = None) -> tuple[list[Problem], int]:
    """Every problem of ``folder``/hangs, and how many scenes were looked at; none where there is no such folder."""
    files = hang_files(folder)
    problems: list[Problem] = []
    if not files:
        return problems, 0
    hangs = read_hangs(files, problems, base)
    if hangs is None:
        return problems, 0
    for cause in hangs.causes:
        problems += _of_cause(cause, hangs)
    return problems, sum(len(c.first) + len(c.not_first) for c in hangs.causes)


def _of_cause(cause: HangCause, hangs: Hangs) -> Iterator[Problem]:
    if not cause.not_first or (cause.seen and not cause.first):
        yield _problem(
            cause, "examples: a scene at least in which it comes first, and one in which it must not"
        )
    for name, scenes, wanted in (("first", cause.first, True), ("not_first", cause.not_first, False)):
        for number, written in enumerate(scenes, 1):
            where = f"{name} {number}"
            try:
                stage, scene = scene_of_example(written)
            except ValueError as error:
                yield _problem(cause, f"{where}: {error}")
                continue
            likely = hangs.likely(stage, scene)
            told = ", ".join(one.cause.id for one in likely)
            if (bool(likely) and likely[0].cause.id == cause.id) is not wanted:
                yield _problem(cause, f"{where}: told in this order: {told or 'nothing'}")


def scene_of_example(written: Mapping[str, Any]) -> tuple[Stage, Scene]:
    """The stage and the scene that an example describes. Raises ValueError saying what is wrong."""
    if not isinstance(written, dict) or "stage" not in written:
        raise ValueError("a scene is a mapping with a stage")
    odd = set(written) - _KEYS
    if odd:
        raise ValueError(f"unknown {', '.join(sorted(odd))}; a scene has {', '.join(sorted(_KEYS))}")
    stage = Stage(written["stage"])
    lines, typed = (
        tuple(make_line(str(text), 0, n, 0, "", None) for n, text in enumerate(written.get(key, ()), 1))
        for key in ("lines", "typed")
    )
    state = written.get("state")
    scene = Scene(
        lines=lines,
        stacks=_stacks(written.get("stacks")),
        found=_texts(written, "found"),
        states=(("TP0", str(state)),) if state else None,
        compilers=_texts(written, "compilers"),
        cpu=written.get("cpu"),
        gpu=written.get("gpu"),
        io=written.get("io"),
        behind=_texts(written, "behind"),
        ranks=written.get("ranks"),
        nodes=written.get("nodes"),
        facts=_facts(written.get("facts")),
        typed=typed,
    )
    return stage, scene


def _texts(written: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    values = written.get(key)
    return None if values is None else tuple(str(v) for v in values)


def _stacks(frames: Sequence[str] | None) -> tuple[Stack, ...] | None:
    return None if frames is None else (Stack("TP0", tuple(str(f) for f in frames)),)


def _facts(values: Mapping[str, Any] | None) -> Facts | None:
    return None if values is None else make_facts(dict(values), Source.LOG, "example")


def _problem(cause: HangCause, message: str) -> Problem:
    file, _, line = cause.origin.rpartition(":")
    return Problem(file, int(line), message, cause.id)
