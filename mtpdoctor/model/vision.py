"""The matrices of a vision tower, for the two kinds whose config.json says enough: Qwen's and SigLIP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.model.shapes import Matrix, Unknown
from mtpdoctor.model.types import ModelFacts

_QWEN = ("qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")


def vision_matrices(model: ModelFacts) -> Iterator[Matrix] | None:
    """None where the tower is of another kind, or is missing numbers."""
    config = model.raw.get("vision_config")
    if not isinstance(config, dict) or any(model.raw.get(n) for n in ("audio_config", "thinker_config")):
        return None
    kind = str(config.get("model_type", model.model_type or ""))
    try:
        if kind in _QWEN and "depth" in config:
            return iter(_qwen(config, kind))
        if kind == "siglip_vision_model":
            return iter(_siglip(config, model))
    except Unknown:
        return None
    return None


def _number(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name, default)
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise Unknown(name)
    return value


def _qwen(config: Mapping[str, Any], kind: str) -> list[Matrix]:
    hidden, width = _number(config, "hidden_size"), _number(config, "intermediate_size")
    depth, out = _number(config, "depth"), _number(config, "out_hidden_size")
    patch = _number(config, "patch_size") ** 2 * _number(config, "temporal_patch_size", 2)
    merged = hidden * _number(config, "spatial_merge_size", 2) ** 2
    deep = config.get("deepstack_visual_indexes")
    mergers = 1 + (len(deep) if isinstance(deep, list) else 0)
    matrices = 3 if kind == "qwen2_5_vl" else 2  # gated there
    return [
        _tower("patch_embed", hidden, _number(config, "in_channels", 3) * patch),
        _tower("pos_embed", _number(config, "num_position_embeddings", 0), hidden),
        _tower("blocks.attn", 4 * hidden, hidden + 1, depth),
        _tower("blocks.mlp", matrices * width, hidden + 1, depth),
        _tower("merger.fc1", merged, merged, mergers),
        _tower("merger.fc2", out, merged, mergers),
    ]


def _siglip(config: Mapping[str, Any], model: ModelFacts) -> list[Matrix]:
    hidden, width = _number(config, "hidden_size"), _number(config, "intermediate_size")
    layers, patch = _number(config, "num_hidden_layers"), _number(config, "patch_size")
    patches = (_number(config, "image_size") // max(1, patch)) ** 2
    return [
        _tower("patch_embedding", hidden, 3 * patch**2),
        _tower("position_embedding", patches, hidden),
        _tower("layers.self_attn", 4 * hidden, hidden + 1, layers),
        _tower("layers.mlp", 2 * width, hidden + 1, layers),
        _tower("projector", hidden, model.hidden_size or 0),
    ]


def _tower(name: str, rows: int, columns: int, copies: int = 1) -> Matrix:
    return Matrix(f"visual.{name}", "vision", rows, columns, copies, linear=False)
