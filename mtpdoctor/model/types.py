"""Facts of a model, read from its folder or config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model; None means not known or not applicable."""

    path: str
    architecture: str | None
    model_type: str | None
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    experts: int | None = None
    vocab_size: int | None = None
    context_length: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    mtp_layers: int | None = None
    full_attention_interval: int | None = None
    linear_key_heads: int | None = None
    linear_value_heads: int | None = None
    is_hybrid: bool | None = None  # linear attention (GDN/Mamba) beside full attention
    linear_kind: str | None = None  # of a hybrid model: "gdn", "kda", "mamba", "lightning", "conv"
    sliding_window: int | None = None  # tokens, where some layers look no further back
    is_mla: bool | None = None
    is_moe: bool | None = None
    problems: tuple[str, ...] = ()  # malformed or missing fields, files
    raw: Mapping[str, Any] = field(default_factory=dict)
