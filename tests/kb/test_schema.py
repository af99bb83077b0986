"""The JSON Schema for editors and the loader agree."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import mtpdoctor.kb
from mtpdoctor.kb import fact_names, parse_examples, rule_words
from mtpdoctor.kb.hangs_source import hang_files, read_hangs
from mtpdoctor.kb.load import knowledge_files, knowledge_folder
from mtpdoctor.kb.yaml_source import Problem, parse_yaml

from .rules import parsed, rule_text
from .test_parse import BROKEN, GOOD

SCHEMA = json.loads((Path(mtpdoctor.kb.__file__).parent / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# what only the loader can know: references between parts, contents of regexes, YAML itself
BEYOND_SCHEMA = {
    "duplicate key", "no literal", "bad regex", "unknown fact", "ambiguous bool", "no such group",
    "log in predicts",
    "alias", "placeholder", "bad filter", "bad number", "example release",
}  # fmt: skip


def errors(text: str) -> list[str]:
    problems: list[Problem] = []
    node = parse_yaml(text, "x.yaml", problems)
    if node is None:
        return [str(p) for p in problems]
    return [e.message for e in VALIDATOR.iter_errors(node.plain())]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", knowledge_files(knowledge_folder()), ids=lambda p: p.name)
def test_all_knowledge_fits_the_schema(path: Path) -> None:
    assert errors(path.read_text(encoding="utf-8")) == []


HANGS = json.loads((Path(mtpdoctor.kb.__file__).parent / "hangs.schema.json").read_text())
HANG = """\
causes:
- id: stuck-here
  title: It is stuck
  stages: [warmup]
  if: {several: true}
  seen: [{last: 'stuck', weight: 3}]
  against: [{line: 'goes on'}]
  tell: "it does not go on"
  do: "end it"
  examples: {first: [{stage: warmup, lines: ["stuck"], ranks: 2}]}
"""


def hang_errors(text: str) -> list[str]:
    node = parse_yaml(text, "x.yaml", problems := list[Problem]())
    assert node is not None and problems == []
    return [e.message for e in jsonschema.Draft202012Validator(HANGS).iter_errors(node.plain())]


@pytest.mark.parametrize("path", hang_files(knowledge_folder()), ids=lambda p: p.name)
def test_the_knowledge_of_hangs_fits_its_schema(path: Path) -> None:
    assert hang_errors(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("id: stuck-here", "id: Stuck"), ("stages: [warmup]", "stages: [later]"), ("several: true", "several: 3"),
        ("last: 'stuck'", "lost: 'stuck'"), ("weight: 3", "weight: 20"), ('do: "end it"', 'do: "end it."'),
        ("against: [{line: 'goes on'}]", "against: []"), ('tell: "it does not go on"', 'told: "it"'), ("ranks: 2", "rank: 2"),
    ],
)  # fmt: skip
def test_its_schema_and_its_reader_refuse_the_same(right: str, wrong: str, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(HANGS)
    assert hang_errors(HANG) == [] and right in HANG
    broken = tmp_path / "broken.yaml"
    broken.write_text(HANG.replace(right, wrong))
    assert hang_errors(broken.read_text()) != []
    stages = knowledge_folder() / "hangs" / "stages.yaml"
    if right != "ranks: 2":  # the scenes of examples are the lint's
        assert read_hangs([stages, broken], problems := list[Problem]()) is None and problems


def test_a_full_rule_fits_both(tmp_path: Path) -> None:
    assert parsed(tmp_path, rule_text(GOOD))[1] == []
    assert errors("rules:\n" + rule_text(GOOD)) == []


@pytest.mark.parametrize("name", sorted(set(BROKEN) - BEYOND_SCHEMA))
def test_the_schema_refuses_what_the_loader_refuses(name: str) -> None:
    assert errors("rules:\n" + rule_text(BROKEN[name][0]))


def test_both_know_the_same_keys_and_words() -> None:
    defs = SCHEMA["$defs"]
    rule = defs["rule"]["properties"]
    assert set(rule) == set(rule_words.RULE_KEYS)
    assert set(defs["rule"]["required"]) == set(rule_words.REQUIRED)
    assert rule["root"]["enum"] == list(rule_words.ROOTS)
    assert rule["severity"]["enum"] == list(rule_words.SEVERITIES)
    assert rule["evidence"]["enum"] == list(rule_words.CONFIDENCE)
    assert set(defs["pattern"]["oneOf"][1]["properties"]) == set(rule_words.PATTERN_KEYS)
    generated, written = defs["remedy"]["oneOf"]
    assert generated["properties"]["generate"]["enum"] == list(rule_words.GENERATORS)
    assert set(written["properties"]) | {"generate"} == set(rule_words.REMEDY_KEYS)
    examples = defs["examples"]["properties"]
    kinds = defs["examples"]["properties"]
    assert set(kinds) == set(parse_examples.EXAMPLE_KEYS)
    for kind in kinds:
        keys = getattr(parse_examples, f"{kind.upper()}_KEYS")
        assert set(examples[kind]["items"]["properties"]) == set(keys)
    names = jsonschema.Draft202012Validator(defs["condition"]["propertyNames"])
    assert all(names.is_valid(name) for name in fact_names.CLOSED | {"flag.tp_size", "env.A_B", "all", "not"})
