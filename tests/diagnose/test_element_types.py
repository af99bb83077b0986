"""A kernel names the number type that it takes; the option that gives it another one is what to change."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

KERNEL = "/opt/sglang/python/sglang/srt/layers/attention/warp_backend.py"


def fixes_of(options: str, last: str, path: str = KERNEL) -> tuple[Fix, ...]:
    knowledge = load_knowledge()
    text = (
        f"$ python3 -m sglang.launch_server --model-path /models/m {options}\n"
        "[2026-05-05 10:00:00] sglang==0.5.16\n"
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{path}", line 99, in warp\n    kernel(q, k)\n{last}\n'
        "[2026-05-05 10:00:03] Received sigquit from a child process. It usually means the child failed.\n"
    )
    return diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0].fixes


@pytest.mark.parametrize(
    "said", ["expected BF16 D=256", "warp only supports bfloat16 inputs", "keys must be torch.float16"]
)
def test_a_cache_in_another_type_is_kept_in_the_models_own(said: str) -> None:
    first = fixes_of("--kv-cache-dtype fp8_e4m3 --tp 2", f"ValueError: warp call: {said}")[0]
    assert first.safety == "risky"
    assert first.command == "python3 -m sglang.launch_server --model-path /models/m --tp 2"


def test_the_type_that_is_computed_in_follows_the_message() -> None:
    first = fixes_of("--dtype float16", "ValueError: warp only supports bfloat16 inputs")[0]
    assert first.command == "python3 -m sglang.launch_server --model-path /models/m --dtype bfloat16"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--kv-cache-dtype auto", "expected BF16 D=256"),
        ("--kv-cache-dtype fp8_e4m3", "expected 3 dimensions"),
        ("--dtype bfloat16", "expected BF16 D=256"),
        ("--kv-cache-dtype fp8_e4m3", "expected fp8 keys but got bf16"),
        ("--kv-cache-dtype fp8_e4m3", "the cache needs about half of the memory"),
    ],
)
def test_nothing_is_said_where_the_types_agree_or_none_is_named(options: str, said: str) -> None:
    fixes = fixes_of(options, f"ValueError: warp call: {said}")
    assert "--dtype" not in {edit.name for fix in fixes for edit in fix.edits}
    assert not any(fix.title.startswith("Keep the KV cache") for fix in fixes)


def test_a_failure_that_names_the_drafts_folder_can_be_left_by_serving_without_it() -> None:
    """A rule knows the message, and speaks of the folder only."""
    options = "--speculative-algorithm EAGLE3 --speculative-draft-model-path /models/drafts/head --speculative-num-steps 3"
    last = "ValueError: Unrecognized model in /models/drafts/head. Should have a `model_type` key in its config.json."
    path = "/opt/sglang/python/sglang/srt/utils/hf_transformers_utils.py"
    without = [
        f for f in fixes_of(options, last, path) if any(e.name == "--speculative-algorithm" for e in f.edits)
    ]
    assert [fix.safety for fix in without] == ["risky"]
    assert without[0].command == "python3 -m sglang.launch_server --model-path /models/m"
