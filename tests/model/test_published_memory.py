"""The collected launches are consistent: what was printed follows from the architecture numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.model.config import read_model
from mtpdoctor.model.layers import KV_KINDS, STATE_KINDS

CASES = sorted((Path(__file__).parent.parent / "data" / "published_memory").glob("*.json"))
GIB = 2**30


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 15
    hybrids = [c for c in CASES if "state_slots" in load(c)["printed"]]
    assert len(hybrids) >= 4


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_kv_pool_follows_from_the_architecture(path: Path, tmp_path: Path) -> None:
    case = load(path)
    assert set(case) >= {"model", "config", "gpu", "tp", "flags", "release", "printed", "ref"}
    (tmp_path / "config.json").write_text(json.dumps(case["config"]))
    model = read_model(tmp_path / "config.json")
    assert model.problems == ()
    printed = case["printed"]
    layers = sum(kind in KV_KINDS for kind in model.layer_kinds)
    ranks = 1 if case["flags"].get("enable_dp_attention") else case["tp"]
    if model.is_mla:
        assert model.kv_lora_rank is not None and model.rope_head_dim is not None
        token = layers * (model.kv_lora_rank + model.rope_head_dim) * 2
        assert token * printed["kv_tokens"] / GIB == pytest.approx(printed["kv_gib"], abs=0.011)
    else:
        assert model.kv_heads is not None and model.head_dim is not None
        token = layers * max(1, model.kv_heads // ranks) * model.head_dim * 2
        assert token * printed["kv_tokens"] / GIB == pytest.approx(printed["k_gib"], abs=0.011)


@pytest.mark.parametrize("path", [c for c in CASES if "ssm_gib" in load(c)["printed"]], ids=lambda p: p.stem)
def test_the_state_follows_from_the_architecture(path: Path, tmp_path: Path) -> None:
    case = load(path)
    (tmp_path / "config.json").write_text(json.dumps(case["config"]))
    model = read_model(tmp_path / "config.json")
    text = model.raw.get("text_config", model.raw)
    layers = sum(kind in STATE_KINDS for kind in model.layer_kinds)
    if model.linear_kind == "gdn":
        assert model.linear_value_heads and model.linear_value_dim and model.linear_key_dim
        numbers = model.linear_value_heads * model.linear_value_dim * model.linear_key_dim
    else:
        heads = text.get("mamba_num_heads", text.get("mamba_n_heads"))
        numbers = heads * text.get("mamba_head_dim", text.get("mamba_d_head"))
        numbers *= text.get("ssm_state_size", text.get("mamba_d_state"))
    slots = case["printed"]["state_slots"] + 1
    bytes_each = 2 if "bfloat16" in case.get("notes", "") else 4
    total = layers * numbers * slots * bytes_each / case["tp"] / GIB
    assert total == pytest.approx(case["printed"]["ssm_gib"], abs=0.011)
