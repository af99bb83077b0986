"""Writing small pieces of knowledge for tests."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import read_rules
from mtpdoctor.kb.types import Rule
from mtpdoctor.kb.yaml_source import Problem

HEAD = """\
- id: {id}
  title: A rule for tests
  role: cause
  stage: server_args
  source: sglang
  evidence: confirmed
  cause: Something is wrong.
"""


def rule_text(body: str, rule_id: str = "MTP0001") -> str:
    """A rule of the required fields and of ``body`` (YAML of further fields)."""
    return HEAD.format(id=rule_id) + indent(dedent(body).strip("\n"), "  ") + "\n"


def write(folder: Path, *rules: str, name: str = "rules.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("rules:\n" + "".join(rules), encoding="utf-8")
    return path


def parsed(folder: Path, *rules: str) -> tuple[list[Rule], list[Problem]]:
    """The good rules, and what is wrong with the others."""
    problems: list[Problem] = []
    rules_read = read_rules([write(folder, *rules)], problems, folder)
    return rules_read, problems


def knowledge(folder: Path, *rules: str) -> Knowledge:
    good, problems = parsed(folder, *rules)
    assert not problems, "\n".join(map(str, problems))
    return Knowledge.of(good)
