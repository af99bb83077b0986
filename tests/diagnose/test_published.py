"""A remedy that serves another checkpoint names one: published, loaded by the release, computed by the GPU, and of a size that fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import read_rules
from mtpdoctor.kb.yaml_source import Problem
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

KNOWN = own_knowledge().checkpoints
IDS = {one.id: (model, one) for model in KNOWN.models for one in model.checkpoints}
RULE = """\
rules:
- id: MTP9999
  title: These weights cannot be served
  role: cause
  stage: weights
  source: sglang
  evidence: stated
  releases: "*"
  match: ['these weights cannot be served at all']
  cause: A test.
  remedies:
  - title: Take another checkpoint of the model
    checkpoints: %s
    safety: manual
    why: it can be served
"""
FAILURE = """\
[2026-05-04 10:11:30 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_loader/loader.py", line 9, in load
    raise ValueError(text)
ValueError: these weights cannot be served at all
"""


@pytest.fixture(scope="module")
def knowledge_with(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Knowledge] = {}

    def of(wanted: str) -> Knowledge:
        if wanted not in made:
            folder = tmp_path_factory.mktemp("k")
            (folder / "rule.yaml").write_text(RULE % wanted)
            problems: list[Problem] = []
            rules = read_rules([folder / "rule.yaml"], problems)
            assert problems == []
            made[wanted] = Knowledge.of(rules, own_knowledge().resolution, KNOWN)
        return made[wanted]

    return of


def fixes_of(
    knowledge: Knowledge, command: str, gpu: str | None, release: str = "0.5.16", text: str | None = None
) -> list[dict[str, Any]]:
    log = (f"$ {command}\n" if text is None else "") + FAILURE
    given = Given(
        release=release,
        host=parse_gpu_spec(gpu) if gpu else None,
        document=read_launch(text) if text is not None else None,
    )
    report = to_json(diagnose(reading_from_text(log, knowledge.literals), knowledge, given))
    found = report["diagnoses"][0]
    assert found["rule"] == "MTP9999"
    return list(found["fixes"])


def edits(fix: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(e["op"], e["name"], e["value"]) for e in fix["edits"]]


LAUNCH = "python -m sglang.launch_server --model-path"


def test_the_best_that_fits_is_named_with_its_size(knowledge_with: Any) -> None:
    (fix,) = fixes_of(
        knowledge_with("{formats: [fp8, awq]}"), f"{LAUNCH} Qwen/Qwen3-32B --tp 1 --port 8000", "1xsm90@80"
    )
    assert fix["title"] == "Take another checkpoint of the model: Qwen/Qwen3-32B-FP8"
    assert edits(fix) == [("set", "--model-path", "Qwen/Qwen3-32B-FP8")]
    assert fix["command"] == f"{LAUNCH} Qwen/Qwen3-32B-FP8 --tp 1 --port 8000"
    assert fix["safety"] == "risky" and fix["verified"] == "rules" and "GiB are downloaded" in fix["risk"]
    assert "Qwen/Qwen3-32B-AWQ (AWQ, 4 bits, about 18 GiB by its parameters)" in " ".join(fix["notes"])


@pytest.mark.parametrize(
    ("gpu", "named"),
    [
        ("1xsm90@80", "Qwen/Qwen3-32B-FP8"),
        ("1xsm86@24", "Qwen/Qwen3-32B-AWQ"),  # no FP8 units, and no room for 32 GiB
        ("1xsm100@180", "nvidia/Qwen3-32B-NVFP4"),
    ],
)
def test_the_gpu_decides(knowledge_with: Any, gpu: str, named: str) -> None:
    (fix,) = fixes_of(knowledge_with("{formats: [nvfp4, fp8, awq]}"), f"{LAUNCH} Qwen/Qwen3-32B", gpu)
    assert ("set", "--model-path", named) in edits(fix)


def test_more_of_the_gpus_are_used_where_one_is_too_small(knowledge_with: Any) -> None:
    (fix,) = fixes_of(knowledge_with("{formats: [bf16]}"), f"{LAUNCH} /models/Qwen3-32B-AWQ", "4xsm86@48")
    assert edits(fix) == [("set", "--model-path", "Qwen/Qwen3-32B"), ("set", "--tp-size", "2")]


def test_where_no_size_can_fit_nothing_is_offered(knowledge_with: Any) -> None:
    """The rule's only remedy cannot be done here; what is worked out for the kind of failure may stand in its place."""
    found = fixes_of(
        knowledge_with("{formats: [bf16]}"), f"{LAUNCH} deepseek-ai/DeepSeek-R1-W4A16", "1xsm90@80"
    )
    assert not any("Take another checkpoint" in fix["title"] for fix in found)


def test_what_fits_but_is_not_known_is_said_so(knowledge_with: Any) -> None:
    (fix,) = fixes_of(knowledge_with("{formats: [gptq]}"), f"{LAUNCH} zai-org/GLM-4.6", "8xsm90@80")
    assert fix["safety"] == "manual" and fix["edits"] == []
    assert any("no published checkpoint of GLM-4.6" in note for note in fix["notes"])


def test_weights_in_host_memory_are_not_measured_by_the_gpus(knowledge_with: Any) -> None:
    command = f"{LAUNCH} /m/DeepSeek-V3 --kt-cpuinfer 60 --kt-weight-path /m/cpu"
    (fix,) = fixes_of(knowledge_with("{formats: [bf16]}"), command, "1xsm86@24")
    assert (fix["title"], fix["edits"]) == ("Take another checkpoint of the model", [])


def test_a_model_that_is_not_known_leaves_the_remedy_as_it_is(knowledge_with: Any) -> None:
    (fix,) = fixes_of(
        knowledge_with("{formats: [bf16]}"), f"{LAUNCH} mine/Qwen3-8B-story-teller", "1xsm90@80"
    )
    assert (fix["title"], fix["safety"], fix["edits"]) == (
        "Take another checkpoint of the model",
        "manual",
        [],
    )


def test_options_of_the_old_weights_go(knowledge_with: Any) -> None:
    old = f"{LAUNCH} /models/Qwen3-14B-AWQ --quantization awq_marlin --revision abc --load-format gguf --dtype half"
    (fix,) = fixes_of(knowledge_with("{formats: [fp8-block]}"), old, "1xsm90@80")
    assert fix["command"] == f"{LAUNCH} Qwen/Qwen3-14B-FP8 --dtype half"


def test_a_draft_from_the_same_path_moves_along(knowledge_with: Any) -> None:
    speculative = "--speculative-algorithm NEXTN --speculative-draft-model-path"
    (fix,) = fixes_of(
        knowledge_with("{formats: [fp8-block]}"),
        f"{LAUNCH} /m/Qwen3.5-27B {speculative} /m/Qwen3.5-27B",
        "1xsm90@80",
    )
    assert f"{speculative} Qwen/Qwen3.5-27B-FP8" in fix["command"]


def test_weights_without_the_layers_that_draft_are_left_out(knowledge_with: Any) -> None:
    command = f"{LAUNCH} Qwen/Qwen3-Next-80B-A3B-Instruct --tp 2"
    wanted = knowledge_with("{formats: [nvfp4, fp8]}")
    plain = fixes_of(wanted, command, "2xsm100@180")[0]
    drafting = fixes_of(wanted, f"{command} --speculative-algorithm NEXTN", "2xsm100@180")[0]
    assert ("set", "--model-path", "nvidia/Qwen3-Next-80B-A3B-Instruct-NVFP4") in edits(plain)
    assert ("set", "--model-path", "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8") in edits(drafting)


def test_the_original_is_the_one_the_others_were_made_from(knowledge_with: Any) -> None:
    (fix,) = fixes_of(knowledge_with("{original: true}"), f"{LAUNCH} /m/Qwen3-8B-Q4_K_M.gguf", "1xsm90@80")
    assert ("set", "--model-path", "Qwen/Qwen3-8B") in edits(fix)


def test_the_format_in_use_helps_only_from_makers_that_are_named(knowledge_with: Any) -> None:
    command = f"{LAUNCH} someone/Qwen3-14B-NVFP4"
    (fix,) = fixes_of(knowledge_with("{formats: [nvfp4, fp8]}"), command, "1xsm120@32")
    assert ("set", "--model-path", "Qwen/Qwen3-14B-FP8") in edits(fix)
    (fix,) = fixes_of(knowledge_with("{formats: [nvfp4, fp8], makers: [nvidia]}"), command, "1xsm120@32")
    assert ("set", "--model-path", "nvidia/Qwen3-14B-NVFP4") in edits(fix)


def test_smaller_is_a_remedy_of_its_own_beside_the_others(knowledge_with: Any) -> None:
    wanted = knowledge_with("{smaller: true}")
    first, second = fixes_of(wanted, f"{LAUNCH} Qwen/Qwen3-32B", "1xsm90@80")
    assert first["title"] == "Serve a quantized checkpoint of the model: Qwen/Qwen3-32B-FP8"
    assert second["title"] == "Take another checkpoint of the model" and second["edits"] == []
    (only,) = fixes_of(wanted, f"{LAUNCH} Qwen/Qwen3-32B", None)  # nobody knows what fits
    assert only["title"] == "Take another checkpoint of the model"


@pytest.mark.parametrize(
    "text",
    [
        "services:\n  llm:\n    image: lmsysorg/sglang:v0.5.16\n    command: python3 -m sglang.launch_server --model-path %s --tp 1\n",
        "docker run --gpus all lmsysorg/sglang:v0.5.16 python3 -m sglang.launch_server --model-path %s --tp 1",
        "sglang serve --model-path %s --tp 1",
    ],
)
def test_the_edit_is_made_in_place_in_any_form(knowledge_with: Any, text: str) -> None:
    found = fixes_of(
        knowledge_with("{formats: [fp8-block]}"), "", "1xsm90@80", text=text % "/models/Qwen3-32B"
    )
    assert (text % "Qwen/Qwen3-32B-FP8").split("\n    ")[-1].strip() in (
        found[0]["diff"] or found[0]["command"]
    )


@given(
    name=st.sampled_from(sorted(IDS)),
    gpu=st.sampled_from(["1xsm75@16", "1xsm86@24", "2xsm89@48", "8xsm90@80", "8xsm90@140", "1xsm120@32", "8xsm100@180"]),
    wanted=st.sampled_from(["{formats: [bf16, fp8, int4]}", "{formats: [nvfp4, awq]}", "{original: true}", "{smaller: true}"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_what_is_named_is_published_another_and_fits(
    knowledge_with: Any, name: str, gpu: str, wanted: str
) -> None:
    count, memory = int(gpu.partition("x")[0]), float(gpu.partition("@")[2])
    for fix in fixes_of(knowledge_with(wanted), f"{LAUNCH} {name}", gpu):
        for op, option, value in edits(fix):
            if (op, option) == ("set", "--model-path"):
                model, one = IDS[value or ""]
                assert value != name and model == IDS[name][0]
                assert KNOWN.gib_of(model, one) < count * memory
                assert fix["safety"] == "risky" and fix["risk"]


def test_the_knowledge_itself_names_them() -> None:
    asking = [r for rule in own_knowledge().rules for r in rule.remedies if r.checkpoints is not None]
    assert len(asking) > 120
