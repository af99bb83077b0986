"""Weights computed from config.json, held against what is published for the same checkpoints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.model.by_config import parameters, weights_by_config, weights_of
from mtpdoctor.model.config import read_model
from mtpdoctor.model.types import ModelFacts

MODELS = Path(__file__).parent.parent / "data" / "models"
CASES = Path(__file__).parent.parent / "data" / "published_memory"

# Bytes: metadata.total_size of the published model.safetensors.index.json, or the size of the weight files
# where that is what is published (DeepSeek-V3, Gemma 3: their headers are below a thousandth).
TOTALS = {
    "Llama-3.1-8B": 16_060_522_496,
    "Qwen3-8B": 16_381_470_720,
    "Qwen3-30B-A3B": 61_064_245_248,
    "Mixtral-8x7B": 93_405_585_408,
    "DeepSeek-V3": 688_586_727_753,
    "Gemma-3-27B": 54_864_980_440,
    "gpt-oss-20b": 13_761_264_768,
    "Qwen3.5-27B": 55_562_855_904,
}
# Billions of parameters of the published checkpoint, with its MTP layers where it holds them
PARAMETERS = {
    "GLM-4.5-Air": 110.5,
    "Falcon-H1-7B": 7.59,
    "Kimi-Linear-48B-A3B": 49.1,
    "MiniMax-M2": 228.7,
    "Nemotron-Nano-9B": 8.89,
    "Qwen3-Next-80B-A3B": 81.3,
    "Qwen3-VL-8B": 8.77,
    "Qwen3.5-122B-A10B": 125.1,
}


@pytest.mark.parametrize("name", TOTALS)
def test_published_sizes(name: str) -> None:
    weights = weights_by_config(read_model(MODELS / name))
    assert weights is not None and weights.source == "config" and weights.unknown == ()
    assert weights.total_bytes == pytest.approx(TOTALS[name], rel=0.002)


@pytest.mark.parametrize("name", PARAMETERS)
def test_published_parameters(name: str) -> None:
    model = read_model(MODELS / name)
    plain = replace(model, quantization=None)
    weights = weights_by_config(plain)
    assert weights is not None
    assert weights.total_bytes / 2e9 == pytest.approx(PARAMETERS[name], rel=0.01)


# Other families: the architecture numbers of a published model and its billions of parameters (Qwen3.5: with MTP)
FAMILIES = json.loads((MODELS.parent / "model_parameters.json").read_text())


@pytest.mark.parametrize("name", FAMILIES)
def test_published_parameters_of_other_families(tmp_path: Path, name: str) -> None:
    weights = weights_by_config(config(tmp_path, FAMILIES[name]["config"]))
    assert weights is not None
    assert weights.total_bytes / 2e9 == pytest.approx(FAMILIES[name]["billions"], rel=0.005)


def config(tmp_path: Path, fields: dict[str, Any]) -> ModelFacts:
    (tmp_path / "config.json").write_text(json.dumps(fields))
    return read_model(tmp_path / "config.json")


QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16"}
BIGGER: list[tuple[dict[str, Any], int]] = [
    (
        QWEN2
        | {
            "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4,
        },
        15_231_233_024,
    ),  # Qwen2.5-7B
    (
        {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
            "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
            "num_attention_heads": 64, "num_key_value_heads": 8,
        },
        141_107_412_992,
    ),  # Llama 3.1 70B
    (
        json.loads((MODELS / "gpt-oss-20b" / "config.json").read_text())
        | {
            "num_hidden_layers": 36, "num_local_experts": 128,
            "layer_types": ["sliding_attention", "full_attention"] * 18,
        },
        65_248_815_744,
    ),  # gpt-oss-120b
]  # fmt: skip


@pytest.mark.parametrize(("fields", "total"), BIGGER, ids=["Qwen2.5-7B", "Llama-3.1-70B", "gpt-oss-120b"])
def test_published_sizes_of_others(tmp_path: Path, fields: dict[str, Any], total: int) -> None:
    weights = weights_by_config(config(tmp_path, fields))
    assert weights is not None and weights.total_bytes == pytest.approx(total, rel=0.002)


# what one rank of a real server took for its weights (GiB), all of it split by tensor parallelism
SPLIT = {
    "llama31_8b_h100_fa3_2025_03": 0.02,
    "qwen3_8b_b200": 0.01,
    "qwen3_30b_a3b_fp8_h100": 0.01,
    "granite_4_h_micro_16gb": 0.02,
    "qwen35_9b_2xrtx4090": 0.02,
    "qwen38_27b_gb10": 0.02,
    "qwen35_4b_h200": 0.025,
    "qwq_32b_4xl4": 0.03,  # and communication buffers of 4 ranks
    "qwen3_14b_4x24gb": 0.04,
    "kimi_k25_8xmi355x": 0.05,  # its vision tower is not in this config
}


@pytest.mark.parametrize("name", SPLIT)
def test_what_real_servers_took(tmp_path: Path, name: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text())
    weights = weights_by_config(config(tmp_path, case["config"]))
    assert weights is not None
    whole = weights.bytes_of("replicated", "norm")
    shared = weights.total_bytes - whole - weights.bytes_of("mtp", "mtp_embedding")
    rank = (shared / case["tp"] + whole) / 2**30
    assert rank == pytest.approx(case["printed"]["weights_gib"], rel=SPLIT[name])


def test_parts_that_are_split_in_different_ways() -> None:
    weights = weights_by_config(read_model(MODELS / "DeepSeek-V3"))
    assert weights is not None
    assert weights.bytes_of("mtp") / 1e9 == pytest.approx(11.7, rel=0.03)
    assert weights.bytes_of("mtp_embedding") == 2 * 129280 * 7168 * 2
    assert weights.bytes_of("embedding") == weights.bytes_of("lm_head") == 129280 * 7168 * 2
    assert weights.bytes_of("experts") > 0.94 * weights.total_bytes
    down_projections = 61 * 7168 * (1536 + 576)
    assert weights.bytes_of("replicated") == pytest.approx(down_projections + 58 * 256 * 7168 * 2, rel=0.01)
    assert {g.dtype for g in weights.groups if g.part == "experts"} == {"F8_E4M3", "F32"}


QUANTIZED: list[tuple[dict[str, Any], float]] = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / 128**2),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, 0.5 + 0.5 / 128 + 2 / 128),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5 + 1 / 16),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, 1),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {
                "g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}}
            },
        },
        0.5 + 2 / 32,
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
        },
        1 + 2 / 4096,
    ),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 0.5 + 4 / 64),
]


@pytest.mark.parametrize(("quantization", "bytes_each"), QUANTIZED)
def test_quantized_layers(tmp_path: Path, quantization: dict[str, Any], bytes_each: float) -> None:
    raw = json.loads((MODELS / "Qwen3-8B" / "config.json").read_text())
    weights = weights_by_config(config(tmp_path, raw | {"quantization_config": quantization}))
    assert weights is not None
    numbers = 36 * 3 * 4096 * 12288
    assert weights.bytes_of("mlp") / numbers == pytest.approx(bytes_each, rel=0.002)
    assert weights.bytes_of("lm_head") == 151936 * 4096 * 2  # left as it was


@pytest.mark.parametrize(
    "ignored",
    [
        "re:.*mlp.*",
        "model.layers.*.mlp*",
        "model.layers.0.mlp",
        "language_model.model.layers.0.mlp.down_proj",
    ],
)
def test_modules_that_were_not_converted(tmp_path: Path, ignored: str) -> None:
    raw = json.loads((MODELS / "Qwen3-8B" / "config.json").read_text())
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    all_of_it = weights_by_config(config(tmp_path, raw | {"quantization_config": fp8}))
    left = weights_by_config(
        config(tmp_path, raw | {"quantization_config": fp8 | {"modules_to_not_convert": [ignored]}})
    )
    assert all_of_it is not None and left is not None
    assert left.bytes_of("mlp") > all_of_it.bytes_of("mlp")
    assert left.bytes_of("attention") == all_of_it.bytes_of("attention")


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "some_new_family"},
        {"hidden_size": None},
        {"torch_dtype": None},
        {"quantization_config": {"quant_method": "a_new_method"}},
        {"intermediate_size": "x"},
        {"num_hidden_layers": 10**8},
    ],
)
def test_what_the_config_does_not_tell_is_not_guessed(tmp_path: Path, change: dict[str, Any]) -> None:
    raw = json.loads((MODELS / "Qwen3-8B" / "config.json").read_text())
    assert weights_by_config(config(tmp_path, raw | change)) is None


def test_a_vision_tower_of_unknown_size_is_named(tmp_path: Path) -> None:
    raw = json.loads((MODELS / "Qwen3-VL-8B" / "config.json").read_text())
    model = config(tmp_path, raw | {"vision_config": {"model_type": "something_else"}})
    weights = weights_by_config(model)
    assert weights is not None and weights.unknown == ("vision",)
    assert parameters(model) == pytest.approx(8.19e9, rel=0.001)


def test_files_go_before_the_config(tmp_path: Path) -> None:
    from model_folders import write_model

    raw = json.loads((MODELS / "Qwen3-8B" / "config.json").read_text())
    write_model(tmp_path, {"model.safetensors": {"lm_head.weight": ("BF16", 4)}}, raw)
    model = read_model(tmp_path)
    found = weights_of(model)
    assert found is not None and found.source == "files"
    (tmp_path / "model.safetensors").unlink()
    found = weights_of(read_model(tmp_path))
    assert found is not None and found.source == "config"


_numbers = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10**12)
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=2)
)


@given(
    st.sampled_from(sorted(p.name for p in MODELS.iterdir())),
    st.data(),
)
def test_any_change_of_a_config_is_computed_or_not_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    raw = json.loads((MODELS / name / "config.json").read_text())
    part = raw.get("text_config", raw)
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(_numbers)
    weights = weights_by_config(config(tmp_path_factory.getbasetemp(), raw))
    assert weights is None or weights.total_bytes == sum(g.bytes for g in weights.groups)
