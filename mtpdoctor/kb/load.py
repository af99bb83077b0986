"""Loading the knowledge: from its YAML files, or from the compiled cache of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.errors import UserError
from mtpdoctor.kb import cache
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.paths import knowledge_folder

if TYPE_CHECKING:
    from mtpdoctor.kb.types import Rule
    from mtpdoctor.kb.yaml_source import Problem

__all__ = [
    "Knowledge",
    "KnowledgeError",
    "knowledge_files",
    "knowledge_folder",
    "load_knowledge",
    "origin_problem",
    "read_rules",
]

_SKIPPED = {"releases", "resolution", "hangs", "checkpoints"}  # data about releases and launches, not rules


class KnowledgeError(UserError):
    """The knowledge has errors; ``problems`` lists all of them, each with file and line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} error{'s' if count != 1 else ''} in the knowledge"
        super().__init__(
            "\n".join([f"{head}:", *(f"  {p}" for p in self.problems)]), hint="see docs/knowledge-format.md"
        )


def knowledge_files(folder: Path) -> list[Path]:
    """The YAML files with rules under a folder, sorted."""
    found: list[Path] = []
    for base, folders, names in os.walk(folder):
        top = Path(base) == folder
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not (top and f in _SKIPPED))
        found.extend(Path(base, n) for n in names if n.endswith((".yaml", ".yml")) and not n.startswith("."))
    return sorted(found)


def read_rules(files: Iterable[Path], problems: list[Problem], base: Path | None = None) -> list[Rule]:
    """The rules of YAML files in order of id, without those that have a problem.

    Problems (also duplicate ids and unknown ids in ``explains`` or ``also``) are appended; paths in
    them are relative to ``base``.
    """
    from mtpdoctor.kb.parse import RuleParser
    from mtpdoctor.kb.yaml_source import Problem, parse_yaml

    by_id: dict[str, Rule] = {}
    for path in files:
        name = _shown(path, base)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            problems.append(Problem(name, 1, f"not UTF-8: {error.reason} at byte {error.start}"))
            continue
        except OSError as error:
            problems.append(Problem(name, 1, f"cannot be read: {error.strerror or error}"))
            continue
        root = parse_yaml(text, name, problems)
        if root is None:
            continue
        for rule in RuleParser(name, problems).rules(root):
            other = by_id.setdefault(rule.id, rule)
            if other is not rule:
                problems.append(origin_problem(rule, f"id {rule.id} is taken by {other.origin}"))
    return [by_id[i] for i in sorted(by_id)]


def origin_problem(rule: Rule, message: str, line: int | None = None, level: str = "error") -> Problem:
    """A problem of a rule, at its own line or at ``line`` of its file."""
    from mtpdoctor.kb.yaml_source import Problem

    file, _, own = rule.origin.rpartition(":")
    return Problem(file, int(own) if line is None else line, message, rule.id, level)


def _shown(path: Path, base: Path | None) -> str:
    try:
        return str(path.relative_to(base)) if base else str(path)
    except ValueError:
        return str(path)


def load_knowledge(
    folder: Path | None = None, *, extra: Path | None = None, use_cache: bool = True
) -> Knowledge:
    """The rules of ``folder`` (default: :func:`mtpdoctor.paths.knowledge_folder`) and of an ``extra`` folder of one's own.

    Raises KnowledgeError listing every problem, UserError when a folder is missing.
    """
    from mtpdoctor.kb.checkpoints_source import checkpoint_files, read_checkpoints
    from mtpdoctor.kb.resolution_source import read_resolution, resolution_files

    folders = [Path(folder) if folder is not None else knowledge_folder()]
    if extra is not None:
        folders.append(Path(extra))
    for each in folders:
        if not each.is_dir():
            raise UserError(f"no folder of knowledge: {each}")
    files = [path for each in folders for path in knowledge_files(each)]
    steps = resolution_files(folders[0])
    published = [path for each in folders for path in checkpoint_files(each)]
    kept = cache.cache_file([each.resolve() for each in folders]) if use_cache else None
    key = cache.source_key([*files, *steps, *published]) if kept else ""
    if kept is not None:
        known = cache.read(kept, key)
        if known is not None:
            return known
    problems: list[Problem] = []
    rules = read_rules(files, problems, folders[0].parent)
    resolution = read_resolution(steps, problems, folders[0].parent)
    checkpoints = read_checkpoints(published, problems, folders[0].parent)
    if problems:
        raise KnowledgeError(sorted(problems))
    if kept is not None:
        cache.write(kept, key, rules, resolution, checkpoints)
    return Knowledge.of(rules, resolution, checkpoints)
