"""Model facts from config.json, whatever the family calls its fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.facts import UNKNOWN, Source, make_facts
from mtpdoctor.kb.by_name import evaluate_by_name
from mtpdoctor.kb.condition_source import parse_condition
from mtpdoctor.model.config import read_model
from mtpdoctor.model.facts import model_facts
from mtpdoctor.model.names import class_of
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.paths import releases_folder

MODELS = Path(__file__).parent.parent / "data" / "models"

PUBLISHED = [
    # folder, layers, heads, kv_heads, head_dim, experts, mtp, hybrid, mla, quantization, context
    ("DeepSeek-V3", 61, 128, 128, 192, 256, 1, None, True, "fp8", 163840),
    ("GLM-4.5-Air", 46, 96, 8, 128, 128, 1, None, False, None, 131072),
    ("Llama-3.1-8B", 32, 32, 8, 128, None, None, None, False, None, 131072),
    ("Qwen3-30B-A3B", 48, 32, 4, 128, 128, None, None, False, None, 40960),
    ("Qwen3-Next-80B-A3B", 48, 16, 2, 256, 512, 1, "gdn", False, None, 262144),
    ("Qwen3.5-122B-A10B", 48, 32, 2, 256, 256, 1, "gdn", False, None, 262144),
    ("Qwen3.5-27B", 64, 24, 4, 256, None, 1, "gdn", False, None, 262144),
    ("gpt-oss-20b", 24, 64, 8, 64, 32, None, None, False, "mxfp4", 131072),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda r: r[0])
def test_published_models(row: tuple[Any, ...]) -> None:
    m = read_model(MODELS / row[0])
    found = (m.layers, m.heads, m.kv_heads, m.head_dim, m.experts, m.mtp_layers, m.linear_kind, m.is_mla)
    assert (*found, m.quantization, m.context_length) == row[1:]
    assert m.is_hybrid is (row[7] is not None)
    assert m.is_moe is (row[5] is not None)
    assert m.dtype == "bfloat16"
    assert m.problems == ()
    assert read_model(MODELS / row[0] / "config.json") == _at(m, str(MODELS / row[0] / "config.json"))


def _at(m: ModelFacts, path: str) -> ModelFacts:
    import dataclasses

    return dataclasses.replace(m, path=path)


def test_linear_heads_of_a_nested_text_config() -> None:
    m = read_model(MODELS / "Qwen3.5-122B-A10B")
    assert (m.architecture, m.model_type) == ("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe")
    assert (m.linear_key_heads, m.linear_value_heads, m.full_attention_interval) == (16, 64, 4)


def _read(tmp_path: Path, config: Any, **files: Any) -> ModelFacts:
    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return read_model(tmp_path)


_BASE = {"architectures": ["X"], "hidden_size": 1024, "num_attention_heads": 8}

KINDS: list[tuple[dict[str, Any], str | None]] = [
    ({"hybrid_override_pattern": "M-M*-ME"}, "mamba"),
    ({"layer_types": ["mamba", "attention"], "mamba_d_state": 128}, "mamba"),
    ({"model_type": "falcon_h1", "mamba_d_ssm": 1024}, "mamba"),
    ({"layer_types": ["conv", "full_attention"]}, "conv"),
    ({"linear_attn_config": {"kda_layers": [1], "full_attn_layers": [2]}, "kv_lora_rank": 512}, "kda"),
    ({"model_type": "minimax_text_01", "attn_type_list": [0, 0, 1]}, "lightning"),
    ({"model_type": "minimax_m2", "attn_type_list": [1, 1, 1]}, None),
    ({"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4096}, None),
    ({"layer_types": ["full_attention"] * 4, "linear_num_value_heads": 16}, None),
    ({"model_type": "mamba2", "layer_types": ["mamba", "mamba"]}, None),
    ({}, None),
]


@pytest.mark.parametrize(("fields", "kind"), KINDS)
def test_kinds_of_layers(tmp_path: Path, fields: dict[str, Any], kind: str | None) -> None:
    m = _read(tmp_path, _BASE | fields)
    assert m.linear_kind == kind
    assert m.is_hybrid is (kind is not None)


FAMILIES: list[tuple[dict[str, Any], str, Any]] = [
    ({"n_routed_experts": 64}, "experts", 64),
    ({"moe_num_experts": [64, 32]}, "experts", 64),
    ({"ffn_config": {"moe_num_experts": 16}}, "experts", 16),
    ({"multi_query_group_num": 2}, "kv_heads", 2),
    ({"multi_query": True}, "kv_heads", 1),
    (
        {"multi_query": True, "model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 4},
        "kv_heads",
        4,
    ),
    ({"attn_config": {"kv_n_heads": 8}}, "kv_heads", 8),
    ({"num_attention_groups": 1}, "kv_heads", 1),
    ({}, "kv_heads", 8),
    ({}, "head_dim", 128),
    ({"mtp_num_layers": 2}, "mtp_layers", 2),
    ({"seq_length": 32768, "max_position_embeddings": 2048}, "context_length", 32768),
    (
        {"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}},
        "context_length",
        16384,
    ),
    ({"torch_dtype": "torch.float16"}, "dtype", "float16"),
    ({"quantization_config": {"quant_method": "AWQ"}}, "quantization", "awq"),
    (
        {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}},
        "quantization",
        "modelopt_fp4",
    ),
    ({"compression_config": {"quant_method": "compressed-tensors"}}, "quantization", "compressed-tensors"),
    ({"use_sliding_window": False, "sliding_window": 4096}, "sliding_window", None),
    ({"use_sliding_window": True, "sliding_window": 4096}, "sliding_window", 4096),
]


@pytest.mark.parametrize(("fields", "name", "value"), FAMILIES)
def test_names_across_families(tmp_path: Path, fields: dict[str, Any], name: str, value: Any) -> None:
    m = _read(tmp_path, _BASE | fields)
    assert getattr(m, name) == value
    assert m.problems == ()


def test_quantization_beside_config_json(tmp_path: Path) -> None:
    m = _read(tmp_path, _BASE, hf_quant_config={"quantization": {"quant_algo": "FP8"}})
    assert m.quantization == "modelopt_fp8"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('{"architectures": ["X"],\n "hidden_size": }', "not valid JSON: .* line 2 column 17"),
        ("[1]", "holds a list"),
        ("", "not valid JSON"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
        ('{"model_type": "llama"}', "'architectures' is missing"),
        (
            json.dumps(_BASE | {"num_attention_heads": "eight"}),
            "'num_attention_heads' must be a whole number",
        ),
        (json.dumps(_BASE | {"quantization_config": "fp8"}), "'quantization_config' must be an object"),
        (
            json.dumps(_BASE | {"max_position_embeddings": 1, "rope_scaling": {"factor": "x"}}),
            "'factor' must be",
        ),
    ],
)
def test_what_is_malformed_is_a_problem_not_a_crash(tmp_path: Path, config: str, says: str) -> None:
    import re

    m = _read(tmp_path, config)
    assert any(re.search(says, p) for p in m.problems), m.problems


@pytest.mark.parametrize("value", ["Infinity", "NaN", "1e400", "-1", "1.5", "true"])
def test_numbers_that_are_none(tmp_path: Path, value: str) -> None:
    m = _read(tmp_path, f'{{"architectures": ["X"], "num_attention_heads": {value}, "num_hidden_layers": 2}}')
    assert m.heads is None and m.layers == 2
    assert any("'num_attention_heads' must be a whole number" in p for p in m.problems)


def test_what_is_missing_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json in this folder"):
        read_model(tmp_path)
    with pytest.raises(UserError, match="no such folder or file") as e:
        read_model("Qwen/Qwen3-8B-that-is-not-here")
    assert e.value.hint


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_names = st.sampled_from(
    [
        *(
            "architectures",
            "model_type",
            "text_config",
            "num_hidden_layers",
            "num_attention_heads",
            "head_dim",
        ),
        *(
            "num_key_value_heads",
            "num_experts",
            "layer_types",
            "hybrid_override_pattern",
            "rope_scaling",
            "dtype",
        ),
        *("max_position_embeddings", "quantization_config", "kv_lora_rank", "attn_type_list", "hidden_size"),
        *("linear_attn_config", "attn_config", "ffn_config", "sliding_window", "full_attention_interval"),
    ]
)


@given(st.dictionaries(_names, _json, max_size=8))
def test_any_config_is_read_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, Any]
) -> None:
    m = _read(tmp_path_factory.getbasetemp(), config)
    facts = model_facts(m)
    assert all(
        isinstance(facts.look(f"model.{n}"), int) for n in ("layers", "heads") if f"model.{n}" in facts
    )


def test_facts_tell_absent_from_unknown() -> None:
    facts = model_facts(read_model(MODELS / "Llama-3.1-8B"))
    assert facts["model.heads"] == 32
    assert facts["model.is_hybrid"] is False
    assert facts.look("model.quantization") is None and facts.look("model.experts") is None
    assert facts.look("model.mtp_layers") is UNKNOWN
    fact = facts.fact("model.heads")
    assert fact is not None and fact.source is Source.MODEL and "Llama-3.1-8B" in fact.where


def test_facts_of_an_unreadable_config_are_unknown(tmp_path: Path) -> None:
    facts = model_facts(_read(tmp_path, "{"))
    assert set(facts) == {"model.path", "model.problems"}


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("Qwen/Qwen3-8B", "Qwen3ForCausalLM"),
        ("/data/models--Qwen--Qwen3.5-397B-A17B-FP8/snapshots/abc", "Qwen3_5MoeForConditionalGeneration"),
        ("/models/DeepSeek-R1-0528/", "DeepseekV3ForCausalLM"),
        ("me/Qwen3-8B-eagle3", None),
        ("/models/mine", None),
    ],
)
def test_the_class_of_a_public_model_is_known_by_its_name(path: str, known: str | None) -> None:
    facts = make_facts({"flag.model_path": path}, Source.COMMAND)
    asked = parse_condition({"model.architecture": ["Qwen3ForCausalLM", "unknown-ok"]})
    assert class_of(path) == known
    assert evaluate_by_name(asked, facts) is (known in (None, "Qwen3ForCausalLM"))
    certain = facts.merged(make_facts({"model.architecture": "OtherForCausalLM"}, Source.MODEL))
    assert evaluate_by_name(asked, certain) is False


def test_the_names_lead_to_classes_that_there_are() -> None:
    written = json.loads((releases_folder() / "model_names.json").read_text(encoding="utf-8"))
    classes = json.loads((releases_folder() / "architectures.json").read_text(encoding="utf-8"))
    assert {known for _, known in written["families"]} <= set(classes["architectures"])
