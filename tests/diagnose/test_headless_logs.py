"""A report that shows a traceback only: no command, no server arguments, no release."""

from __future__ import annotations

from typing import Any

from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

SCHEDULER = "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py"
HEAD = f"""[2026-06-01 10:00:10 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{SCHEDULER}", line 3180, in run_scheduler_process
    scheduler = Scheduler(
  File "{SCHEDULER}", line 368, in __init__
    self.init_model_worker()
"""


def first(frames: str) -> dict[str, Any]:
    knowledge = own_knowledge()
    report = to_json(diagnose(reading_from_text(HEAD + frames, knowledge.literals), knowledge))
    found: dict[str, Any] = report["diagnoses"][0]
    return found


def test_arguments_that_nobody_saw_are_not_taken_for_the_default() -> None:
    error = "ValueError: Weight output_partition_size = 192 is not divisible by weight quantization block_n = 128."
    found = first(
        f'  File "{SCHEDULER.replace("managers/scheduler", "layers/quantization/fp8")}", line 330, in create_weights\n'
        f"    raise ValueError(\n{error}\n"
    )
    assert "cut 1 ways" not in found["cause"]
    assert "--tp-size divided by 2" in found["fixes"][0]["title"]


def test_a_release_that_was_worked_out_gives_way_to_the_message() -> None:
    """The frames' numbers are those of 0.5.9, whose FlashInfer has no such check; and the root is what was raised."""
    error = "AssertionError: initial_state must be float32, got torch.bfloat16"
    found = first(
        '  File "/opt/venv/lib/python3.12/site-packages/flashinfer/gdn_decode.py", line 900, in gated_delta_rule_mtp\n'
        f"    assert initial_state.dtype == torch.float32, (\n{error}\n"
    )
    assert found["root"]["text"] == error
    assert found["fixes"][0]["edits"][0]["name"] == "--linear-attn-decode-backend"


def test_what_may_be_unknown_does_not_put_a_remedy_before_those_that_fit() -> None:
    """The one for Ray asks for --base-gpu-id, and lets CUDA_VISIBLE_DEVICES be unknown."""
    fixes = first(
        "    torch.cuda.set_device(9)\ntorch.AcceleratorError: CUDA error: invalid device ordinal\n"
    )["fixes"]
    assert fixes[0]["title"].startswith("Make enough GPUs visible")
    assert any(f["title"].startswith("Under Ray") for f in fixes)


def _wrapped(text: str) -> str:
    return "\n".join(line[i : i + 80] for line in text.split("\n") for i in range(0, max(len(line), 1), 80))


def _of_four_ranks(text: str) -> str:
    """The same traceback from four ranks, written line by line into each other."""
    head, *lines = text.rstrip("\n").split("\n")
    heads = [head.replace("TP0", f"TP{rank}") for rank in range(4)]
    return "\n".join([*heads, *(line for line in lines for _ in range(4)), ""])


def test_a_narrow_terminal_and_ranks_that_write_into_each_other_change_nothing() -> None:
    indexer = SCHEDULER.replace("managers/scheduler", "layers/attention/dsv4/indexer")
    text = (
        f'{HEAD}  File "{indexer}", line 87, in fp8_paged_mqa_logits_torch\n'
        "    assert seq_lens.shape == (batch_size,)\nAssertionError\n"
    )
    knowledge = own_knowledge()
    for shape in (str, _wrapped, _of_four_ranks):
        report = to_json(diagnose(reading_from_text(shape(text), knowledge.literals), knowledge))
        assert [d["rule"] for d in report["diagnoses"]] == ["MTP3002"], shape
