"""What a fix makes of one size of the split goes with the others of the command."""

from __future__ import annotations

from typing import Any

from mtpdoctor.case import build_case
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.launch.document import read_launch
from mtpdoctor.model.config import model_of

SERVER = "python3 -m sglang.launch_server --model-path"
NODES = "--node-rank 0 --dist-init-addr 10.0.0.5:5000"


def with_ranks(ranks: int, command: str, config: dict[str, Any] | None = None) -> Fix | None:
    """The fix of a remedy that sets the number of tensor parallel ranks."""
    case = build_case(
        document=read_launch(command),
        model=model_of(config, "config.json") if config is not None else None,
        release="0.5.9",
    )
    remedy = Remedy(
        title="Use fewer ranks",
        safety=Safety.RISKY,
        why="it divides",
        edits=(EditTemplate("set", "--tp-size", str(ranks)),),
    )
    return fix_of(remedy, case, load_knowledge())


def test_nodes_that_cannot_share_the_ranks_leave_one_to_serve() -> None:
    fix = with_ranks(16, f"{SERVER} /models/Some-1.5B --tp 24 --nnodes 3 {NODES}")
    assert fix is not None and fix.command == f"{SERVER} /models/Some-1.5B --tp 2"
    assert "3 nodes" in fix.why and fix.safety == "risky"


def test_nodes_that_can_share_them_stay() -> None:
    fix = with_ranks(8, f"{SERVER} /models/m --tp 24 --nnodes 2 {NODES}")
    assert fix is not None and fix.command == f"{SERVER} /models/m --tp 8 --nnodes 2 {NODES}"
    assert fix.title == "Use fewer ranks"


def test_the_heads_of_the_model_have_a_say() -> None:
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_attention_heads": 12, "num_key_value_heads": 2,
        "hidden_size": 1536, "num_hidden_layers": 28, "vocab_size": 151936, "intermediate_size": 8960,
    }  # fmt: skip
    fix = with_ranks(8, f"{SERVER} /models/m --tp 24", config)
    assert fix is not None and fix.command == f"{SERVER} /models/m --tp 4"
    assert "12 attention heads" in fix.why


def test_more_ranks_than_the_heads_allow_are_not_made_fewer_than_before() -> None:
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_attention_heads": 12, "num_key_value_heads": 12,
        "hidden_size": 1536, "num_hidden_layers": 28, "vocab_size": 151936, "intermediate_size": 8960,
    }  # fmt: skip
    assert with_ranks(8, f"{SERVER} /models/m --tp 4", config) is None
    assert with_ranks(8, f"{SERVER} /models/m --tp 6", config) is None


def test_parts_of_the_ranks_follow() -> None:
    fix = with_ranks(8, f"{SERVER} /models/m --tp 12 --ep-size 12")
    assert fix is not None and fix.command == f"{SERVER} /models/m --tp 8 --ep-size 4"
    assert any("--ep-size as well" in note for note in fix.notes)
    fix = with_ranks(4, f"{SERVER} /models/m --tp 8 --dp 8 --enable-dp-attention")
    assert fix is not None and fix.command == f"{SERVER} /models/m --tp 4 --dp 4 --enable-dp-attention"


def test_a_number_that_counts_no_gpus_is_no_fix() -> None:
    for ranks in (0, 65537):
        assert with_ranks(ranks, f"{SERVER} /models/m --tp 8 --nnodes 3 {NODES}") is None
    for ranks in (10**11, 10**30):  # no endless search for a smaller one either
        assert with_ranks(ranks, f"{SERVER} /models/m --tp 8 --nnodes 3 {NODES}") is None


def test_a_model_larger_than_any_is_split_as_the_largest() -> None:
    fix = with_ranks(16, f"{SERVER} /models/999x9999B --tp 24 --nnodes 3 {NODES}")
    assert fix is not None and fix.command == f"{SERVER} /models/999x9999B --tp 8"


def test_more_groups_than_ranks_are_no_division_by_zero() -> None:
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_attention_heads": 64, "num_key_value_heads": 8,
        "hidden_size": 8192, "num_hidden_layers": 80, "vocab_size": 151936, "intermediate_size": 29568,
    }  # fmt: skip
    fix = with_ranks(6, f"{SERVER} /models/m --tp 9 --dp 8 --enable-dp-attention", config)
    assert fix is not None and " --tp 2 --dp 2 " in f"{fix.command} "
