"""What a fix makes of one size of the split goes with the others of the command."""

from __future__ import annotations

from typing import Any

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.model.config import model_of


def fixes_of(
    options: str, said: str, model: str = "/models/m", config: dict[str, Any] | None = None
) -> list[Fix]:
    knowledge = load_knowledge()
    text = (
        f"$ python3 -m sglang.launch_server --model-path {model} {options}\n"
        "[2026-05-05 10:00:00] sglang==0.5.9\n"
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/distributed/utils.py", line 51, in ensure_divisibility\n'
        "    assert numerator % denominator == 0\n"
        f"AssertionError: {said}\n"
        "[2026-05-05 10:00:03] Received sigquit from a child process. It usually means the child failed.\n"
    )
    given = Given(model=model_of(config, "config.json")) if config is not None else Given()
    report = diagnose(reading_from_text(text, knowledge.literals), knowledge, given)
    return list(report.diagnoses[0].fixes)


def size(fix: Fix, name: str) -> str | None:
    return next((edit.value for edit in fix.edits if edit.name == name), None)


def test_nodes_that_cannot_share_the_ranks_leave_one_to_serve() -> None:
    nodes = "--tp 24 --nnodes 3 --node-rank 0 --dist-init-addr 10.0.0.5:5000"
    fix = fixes_of(nodes, "151936 is not divisible by 24", "/models/Some-Distill-1.5B")[0]
    assert fix.command == "python3 -m sglang.launch_server --model-path /models/Some-Distill-1.5B --tp 2"
    assert "3 nodes" in fix.why and fix.safety == "risky"


def test_nodes_that_can_share_them_stay() -> None:
    nodes = "--tp 24 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.5:5000"
    fix = fixes_of(nodes, "151936 is not divisible by 24")[0]
    assert size(fix, "--tp-size") == "8" and "--nnodes 2" in (fix.command or "")


def test_the_heads_of_the_model_have_a_say() -> None:
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_attention_heads": 12, "num_key_value_heads": 2,
        "hidden_size": 1536, "num_hidden_layers": 28, "vocab_size": 151936, "intermediate_size": 8960,
    }  # fmt: skip
    fix = fixes_of("--tp 24", "151936 is not divisible by 24", config=config)[0]
    assert size(fix, "--tp-size") == "4" and "12 attention heads" in fix.why


def test_parts_of_the_ranks_follow() -> None:
    fix = fixes_of("--tp 12 --ep-size 12", "151936 is not divisible by 12")[0]
    assert (size(fix, "--tp-size"), size(fix, "--ep-size")) == ("8", "4")
    assert any("--ep-size as well" in note for note in fix.notes)
