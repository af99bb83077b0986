"""What the tables of SGLang's messages and functions say of failures that no rule knows: of the releases known here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mtpdoctor.diagnose.engine import Given, diagnose
from mtpdoctor.kb.load import Knowledge, load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

SGLANG = "/opt/venv/lib/python3.12/site-packages/sglang"


def first(
    error: str, frames: str, release: str | None, command: str = "--tp 2", knowledge: Knowledge | None = None
) -> dict[str, Any]:
    """The first diagnosis of a launch that dies with ``error`` in ``frames`` (``file:line function``, outermost first)."""
    told = []
    for frame in ("srt/managers/scheduler.py:9999 run_scheduler_process", *frames.split("; ")):
        where, function = frame.split(" ")
        path, line = where.rsplit(":", 1)
        told += [f'  File "{SGLANG}/{path}", line {line}, in {function}', "    pass"]
    log = "\n".join(
        [
            f"$ python -m sglang.launch_server --model-path /m/Q {command}",
            "[2026-05-04 10:11:30 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            *told,
            error,
            "",
        ]
    )
    knowledge = knowledge if knowledge is not None else load_knowledge()
    reading = reading_from_text(log, knowledge.literals)
    report = json.loads(json.dumps(to_json(diagnose(reading, knowledge, Given(release=release)))))
    found: dict[str, Any] = report["diagnoses"][0]
    assert found["root"]["text"] == error
    return found


def titles(found: dict[str, Any], word: str) -> list[str]:
    return [fix["title"] for fix in found["fixes"] if word in fix["title"]]


def test_options_edits_and_the_end_of_a_check_are_known_without_a_source() -> None:
    found = first(
        "AssertionError: DeepEP MoE `auto` mode is not supported with DP Attention.",
        "srt/server_args.py:400 __post_init__",
        "0.4.8.post1",
        "--tp 2 --dp 2 --enable-dp-attention --enable-deepep-moe --deepep-mode auto",
    )
    steps = " ".join(found["next_steps"])
    assert "SGLang raises it in sglang/srt/server_args.py, ServerArgs.__post_init__ (" in steps
    assert "to 0.4.8.post1)" in steps
    assert "--deepep-mode (here auto)" in steps
    edits = {(e["op"], e["name"]) for fix in found["fixes"] for e in fix["edits"]}
    assert ("remove", "--enable-dp-attention") in edits
    assert {fix["safety"] for fix in found["fixes"] if fix["edits"]} == {"risky"}
    (upgrade,) = [fix for fix in found["fixes"] if fix["title"].startswith("Upgrade SGLang")]
    assert upgrade["title"] == "Upgrade SGLang from 0.4.8.post1 to 0.4.9 or later"
    assert upgrade["run"] == ['pip install --upgrade "sglang>=0.4.9"']
    assert "0.4.8.post1 is the last release with this message" in upgrade["why"]
    assert "whether that mends this failure is not known" in upgrade["why"], "a check that went is no proof"


def test_a_check_of_what_was_given_is_no_reason_for_another_release() -> None:
    for release in ("0.5.20", "0.5.23"):
        found = first(
            "ValueError: --radix-cache-backend='foo' is not registered. Registered backends: []. External backends must call "
            "register_radix_cache_backend(...) at import time.",
            "srt/mem_cache/registry.py:235 create_tree_cache",
            release,
            knowledge=Knowledge.of(()),
        )
        assert (
            found["fixes"] and not titles(found, "Upgrade SGLang") and not titles(found, "development image")
        ), release


def test_a_check_that_stands_unchanged_is_no_reason_to_upgrade() -> None:
    found = first(
        "ValueError: Must provide either named_tensors or both flattened_tensor and metadata",
        "srt/weight_sync/tensor_bucket.py:56 __init__",
        "0.5.15",
    )
    assert titles(found, "Upgrade SGLang") == []
    said = " ".join(found["next_steps"])
    assert (
        "unchanged in all releases up to 0.5.23; whether a later release gives it other values is not known"
        in said
    )


def test_an_error_of_programming_names_what_changed_and_where_to_go_back() -> None:
    found = first(
        "AttributeError: 'Merged' object has no attribute 'frobnicated'",
        "srt/models/qwen3_next.py:1200 _make_packed_weight_loader",
        "0.5.14",
    )
    assert titles(found, "Upgrade SGLang") == ["Upgrade SGLang from 0.5.14 to 0.5.23"]
    assert titles(found, "go back") == [
        "Or go back to SGLang 0.5.10.post1, the last with another form of the code that fails"
    ]
    (upgrade,) = [fix for fix in found["fixes"] if fix["title"].startswith("Upgrade SGLang")]
    assert "changed in 0.5.22" in upgrade["why"] and "is not known" in upgrade["why"]


def test_nobody_is_sent_back_to_a_release_without_the_options() -> None:
    found = first(
        "AttributeError: 'Merged' object has no attribute 'frobnicated'",
        "srt/models/qwen3_next.py:1200 _make_packed_weight_loader",
        "0.5.14",
        "--cuda-graph-backend-prefill disabled",
    )
    assert titles(found, "go back") == []


def test_where_the_function_is_the_same_what_calls_it_is_looked_at() -> None:
    found = first(
        "KeyError: 'frobnicated'",
        "srt/models/qwen3_next.py:1 forward; srt/model_executor/forward_batch_info.py:1400 __getitem__",
        "0.5.20",
    )
    (upgrade,) = [fix for fix in found["fixes"] if fix["title"].startswith("Upgrade SGLang")]
    assert "is the same in all releases up to 0.5.23; what calls it differs" in upgrade["why"]


def test_no_release_no_claim() -> None:
    found = first(
        "KeyError: 'frobnicated'", "srt/model_executor/forward_batch_info.py:999999 __getitem__", None
    )
    assert not any("at least to" in fix["title"] for fix in found["fixes"])


@pytest.mark.parametrize(
    ("owner", "keyword", "release", "said"),
    [
        ("ServerArgs.__init__", "mm_attention_backend", "0.4.6.post1", "Upgrade SGLang to 0.4.6.post3"),
        ("ServerArgs.__init__", "disable_piecewise_cuda_graph", "0.5.20", "Install SGLang 0.5.13.post1"),
        (
            "ServerArgs.__init__",
            "disable_piecewise_cuda_graph",
            "0.5.20",
            "Pass cuda_graph_backend_prefill='disabled'",
        ),
        ("GenerateReqInput.__init__", "routing_key", "0.5.6", "Upgrade SGLang to 0.5.8"),
        ("ServerArgs.__init__", "frobnicate", "0.5.20", "Leave frobnicate out of what"),
        ("ServerArgs.__init__", "tp_size", "0.5.20", "Look which sglang is imported"),
        ("ServerArgs.__init__", "tp", "0.5.10", "Pass tp_size instead of tp"),
        ("ServerArgs.__init__", "gpu_memory_utilization", "0.5.10", "Pass mem_fraction_static instead of"),
    ],
)
def test_keywords_name_the_release(owner: str, keyword: str, release: str, said: str) -> None:
    found = first(
        f"TypeError: {owner}() got an unexpected keyword argument '{keyword}'",
        "srt/entrypoints/engine.py:112 __init__",
        release,
    )
    assert titles(found, said), [fix["title"] for fix in found["fixes"]]


@pytest.mark.parametrize(
    ("field", "release", "said"),
    [
        ("encoder_only", "0.5.4", "Upgrade SGLang to 0.5.7"),
        ("enable_ep_moe", "0.5.16", "Read ep_size instead of enable_ep_moe"),
        ("enable_ep_moe", "0.5.16", "Install SGLang 0.5.2"),
    ],
)
def test_fields_that_another_program_reads_name_the_release(field: str, release: str, said: str) -> None:
    log = f"""\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/dynamo/sglang/args.py", line 200, in parse_args
    if server_args.{field}:
AttributeError: 'ServerArgs' object has no attribute '{field}'
"""
    knowledge = load_knowledge()
    reading = reading_from_text(log, knowledge.literals)
    found = to_json(diagnose(reading, knowledge, Given(release=release)))["diagnoses"][0]
    assert titles(found, said), [fix["title"] for fix in found["fixes"]]


def test_the_release_without_the_line_that_fails_is_named() -> None:
    """init_pdmux changed in 0.5.17, and the line that fails stands up to 0.5.20. The class is one of a plug-in,
    whose message no rule knows."""
    log = f"""\
$ python -m sglang.launch_server --model-path /m/Q --enable-pdmux
[2026-11-30 01:34:10] Scheduler hit an exception: Traceback (most recent call last):
  File "{SGLANG}/srt/managers/scheduler.py", line 411, in __init__
    self.init_pdmux()
  File "{SGLANG}/srt/multiplex/multiplexing_mixin.py", line 40, in init_pdmux
    initialize_stream_groups(self.gpu_id, self.pdmux_config)
AttributeError: 'OwnScheduler' object has no attribute 'gpu_id'
"""
    knowledge = load_knowledge()
    reading = reading_from_text(log, knowledge.literals)
    found = to_json(diagnose(reading, knowledge, Given(release="0.5.13.post1")))["diagnoses"][0]
    assert found["rule"] is None
    without, upgrade = found["fixes"][:2]
    assert upgrade["title"] == "Upgrade SGLang from 0.5.13.post1 to 0.5.21 or later"
    assert "the very line that fails" in upgrade["why"] and "not known" in upgrade["why"]
    assert "is gone from 0.5.21 on" in upgrade["why"]
    assert [(e["op"], e["name"]) for e in without["edits"]] == [("remove", "--enable-pdmux")]


def of_code(error: str, release: str, *frames: tuple[str, str, str]) -> dict[str, Any]:
    """As ``first``, with the code of each frame: (file, function, code)."""
    told = "\n".join(
        f'  File "{SGLANG}/{file}", line 9, in {name}\n    {code}' for file, name, code in frames
    )
    log = (
        "$ python -m sglang.launch_server --model-path /m/Q --tp 2\n"
        f"[2026-05-04 10:11:30 TP0] Scheduler hit an exception: Traceback (most recent call last):\n{told}\n{error}\n"
    )
    knowledge = load_knowledge()
    reading = reading_from_text(log, knowledge.literals)
    found: dict[str, Any] = to_json(diagnose(reading, knowledge, Given(release=release)))["diagnoses"][0]
    return found


def test_a_call_between_own_functions_names_the_release_that_has_both_right() -> None:
    call = (
        "srt/disaggregation/decode.py",
        "_pre_alloc",
        "kv_loc = self.token_to_kv_pool_allocator.alloc_extend(",
    )
    callee = "TypeError: PagedTokenToKVPoolAllocator.alloc_extend()"
    found = of_code(f"{callee} missing 1 required positional argument: 'prefix_lens_cpu'", "0.5.3rc1", call)
    assert "Both are SGLang's own" in found["cause"] and "fault of the release" in found["cause"]
    assert found["fixes"][0]["title"] == "Upgrade SGLang from 0.5.3rc1 to 0.5.23"
    assert "treats prefix_lens_cpu otherwise from 0.5.3 on" in found["fixes"][0]["why"]
    assert "0.5.3rc1 is a state between two releases" in found["fixes"][0]["why"]
    assert not any("pip check" in line for fix in found["fixes"] for line in fix["run"]), (
        "no other package has to do with it"
    )
    older = of_code(f"{callee} got an unexpected keyword argument 'prefix_lens_cpu'", "0.5.2", call)
    assert (
        "takes prefix_lens_cpu from 0.5.3 on, which is what this failure misses" in older["fixes"][0]["why"]
    )
    mixed = of_code(f"{callee} got an unexpected keyword argument 'prefix_lens_cpu'", "0.5.3", call)
    assert titles(mixed, "Install SGLang 0.5.3 whole")


def test_a_check_that_came_in_the_caller_is_the_evidence() -> None:
    found = of_code(
        "AttributeError: 'Fp8MoEMethod' object has no attribute 'moe_runner_config'",
        "0.5.18",
        (
            "srt/layers/quantization/fp8.py",
            "process_weights_after_loading",
            "self._prepare_flashinfer_trtllm_activation_params(layer)",
        ),
        (
            "srt/layers/quantization/fp8.py",
            "_prepare_flashinfer_trtllm_activation_params",
            '("gemm1_alpha", self.moe_runner_config.gemm1_alpha),',
        ),
    )
    (upgrade,) = [fix for fix in found["fixes"] if fix["title"].startswith("Upgrade")]
    assert "the call in process_weights_after_loading" in upgrade["why"]
    assert "runs under other conditions from 0.5.19 on" in upgrade["why"]
    assert "error of programming in SGLang's own code" in found["cause"]


@pytest.mark.parametrize(
    ("file", "tensor", "first_title", "said"),
    [
        ("granite", "model.vision_tower.embed.weight", "Rename the tensors", "transformers 4.52 and later writes"),
        ("llama", "model.layers.0.self_attn.k_norm.weight", "Serve it with code that knows", "another generation"),
        ("llama", "model.layers.0.lora_A.weight", "Merge the adapter", "no parameter"),
    ],
)  # fmt: skip
def test_a_tensor_without_a_place_is_read_by_its_name(
    file: str, tensor: str, first_title: str, said: str
) -> None:
    found = of_code(
        f"KeyError: '{tensor}'",
        "0.5.8",
        (f"srt/models/{file}.py", "load_weights", "param = params_dict[name]"),
    )
    assert found["rule"] == "MTP0599"
    assert found["fixes"][0]["title"].startswith(first_title)
    assert said in found["cause"]
    whys = [fix["why"] for fix in found["fixes"] if fix["title"].startswith("Upgrade SGLang")]
    assert all("in nothing that the failing line names" in why for why in whys), (
        "no later loader treats that name otherwise"
    )


def test_a_backend_without_a_part_is_replaced_by_one_that_has_it() -> None:
    found = of_code(
        "AttributeError: 'TRTLLMHAAttnBackend' object has no attribute 'sliding_window_size'",
        "0.5.19",
        ("srt/models/llama.py", "forward", "size = backend.sliding_window_size"),
    )
    offered = titles(found, "Use an attention backend that has it")
    assert "Use an attention backend that has it: --attention-backend triton" in offered
    assert not any("flashinfer" in title for title in offered), "its class has no such attribute in 0.5.19"
