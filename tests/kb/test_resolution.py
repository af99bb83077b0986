"""What SGLang makes of typed arguments, from data: the interpreter and the knowledge's own steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.case import build_case
from mtpdoctor.diagnose.preflight import foreseen
from mtpdoctor.facts import UNKNOWN, Facts, Source, make_facts
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.kb.condition_source import parse_condition
from mtpdoctor.kb.lint import lint
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.resolution import Resolution, Resolved, by_kind, resolved
from mtpdoctor.kb.resolution_source import read_resolution, resolution_in, resolution_out
from mtpdoctor.launch.document import read_launch

STEPS = """
order:
- releases: ">=0.5.10"
  blocks: [gpu, page]
- releases: "*"
  blocks: [gpu]
blocks:
  gpu:
  - set: {step.gpu: other}
    first:
    - when: {host.gpu.sm: {ge: 90, lt: 100}}
      set: {step.gpu: sm90}
    - when: {host.gpu.sm: present}
      set: {step.gpu: other}
  - when: {arg.attention_backend: absent}
    first:
    - when: {step.gpu: sm90}
      set: {attention_backend: fa3}
    - set: {attention_backend: triton}
  page:
  - releases: "<0.5.12"
    when: {arg.page_size: absent}
    set: {page_size: 1}
  - when: {arg.attention_backend: flashmla}
    set: {page_size: 64, step.was: $arg.page_size}
  - when: {arg.page_size: {gt: 1}}
    set: {chunked_prefill_size: "{arg.chunked_prefill_size|floor_multiple:$arg.page_size}"}
"""


def steps(tmp_path, text: str = STEPS) -> Resolution:
    file = tmp_path / "steps.yaml"
    file.write_text(text)
    problems: list[Any] = []
    out = read_resolution([file], problems)
    assert problems == []
    return out


def facts(**arguments: Any) -> Facts:
    base = {"arg.attention_backend": None, "arg.page_size": None, "arg.chunked_prefill_size": "1000"}
    base |= {"arg.tp_size": 1, "release": arguments.pop("release", "0.5.11")}
    if (sm := arguments.pop("sm", None)) is not None:
        base["host.gpu.sm"] = sm
    base |= {f"arg.{name}": value for name, value in arguments.items()}
    return make_facts(base, Source.COMMAND)


def test_steps_run_in_order_over_what_earlier_ones_set(tmp_path):
    out = resolved(facts(sm=90, attention_backend="flashmla", page_size="16"), steps(tmp_path))
    assert out.facts["arg.page_size"] == 64
    assert out.facts["step.was"] == "16"  # taken before the step's own changes
    assert out.facts["arg.chunked_prefill_size"] == 960
    assert "steps.yaml" in out.decided["arg.page_size"].origin


def test_only_the_first_branch_that_holds_counts(tmp_path):
    known = steps(tmp_path)
    assert resolved(facts(sm=90), known).facts["arg.attention_backend"] == "fa3"
    assert resolved(facts(sm=120), known).facts["arg.attention_backend"] == "triton"
    assert resolved(facts(sm=120, attention_backend="fa3"), known).facts["arg.attention_backend"] == "fa3"


def test_an_unknown_condition_makes_the_argument_unknown_and_names_the_fact(tmp_path):
    out = resolved(facts(), steps(tmp_path))
    assert out.facts.look("arg.attention_backend") is UNKNOWN
    asked = parse_condition({"arg.attention_backend": "fa3"})
    assert out.missing(asked) == ("host.gpu.sm",)


KINDS = """
kinds:
- {model.architecture: A, model.is_mla: false}
- {model.architecture: B, model.is_mla: true}
order:
- {releases: "*", blocks: [a]}
blocks:
  a:
  - when: {model.architecture: A}
    set: {page_size: 64, attention_backend: fa3}
  - when: {model.architecture: B}
    set: {page_size: 64, attention_backend: triton}
"""


def test_what_holds_for_every_kind_of_model_is_known_without_the_model(tmp_path):
    out = resolved(facts(), steps(tmp_path, KINDS))
    assert out.facts["arg.page_size"] == 64
    assert out.facts.look("arg.attention_backend") is UNKNOWN
    assert out.missing(parse_condition({"arg.attention_backend": "fa3"})) == ("model.architecture",)
    known = facts().merged(make_facts({"model.architecture": "B"}, Source.MODEL))
    assert resolved(known, steps(tmp_path, KINDS)).facts["arg.attention_backend"] == "triton"
    assert [one.facts["model.is_mla"] for one in by_kind(facts(), steps(tmp_path, KINDS))] == [False, True]


def test_blocks_and_steps_of_other_releases_do_not_run(tmp_path):
    known = steps(tmp_path)
    assert resolved(facts(sm=90, release="0.5.12"), known).facts.look("arg.page_size") is None
    assert resolved(facts(sm=90, release="0.5.11"), known).facts["arg.page_size"] == 1
    assert resolved(facts(sm=90, release="0.5.9"), known).facts.look("arg.page_size") is None


def test_without_a_release_nothing_is_resolved(tmp_path):
    given_facts = make_facts({"arg.attention_backend": None}, Source.COMMAND)
    assert resolved(given_facts, steps(tmp_path)) == Resolved(given_facts)


def test_an_argument_the_release_does_not_have_is_absent(tmp_path):
    out = resolved(facts(sm=90), steps(tmp_path))
    assert out.facts.look("arg.no_such_argument") is None
    assert out.facts.look("step.never_set") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blocks: {a: [{when: {arg.x: 1}}]}", "needs `set:`"),
        ("blocks: {a: [{set: {X-Y: 1}}]}", "field names"),
        ("blocks: {a: [{set: {x: $nonsense}}]}", "unknown fact"),
        ("blocks: {a: [{set: {x: '{arg.y|nope}'}}]}", "unknown filter"),
        ("blocks: {a: [{sets: {x: 1}}]}", "unknown key"),
        ("order: [{releases: '*', blocks: [b]}]", "no block"),
        ("order: [{releases: 'x', blocks: []}]", "not a release"),
        ("steps: []", "unexpected"),
    ],
)
def test_errors_name_the_line(tmp_path, text, said):
    file = tmp_path / "bad.yaml"
    file.write_text(text + "\n")
    problems: list[Any] = []
    read_resolution([file], problems)
    assert any(said in p.message and p.line == 1 for p in problems), problems


def test_the_cached_form_is_equal():
    own = load_knowledge(use_cache=False).resolution
    assert resolution_in(resolution_out(own)) == own
    assert load_knowledge().resolution == own


# --- the knowledge's own steps ----------------------------------------------------------------------


def launch(command: str, release: str, gpu: str = "4xsm90@80") -> Facts:
    case = build_case(
        document=read_launch(f"python -m sglang.launch_server --model-path M {command}"),
        command_where="test",
        host=parse_gpu_spec(gpu),
        release=release,
    )
    return resolved(case.facts, load_knowledge().resolution).facts


@pytest.mark.parametrize(
    ("command", "release", "expected"),
    [
        (
            "--speculative-algorithm NEXTN",
            "0.5.9",
            {"speculative_algorithm": "EAGLE", "max_running_requests": 48},
        ),
        ("--speculative-algorithm nextn", "0.5.16", {"speculative_algorithm": "EAGLE"}),
        ("--attention-backend trtllm_mha", "0.5.16", {"page_size": 64}),
        ("--attention-backend cutlass_mla --page-size 16", "0.5.19", {"page_size": 128}),
        ("--attention-backend triton", "0.5.23", {"chunked_prefill_size": 8192}),
        ("--enable-dp-attention --dp 4 --tp 4", "0.5.20", {"chunked_prefill_size": 2048}),
        ("--enable-dp-attention --dp 4 --tp 4", "0.5.23", {"attn_dp_size": "4", "dp_size": 1}),
        ("--enable-dp-attention", "0.5.16", {"enable_dp_attention": False}),
        ("--pp-size 2", "0.5.16", {"disable_overlap_schedule": True}),
        ("--disaggregation-mode decode", "0.5.16", {"disable_radix_cache": True}),
        ("--speculative-algorithm NGRAM", "0.5.16", {"speculative_num_draft_tokens": 12}),
    ],
)
def test_arguments_come_out_as_sglang_resolves_them(command, release, expected):
    out = launch(command, release)
    assert {name: out.look(f"arg.{name}") for name in expected} == expected


def test_the_model_decides_the_draft_and_is_asked_for():
    out = launch("--speculative-algorithm EAGLE", "0.5.16")
    assert out.look("arg.speculative_num_steps") is UNKNOWN  # Llama drafts a tree, others a chain
    assert out.look("arg.max_running_requests") == 48


def foreseen_rules(command: str, release: str, gpu: str) -> dict[str, bool]:
    case = build_case(
        document=read_launch(f"python -m sglang.launch_server --model-path M {command}"),
        host=parse_gpu_spec(gpu),
        release=release,
    )
    return {f.rule.id: f.certain for f in foreseen(load_knowledge(), case.facts)}


def test_what_every_model_would_suffer_is_certain_and_what_none_would_is_not_said():
    found = foreseen_rules("--attention-backend trtllm_mla --tp 2", "0.5.16", "2xsm90@80")
    assert found["MTP0282"] is True  # no Blackwell GPU, whatever the model
    assert "MTP0362" not in found  # whatever the model makes of the page size, it divides the chunk
    found = foreseen_rules("--speculative-algorithm NEXTN", "0.5.10.post1", "2xsm90@80")
    assert found["MTP0200"] is False  # for hybrid models only


WORDS = """--tp 4
--attention-backend fa3
--attention-backend trtllm_mha
--page-size 64
--disable-radix-cache
--speculative-algorithm EAGLE
--speculative-eagle-topk 4
--speculative-num-steps 3
--pp-size 2
--enable-hierarchical-cache
--kv-cache-dtype fp8_e5m2
--enable-deterministic-inference"""
words = st.sampled_from(WORDS.splitlines())


@settings(deadline=None, max_examples=25)
@given(st.lists(words, unique=True), st.sampled_from(["0.4.6", "0.5.9", "0.5.12", "0.5.16", "0.5.23"]))
def test_knowing_more_never_contradicts(command, release):
    """An argument that is decided without the GPU is decided the same with any GPU."""
    text = " ".join(command)
    case = build_case(
        document=read_launch(f"python -m sglang.launch_server --model-path M {text}"), release=release
    )
    less = resolved(case.facts, load_knowledge().resolution).facts
    for gpu in ("1xsm80@80", "8xsm90@140", "4xsm100@178", "2xsm120@95"):
        more = launch(text, release, gpu)
        for name in less:
            if name.startswith(("arg.", "step.")) and less.look(name) is not UNKNOWN:
                assert more.look(name) == less.look(name), (name, gpu)


def test_lint_reads_the_resolution_too(tmp_path):
    folder = tmp_path / "knowledge"
    (folder / "resolution").mkdir(parents=True)
    file = folder / "resolution" / "steps.yaml"
    file.write_text("blocks:\n  a:\n  - set: {page_sizes!: 1}\n")
    assert [(p.file, p.line) for p in lint(folder)] == [("knowledge/resolution/steps.yaml", 3)]
    assert [(p.file, p.line) for p in lint(folder, [file])] == [("knowledge/resolution/steps.yaml", 3)]
    file.write_text("blocks:\n  a:\n  - set: {page_size: 1}\n")
    assert lint(folder, [file]) == []
