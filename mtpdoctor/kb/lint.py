"""Checks of the knowledge beyond its syntax: everything that docs/knowledge-format.md demands.

``python -m mtpdoctor.kb.lint [FILE...]`` checks the rules of the files (default: all) against the
rest of the knowledge, their own examples and healthy logs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import UserError
from mtpdoctor.kb import host_examples, lint_examples, lint_static
from mtpdoctor.kb.checkpoints_lint import unknown_formats
from mtpdoctor.kb.checkpoints_source import FOLDER as CHECKPOINTS
from mtpdoctor.kb.checkpoints_source import checkpoint_files, read_checkpoints
from mtpdoctor.kb.hangs_lint import lint_hangs
from mtpdoctor.kb.hangs_source import FOLDER
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import knowledge_files, knowledge_folder, load_knowledge, origin_problem, read_rules
from mtpdoctor.kb.resolution_source import read_resolution, resolution_files
from mtpdoctor.kb.types import Rule
from mtpdoctor.kb.yaml_source import Problem

if TYPE_CHECKING:
    from mtpdoctor.facts import Facts
    from mtpdoctor.log.types import LogReading

HEALTHY_FOLDERS = ("tests/healthy/*.log", "sample_logs/ready*.log")
HEALTHY_HOSTS = "tests/healthy/hosts/*.json"


@dataclass(frozen=True, slots=True)
class Hooks:
    """What lint needs from layers above the knowledge.

    ``apply_remedy(rule, remedy_index, command, release, gpu)`` gives the repaired command, None when
    the remedy does not apply. ``facts_of(example, reading)`` gives the facts of an example; without
    it only the example's own ``release`` and ``gpu`` are known. ``findings(knowledge)`` gives what is found of
    a host by the rules on hosts.
    """

    apply_remedy: Callable[[Rule, int, str, str | None, str | None], str | None] | None = None
    facts_of: Callable[[dict[str, Any], LogReading], Facts] | None = None
    findings: Callable[[Knowledge], host_examples.Finder] | None = None


@dataclass(slots=True)
class Report:
    """Problems found, and how much was looked at."""

    problems: list[Problem] = field(default_factory=list)
    rules: int = 0
    examples: int = 0
    hangs: int = 0  # scenes of the causes of hangs
    healthy: int = 0
    checked: list[Rule] = field(default_factory=list)  # the rules looked at

    @property
    def errors(self) -> list[Problem]:
        return [p for p in self.problems if p.level == "error"]


def lint(
    folder: Path | None = None,
    files: Sequence[Path] | None = None,
    *,
    hooks: Hooks = Hooks(),
    healthy: Sequence[Path] | None = None,
    ci: bool = False,
) -> list[Problem]:
    """Every problem of the knowledge under ``folder``, or of ``files`` within it. See :func:`report`."""
    return report(folder, files, hooks=hooks, healthy=healthy, ci=ci).problems


def report(
    folder: Path | None = None,
    files: Sequence[Path] | None = None,
    *,
    hooks: Hooks = Hooks(),
    healthy: Sequence[Path] | None = None,
    ci: bool = False,
) -> Report:
    """Lint and counts. With ``ci`` a check that cannot be made is an error, else a note."""
    folder = folder or knowledge_folder()
    base = folder.resolve().parent
    chosen = [Path(f).resolve() for f in files] if files else None
    steps = [f.resolve() for f in resolution_files(folder)]
    all_files = list(dict.fromkeys([f.resolve() for f in knowledge_files(folder)] + (chosen or [])))
    all_files = [f for f in all_files if f not in steps and f.parent.name not in (FOLDER, CHECKPOINTS)]
    published = [f.resolve() for f in checkpoint_files(folder)]
    problems: list[Problem] = []
    read_resolution(steps, problems, base)
    checkpoints = read_checkpoints(published, problems, base)
    rules = _rules(folder.resolve(), all_files, chosen, problems)
    every = chosen or [*all_files, *steps, *published]
    shown = {str(f.relative_to(base)) if f.is_relative_to(base) else str(f) for f in every}
    focus = [r for r in rules if r.origin.rpartition(":")[0] in shown]
    if healthy is None:
        healthy = sorted(p for pattern in HEALTHY_FOLDERS for p in base.glob(pattern))
    result = Report(rules=len(focus), healthy=len(healthy), checked=focus)
    problems += lint_static.check(focus, {r.id for r in rules} | {p.rule for p in problems})
    problems += unknown_formats(focus, checkpoints)
    knowledge = Knowledge.of(rules)
    problems += lint_examples.check(focus, knowledge, hooks, healthy, ci)
    find = hooks.findings(knowledge) if hooks.findings else None
    titles = {r.id: r.title for r in rules}
    problems += host_examples.check(focus, find, titles, sorted(base.glob(HEALTHY_HOSTS)), ci)
    result.examples = sum(len(v) for r in focus for v in r.examples.values())
    if not files or any(p.parent.name == FOLDER for p in chosen or ()):
        said, result.hangs = lint_hangs(folder, base)
        shown |= {p.file for p in said}
        problems += said
    result.problems = sorted(p for p in problems if p.file in shown or (not p.rule and p.file == str(folder)))
    return result


def _rules(
    folder: Path, files: Sequence[Path], chosen: Sequence[Path] | None, problems: list[Problem]
) -> list[Rule]:
    """The rules of all files; where only some are looked at, the others as they are compiled, if nothing is wrong there."""
    base = folder.parent
    try:
        known = load_knowledge(folder).rules if chosen else ()
    except UserError:
        known = ()
    if not known or chosen is None:
        return read_rules(files, problems, base)
    own = read_rules([f for f in files if f in chosen], problems, base)
    shown = {str(f.relative_to(base)) for f in chosen if f.is_relative_to(base)}
    others = {r.id: r for r in known if r.origin.rpartition(":")[0] not in shown}
    for rule in own:
        if rule.id in others:
            problems.append(origin_problem(rule, f"id {rule.id} is taken by {others[rule.id].origin}"))
    return sorted([*others.values(), *(r for r in own if r.id not in others)], key=lambda r: r.id)


def summary(result: Report) -> str:
    count = len(result.errors)
    looked = f"{result.rules} rules, {result.examples} examples, {result.healthy} healthy logs"
    looked += f", {result.hangs} scenes of hangs" if result.hangs else ""
    return f"{looked}: {'no problem' if not count else f'{count} problem' + ('s' if count > 1 else '')}"


def main(arguments: Iterable[str] | None = None) -> int:
    """The command line of ``python -m mtpdoctor.kb.lint``; 1 when there is any error."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m mtpdoctor.kb.lint", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="only the rules of these files")
    parser.add_argument("--folder", type=Path, help="the knowledge folder")
    args = parser.parse_args(None if arguments is None else list(arguments))
    result = report(args.folder, args.files or None)
    for problem in result.problems:
        print(problem)
    print(summary(result), file=sys.stderr)
    return 1 if result.errors else 0


__all__ = ["Hooks", "Report", "lint", "main", "origin_problem", "report", "summary"]

if __name__ == "__main__":
    raise SystemExit(main())
