"""The kind of every layer, and the numbers of the linear and latent parts, for every way families say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.model.config import read_model
from mtpdoctor.model.layers import layer_kinds
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.report.model_text import LETTERS

MODELS = Path(__file__).parent.parent / "data" / "models"
F, L, M, S, A = "full", "linear", "mamba", "sliding", "mla"


def read(tmp_path: Path, **fields: Any) -> ModelFacts:
    base = {"architectures": ["X"], "hidden_size": 64, "num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(base | fields))
    return read_model(tmp_path / "config.json")


KINDS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"num_hidden_layers": 2}, (F, F)),
    ({"num_hidden_layers": 2, "kv_lora_rank": 512}, (A, A)),
    ({"num_hidden_layers": 4, "linear_num_value_heads": 8, "full_attention_interval": 4}, (L, L, L, F)),
    ({"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}, (S, F)),
    ({"num_hidden_layers": 2, "layer_types": ["chunked_attention", "full_attention"]}, (S, F)),
    ({"num_hidden_layers": 3, "layer_types": ["conv", "conv", "full_attention"]}, ("conv", "conv", F)),
    ({"num_hidden_layers": 2, "layer_types": ["mamba", "attention"], "mamba_d_state": 8}, (M, F)),
    ({"hybrid_override_pattern": "M-*E"}, (M, "mlp", F, "mlp")),
    ({"layers_block_type": ["mamba", "moe", "attention", "mlp"]}, (M, "mlp", F, "mlp")),
    ({"num_hidden_layers": 2, "model_type": "falcon_h1", "mamba_d_ssm": 8}, ("full+mamba",) * 2),
    (
        {"num_hidden_layers": 4, "mamba_d_state": 8, "attn_layer_period": 4, "attn_layer_offset": 2},
        (M, M, F, M),
    ),  # Jamba
    ({"num_hidden_layers": 3, "mamba_d_state": 8, "attn_layer_indices": [1]}, (M, F, M)),  # Bamba
    ({"num_hidden_layers": 3, "attn_type_list": [0, 0, 1], "model_type": "minimax_m1"}, (L, L, F)),
    (
        {
            "num_hidden_layers": 4,
            "kv_lora_rank": 512,
            "linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4]},
        },
        (L, L, L, A),
    ),  # Kimi Linear counts from 1
    ({"num_hidden_layers": 4, "model_type": "bailing_hybrid", "layer_group_size": 2}, (L, F, L, F)),
    ({"num_hidden_layers": 3, "model_type": "bailing_hybrid", "layer_group_size": [1, 0, 1]}, (L, F, L)),
    ({"num_hidden_layers": 4, "sliding_window": 128, "sliding_window_pattern": 2}, (S, F, S, F)),
    ({"num_hidden_layers": 4, "sliding_window": 128, "sliding_window_pattern": "LLLG"}, (S, S, S, F)),
    ({"num_hidden_layers": 4, "model_type": "gemma2", "sliding_window": 128}, (S, F, S, F)),
    (
        {"num_hidden_layers": 3, "hybrid_layer_pattern": [0, 1, 1], "sliding_window": 128},
        (F, S, S),
    ),  # MiMo-V2
    ({"num_hidden_layers": 4, "architectures": ["Llama4ForConditionalGeneration"]}, (S, S, S, F)),
    ({"num_hidden_layers": 3, "local_layer_ids": [0, 1], "sliding_window": 8}, (S, S, F)),
    ({"num_hidden_layers": 2, "sliding_window": 4096}, (F, F)),  # SGLang keeps the whole KV cache there
    ({"num_hidden_layers": 5, "block_types": ["recurrent", "recurrent", "attention"]}, (L, L, F, L, L)),
    ({"num_hidden_layers": 2, "layer_types": ["full_attention"] * 3}, (F, F)),  # one more for the MTP layer
    ({"num_hidden_layers": 4, "layer_types": ["full_attention"]}, ()),  # contradicts itself
    ({"num_hidden_layers": 10**9}, ()),
    ({}, ()),
]


@pytest.mark.parametrize(("fields", "kinds"), KINDS)
def test_kinds(tmp_path: Path, fields: dict[str, Any], kinds: tuple[str, ...]) -> None:
    assert read(tmp_path, **fields).layer_kinds == kinds


COUNTS = {
    "DeepSeek-V3": {A: 61},
    "Falcon-H1-7B": {"full+mamba": 44},
    "Gemma-3-27B": {S: 52, F: 10},
    "gpt-oss-20b": {S: 12, F: 12},
    "Kimi-Linear-48B-A3B": {L: 20, A: 7},
    "MiniMax-M2": {F: 62},
    "Nemotron-Nano-9B": {M: 27, F: 4, "mlp": 25},
    "Qwen3-Next-80B-A3B": {L: 36, F: 12},
    "Qwen3.5-27B": {L: 48, F: 16},
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_models(name: str) -> None:
    kinds = read_model(MODELS / name).layer_kinds
    assert {kind: kinds.count(kind) for kind in kinds} == COUNTS[name]


def test_the_numbers_of_published_models() -> None:
    kimi = read_model(MODELS / "Kimi-Linear-48B-A3B")
    assert (kimi.linear_key_heads, kimi.linear_value_dim, kimi.linear_conv_kernel) == (32, 128, 4)
    assert (kimi.kv_lora_rank, kimi.rope_head_dim, kimi.v_head_dim) == (512, 64, 128)
    deepseek = read_model(MODELS / "DeepSeek-V3")
    assert (deepseek.quantization, deepseek.quantization_block) == ("fp8", (128, 128))
    assert (deepseek.experts_per_token, deepseek.shared_experts) == (8, 1)
    assert (deepseek.expert_intermediate_size, deepseek.intermediate_size) == (2048, 18432)
    assert deepseek.rope_scaling == "yarn x40" and deepseek.tied_embeddings is False
    qwen = read_model(MODELS / "Qwen3.5-27B")
    assert (qwen.linear_key_dim, qwen.linear_value_dim, qwen.linear_conv_kernel) == (128, 128, 4)
    assert qwen.is_multimodal is True and qwen.rope_scaling is None
    assert read_model(MODELS / "Nemotron-Nano-9B").linear_conv_kernel == 4
    assert read_model(MODELS / "Qwen2.5-7B-AWQ").quantization_block == (128,)
    assert read_model(MODELS / "gpt-oss-20b").quantization_block == (32,)
    assert read_model(MODELS / "Gemma-3-27B").tied_embeddings is True


QUANTIZED: list[tuple[dict[str, Any], str | None, tuple[int, ...]]] = [
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq", (128,)),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes", ()),
    ({"quant_method": "bitsandbytes"}, None, ()),  # neither 4 nor 8 bit: plain
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}, "modelopt_fp4", (16,)),
    (
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"group_size": 32}}}},
        "compressed-tensors",
        (32,),
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"g": {"weights": {"block_structure": [128, 64]}}},
        },
        "compressed-tensors",
        (128, 64),
    ),
    ({"quant_method": "fp8", "weight_block_size": [128, "x"]}, "fp8", ()),
]


@pytest.mark.parametrize(("config", "method", "block"), QUANTIZED)
def test_quantization(
    tmp_path: Path, config: dict[str, Any], method: str | None, block: tuple[int, ...]
) -> None:
    model = read(tmp_path, num_hidden_layers=1, quantization_config=config)
    assert (model.quantization, model.quantization_block, model.problems) == (method, block, ())


_json: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 70)
    | st.text(max_size=4)
    | st.sampled_from(["full", "mamba", "MM*-"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)
_NAMES = (
    *("layer_types", "hybrid_override_pattern", "attn_type_list", "block_types", "hybrid_layer_pattern"),
    *(
        "full_attention_interval",
        "linear_attn_config",
        "layer_group_size",
        "mamba_d_state",
        "attn_layer_period",
    ),
    *("attn_layer_offset", "attn_layer_indices", "sliding_window_pattern", "local_layer_ids", "model_type"),
    *("architectures", "linear_num_value_heads"),
)


@given(st.dictionaries(st.sampled_from(_NAMES), _json), st.none() | st.integers(-1, 100), st.booleans())
def test_any_config_gives_known_kinds_for_all_layers_or_none(
    text: dict[str, Any], layers: int | None, mla: bool
) -> None:
    kinds = layer_kinds(text, text, layers, is_mla=mla, window=128)
    assert len(kinds) in (0, layers)
    assert set(kinds) <= set(LETTERS)
