"""Which kinds of layers a model has: full attention, and what keeps a state instead of a KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LINEAR_WORDS = (
    "linear",
    "mamba",
    "recurrent",
    "conv",
    "gdn",
    "deltanet",
    "delta_net",
    "kda",
    "lightning",
    "ssm",
)
_MAMBA_FIELDS = (
    "mamba_d_state",
    "mamba_num_heads",
    "mamba_n_heads",
    "ssm_state_size",
    "mamba_d_ssm",
    "mamba_head_dim",
)
_LISTS = (
    "layer_types",
    "layers_block_type",
    "attn_type_list",
    "decoder_attention_types",
    "block_types",
    "hybrid_override_pattern",
)


def is_hybrid(text: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """Linear attention (GDN, KDA, Mamba, lightning, short convolution) beside full attention."""
    return linear_kind(text, raw) is not None


def linear_kind(text: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    """``gdn``, ``kda``, ``mamba``, ``lightning``, ``conv`` or ``linear`` for a hybrid model, else None."""
    kinds = _layer_kinds(text)
    has_linear = any(_is_linear(k) for k in kinds)
    has_full = any(not _is_linear(k) for k in kinds)
    if kinds and has_linear and not has_full and not _parallel(text):
        return None  # every layer keeps a state: not a hybrid
    if kinds and not has_linear:
        return None
    linear_config = text.get("linear_attn_config")
    if isinstance(linear_config, dict):  # Kimi Linear: kda_layers, full_attn_layers
        return "kda"
    if text.get("linear_num_value_heads") and (has_linear or text.get("full_attention_interval") != 1):
        return "gdn"
    if any(text.get(name) for name in _MAMBA_FIELDS) and text.get("model_type") not in ("mamba", "mamba2"):
        return "mamba"
    if not has_linear:
        return "lightning" if _bailing_hybrid(text, raw) else None
    words = " ".join(kinds).lower()
    for word, kind in (
        ("mamba", "mamba"),
        ("conv", "conv"),
        ("kda", "kda"),
        ("delta", "gdn"),
        ("gdn", "gdn"),
    ):
        if word in words:
            return kind
    return "lightning" if _minimax(text) else "linear"


def _layer_kinds(text: Mapping[str, Any]) -> list[str]:
    """The kind of each layer as the config names it; empty when it names none."""
    for name in _LISTS:
        value = text.get(name)
        if (
            isinstance(value, str) and value and set(value) <= set("M*-E|")
        ):  # Nemotron-H: M mamba, * attention, - MLP
            return [{"M": "mamba", "*": "attention"}[c] for c in value if c in "M*"]
        if isinstance(value, list) and value:
            if name == "attn_type_list":  # MiniMax: 0 lightning, 1 full
                return ["full_attention" if v == 1 else "lightning" for v in value]
            return [v for v in value if isinstance(v, str) and v not in ("moe", "mlp")]
    return []


def _is_linear(kind: str) -> bool:
    lowered = kind.lower()
    return any(word in lowered for word in _LINEAR_WORDS)


def _parallel(text: Mapping[str, Any]) -> bool:
    """Falcon-H1: attention and Mamba side by side in each layer."""
    return text.get("model_type") == "falcon_h1"


def _minimax(text: Mapping[str, Any]) -> bool:
    return isinstance(text.get("attn_type_list"), list) or str(text.get("model_type", "")).startswith(
        "minimax"
    )


def _bailing_hybrid(text: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    size = text.get("layer_group_size")
    return isinstance(size, int) and size > 1 and "hybrid" in str(raw.get("model_type", "")).lower()
