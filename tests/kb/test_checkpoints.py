"""Published checkpoints: what a name tells of the model, what lint refuses, and that the data holds together."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_knowledge import own_knowledge

import mtpdoctor.kb
from mtpdoctor.kb.checkpoints import Checkpoints
from mtpdoctor.kb.checkpoints_source import (
    checkpoint_files,
    checkpoints_in,
    checkpoints_out,
    read_checkpoints,
)
from mtpdoctor.kb.lint import lint
from mtpdoctor.kb.load import knowledge_folder
from mtpdoctor.kb.yaml_source import Problem, parse_yaml
from mtpdoctor.sglang.architectures import architectures

from .rules import rule_text, write

SCHEMA = json.loads((Path(mtpdoctor.kb.__file__).parent / "checkpoints.schema.json").read_text())
KNOWN = own_knowledge().checkpoints
ALL = [(model, one) for model in KNOWN.models for one in model.checkpoints]

FORMATS = """\
beside: [hf, v2]
formats:
  bf16: {words: 16 bits, bytes: 2.0, marks: [bf16]}
  fp8: {words: 8 bits, bytes: 1.0, method: fp8, family: eight, marks: [fp8], when: {host.gpu.sm: {ge: 89}}}
"""
MODELS = """\
models:
- base: Maker/Big-70B
  billions: 70
  checkpoints:
  - {id: Maker/Big-70B, format: bf16, seen: a page}
  - {id: Maker/Big-70B-FP8, format: fp8, gib: 66, seen: a page}
"""


def read(folder: Path, models: str = MODELS, formats: str = FORMATS) -> tuple[Checkpoints, list[str]]:
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    (folder / "checkpoints" / "formats.yaml").write_text(formats)
    (folder / "checkpoints" / "a_maker.yaml").write_text(models)
    problems: list[Problem] = []
    return read_checkpoints(checkpoint_files(folder), problems, folder), [str(p) for p in problems]


def test_sizes_are_published_or_worked_out(tmp_path: Path) -> None:
    known, problems = read(tmp_path)
    assert problems == []
    (model,) = known.models
    whole, eight = (known.gib_of(model, one) for one in model.checkpoints)
    assert 130 < whole < 131 and eight == 66


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("format: bf16", "format: bf17", "unknown format 'bf17' (did you mean bf16?)"),
        ("gib: 66", "gib: 0", "`gib` is a number above 0"),
        ("billions: 70", "billions: -1", "`billions` is a number above 0"),
        ("id: Maker/Big-70B-FP8", "id: maker/big-70b", "stands already in"),
        ("id: Maker/Big-70B-FP8", "id: Big-70B-FP8", "is no id of a repository"),
        ("gib: 66, seen: a page", "gib: 66", "say where the id was seen"),
        ("base: Maker/Big-70B", "base: Big", "is no id of a repository"),
        ("billions: 70", "billions: 70\n  size: 3", "unknown key 'size'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    _, problems = read(tmp_path, MODELS.replace(right, wrong))
    assert any(said in problem for problem in problems)


def test_lint_knows_the_formats_that_remedies_ask_for(tmp_path: Path) -> None:
    read(tmp_path)
    remedies = (
        "remedies: [{title: Take another, checkpoints: {formats: [%s]}, safety: manual, why: it loads}]"
    )
    for name, wrong in (("fp8", False), ("eight", False), ("fp9", True)):
        write(tmp_path, rule_text("match: ['long enough']\n" + remedies % name))
        said = [str(p) for p in lint(tmp_path, healthy=[])]
        assert any("unknown format 'fp9'" in p for p in said) is wrong


@pytest.mark.parametrize(
    ("path", "base", "kind"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "bf16"),
        ("/data/models/Qwen3-8B/", "Qwen/Qwen3-8B", "bf16"),
        ("/cache/hub/models--deepseek-ai--DeepSeek-R1/snapshots/0a1b2c", "deepseek-ai/DeepSeek-R1", "fp8-block"),
        ("unsloth/Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen/Qwen3-30B-A3B-Instruct-2507", "fp8-block"),
        ("someone/GLM-4.6-W4A16", "zai-org/GLM-4.6", "int4-ct"),
        ("gemma-3-27b-it-Q4_K_M.gguf", "google/gemma-3-27b-it", "gguf"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "bf16"),
    ],
)  # fmt: skip
def test_a_name_tells_model_and_format(path: str, base: str, kind: str) -> None:
    named = KNOWN.named(path)
    assert named is not None and (named.model.base, named.format) == (base, kind)


@pytest.mark.parametrize(
    "path", ["huihui/Qwen3-8B-abliterated", "Qwen3-8B-Base-sft", "/models/mine", "Qwen/Qwen9-8B", "", "/"]
)
def test_the_name_of_another_model_tells_nothing(path: str) -> None:
    assert KNOWN.named(path) is None


@given(
    one=st.sampled_from(ALL),
    before=st.sampled_from(["", "/", "/mnt/models/", "./", "a/b/c/"]),
    after=st.sampled_from(["", "/"]),
    low=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_checkpoint_is_known_by_its_name_wherever_it_lies(one, before, after, low) -> None:  # type: ignore[no-untyped-def]
    model, checkpoint = one
    name = checkpoint.name.lower() if low else checkpoint.name
    named = KNOWN.named(f"{before}{name}{after}")
    assert named is not None and named.model == model


@given(rest=st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789.-_", max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_ending_of_a_name_tells_this_model_or_nothing(rest: str) -> None:
    named = KNOWN.named(f"x/Qwen3-8B-{rest}")
    assert named is None or named.model.base == "Qwen/Qwen3-8B"


def test_the_data_holds_together() -> None:
    known = set(architectures())
    for model in KNOWN.models:
        assert model.architecture in known, model.base
        for one in model.checkpoints:
            assert 0.3 <= KNOWN.gib_of(model, one) * 2**30 / (model.billions * 1e9) <= 2.1, one.id
    assert checkpoints_in(checkpoints_out(KNOWN)) == KNOWN


@pytest.mark.parametrize("path", checkpoint_files(knowledge_folder()), ids=lambda p: p.name)
def test_the_data_fits_its_schema(path: Path) -> None:
    node = parse_yaml(path.read_text(encoding="utf-8"), path.name, [])
    assert node is not None
    jsonschema.Draft202012Validator(SCHEMA).validate(node.plain())
