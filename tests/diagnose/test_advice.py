"""What is said of the kind of a failure, where no rule knows the failure itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import dying
import pytest
from dying import LOADING, SITE

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.types import Role
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.releases import known_releases, release_facts

first = partial(dying.first, before=(LOADING,))


def edits(diagnosis: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(e["op"], e["name"], e["value"]) for f in diagnosis["fixes"] for e in f["edits"]]


def test_a_package_that_does_not_fit_is_named_with_the_version_the_release_asks_for() -> None:
    found = first(
        "TypeError: load() got an unexpected keyword argument 'warp'",
        ("/x/sglang/srt/utils/hf_transformers_utils.py:get_config", f"{SITE}/transformers/warp.py:load"),
        "0.5.9",
    )
    pin = release_facts(known_releases()[[str(r) for r in known_releases()].index("0.5.9")]).pins[
        "transformers"
    ]
    assert any(f"transformers{pin}" in run for fix in found["fixes"] for run in fix["run"])


def test_a_failing_backend_is_left_out_or_replaced_by_one_that_the_release_has() -> None:
    found = first(
        "RuntimeError: warp drive misaligned",
        ("/x/sglang/srt/layers/attention/flashinfer_backend.py:forward_extend",),
        more="--attention-backend flashinfer",
    )
    changes = edits(found)
    assert ("remove", "--attention-backend", None) in changes
    others = [v for op, name, v in changes if (op, name) == ("set", "--attention-backend")]
    table = flag_table(known_releases()[[str(r) for r in known_releases()].index("0.5.13.post1")])
    assert others and "flashinfer" not in others
    assert set(others) <= set(table["--attention-backend"].choices or ())


@pytest.mark.parametrize(
    "frames",
    [
        (
            "/x/sglang/srt/layers/quantization/mxfp4_flashinfer_trtllm_moe.py:apply",
            f"{SITE}/flashinfer/fused_moe/core.py:go",
        ),
        (
            "/x/sglang/srt/layers/moe/fused_moe_triton/layer.py:forward",
            "/x/sglang/srt/layers/quantization/modelopt_quant.py:apply",
            f"{SITE}/flashinfer/utils.py:go",
        ),
        ("/x/sglang/srt/layers/quantization/quark/quark_w4a8_mxfp4_moe.py:apply",),
    ],
)
def test_a_layer_of_experts_is_no_matter_of_attention(frames: tuple[str, ...]) -> None:
    """FlashInfer serves both: what attention computes with is left alone, and the runner of the experts changed."""
    changes = edits(first("RuntimeError: warp drive misaligned", frames, "0.5.20"))
    assert changes[0][:2] == ("set", "--moe-runner-backend")
    assert not any("attention" in name for _, name, _ in changes)


@pytest.mark.parametrize(
    ("frame", "typed", "gone"),
    [
        (
            "/x/sglang/srt/speculative/warp_worker.py:draft",
            "--speculative-algorithm EAGLE",
            "--speculative-algorithm",
        ),
        (
            "/x/sglang/srt/two_batch_overlap.py:split",
            "--enable-two-batch-overlap",
            "--enable-two-batch-overlap",
        ),
        (
            "/x/sglang/srt/disaggregation/prefill.py:send",
            "--disaggregation-mode prefill",
            "--disaggregation-mode",
        ),
    ],
)
def test_a_failing_feature_can_be_left_out(frame: str, typed: str, gone: str) -> None:
    assert ("remove", gone, None) in edits(first("RuntimeError: warp is late", (frame,), more=typed))


def test_what_a_message_asks_for_is_done_and_what_it_refuses_left_out() -> None:
    asked = first("WarpError: please set --chunked-prefill-size 2048 for warp", ("/x/sglang/srt/warp.py:go",))
    assert ("set", "--chunked-prefill-size", "2048") in edits(asked)
    refused = first(
        "WarpError: quantization of this kind does not go with warp",
        ("/x/sglang/srt/warp.py:go",),
        more="--quantization awq",
    )
    assert ("remove", "--quantization", None) in edits(refused)


def test_a_value_is_taken_from_what_a_message_allows_and_not_from_what_it_refuses() -> None:
    frames = ("/x/sglang/srt/warp.py:go",)
    typed = "--attention-backend flashmla"
    allowed = first("WarpError: only triton or fa4 warp here, see --attention-backend", frames, more=typed)
    assert ("set", "--attention-backend", "triton") in edits(allowed)
    refused = first("WarpError: triton and fa4 are not supported by --attention-backend", frames, more=typed)
    assert not [e for e in edits(refused) if e[:2] == ("set", "--attention-backend")]


def test_a_layer_that_does_not_divide_is_split_over_fewer() -> None:
    found = first("ValueError: warp_size = 5472 is not divisible by warp_tile = 64", more="--tp-size 4")
    assert ("set", "--tp-size", "2") in edits(found)


def test_experts_that_do_not_divide_are_kept_whole_or_split_over_fewer_gpus() -> None:
    """Fewer GPUs first: whole experts leave shared ones divided, and helped in fewer of the labelled reports."""
    error = "ValueError: warp_size = 5472 is not divisible by warp_tile = 64"
    found = first(error, ("/x/sglang/srt/layers/moe/fused_moe_triton/layer.py:create",), more="--tp-size 4")
    assert edits(found)[:2] == [("set", "--tp-size", "2"), ("set", "--ep-size", "4")]
    dense = first(error, ("/x/sglang/srt/layers/linear.py:create",), more="--tp-size 4")
    assert edits(dense)[0] == ("set", "--tp-size", "2")


def test_what_a_message_says_is_not_taken_into_a_command_unchecked() -> None:
    """A log is not trusted: no free text of it becomes a value, and no variable that loads code."""
    found = first("ValueError: please set --model-path /evil and LD_PRELOAD=/evil.so and use --dtype $(evil)")
    assert not any("evil" in (value or "") for _, _, value in edits(found))
    assert not any("evil" in run for fix in found["fixes"] for run in fix["run"])


def test_nothing_of_a_kind_is_called_safe_and_a_specific_rule_silences_it() -> None:
    known = first(
        "ValueError: Unknown dtype: fp8",
        ("/x/sglang/srt/configs/model_config.py:get",),
        more="--dtype float16",
    )
    assert known["rule"] is not None
    advice = {r.id for r in load_knowledge().rules if r.role is Role.ADVICE}
    assert not any(rule in step for rule in advice for step in known["next_steps"])
    unknown = first("WarpError: warp", ("/x/sglang/srt/layers/attention/triton_backend.py:go",))
    assert unknown["rule"] is None
    assert any(rule in step for rule in advice for step in unknown["next_steps"])
    assert "safe" not in {fix["safety"] for fix in unknown["fixes"]}


def test_advice_never_moves_the_root() -> None:
    """The same log, read with and without the rules of whole kinds, has the same root and rule."""
    knowledge = load_knowledge()
    bare = Knowledge.of([r for r in knowledge.rules if r.role is not Role.ADVICE], knowledge.resolution)
    log = (
        LOADING + "\n" + "[2026-11-29 13:46:41 TP0] CUDA error: the warp is out of line, out of memory\n"
        "[2026-11-29 13:46:42 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/lora/warp.py", line 7, in go\n    go()\nRuntimeError: LoRA warp failed, flashinfer too\n'
    )
    reports = [diagnose(reading_from_text(log, k.literals), k) for k in (knowledge, bare)]
    assert len({(r.outcome, r.stage, r.diagnoses[0].root.key, r.diagnoses[0].rule) for r in reports}) == 1


def test_no_code_is_at_fault_for_a_process_that_was_killed() -> None:
    log = Path(__file__).parent.parent.parent / "sample_logs" / "scheduler_killed_sigkill.log"
    knowledge = load_knowledge()
    report = diagnose(reading_from_text(log.read_text(encoding="utf-8"), knowledge.literals), knowledge)
    killed = report.diagnoses[0]
    assert killed.rule == "MTP0030"
    assert killed.next_steps == ()
    assert [fix.title for fix in killed.fixes] == [
        "Find out who killed it",
        "Give it more host memory - the usual sender of SIGKILL is the out-of-memory killer",
    ]
