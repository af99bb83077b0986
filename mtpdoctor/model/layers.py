"""Which kinds of layers a model has: full attention, and what keeps a state instead of a KV cache.

The ways in which families say it, and SGLang's own reading of them (``srt/configs``, ``get_hybrid_layer_ids``
of ``model_config.py``, 0.4.6 to 0.5.23), so that a layer here is counted as SGLang counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LINEAR_WORDS = (
    "linear",
    "recurrent",
    "gdn",
    "deltanet",
    "delta_net",
    "kda",
    "lightning",
    "minimax",
    "jet",
)
_MAMBA_WORDS = ("mamba", "ssm")
_SLIDING_WORDS = ("sliding", "swa", "local", "chunked", "window")
_MLP_WORDS = ("mlp", "moe", "ffn", "dense")
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
    "hybrid_layer_pattern",
)
_NEMOTRON = {"M": "mamba", "*": "full", "-": "mlp", "E": "mlp"}
_MAX_LAYERS = 4096  # more than any model; keeps a hostile layer count from filling the memory
STATE_KINDS = ("linear", "mamba", "conv", "full+mamba")  # layers that keep a state of fixed size
KV_KINDS = ("full", "sliding", "mla", "full+mamba")  # layers that keep a KV cache


def is_hybrid(text: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """Linear attention (GDN, KDA, Mamba, lightning, short convolution) beside full attention."""
    return linear_kind(text, raw) is not None


def linear_kind(text: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    """``gdn``, ``kda``, ``mamba``, ``lightning``, ``conv`` or ``linear`` for a hybrid model, else None."""
    words = _named(text)
    kinds = [k for k in map(_kind, words) if k != "mlp"]
    has_linear = any(k in STATE_KINDS for k in kinds)
    has_full = any(k not in STATE_KINDS for k in kinds)
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
        return ("kda" if text.get("short_conv_kernel_size") else "lightning") if _bailing(text, raw) else None
    joined = " ".join(words).lower()
    for word, kind in (
        ("mamba", "mamba"),
        ("conv", "conv"),
        ("kda", "kda"),
        ("delta", "gdn"),
        ("gdn", "gdn"),
    ):
        if word in joined:
            return kind
    return "lightning" if _minimax(text) else "linear"


def layer_kinds(
    text: Mapping[str, Any], raw: Mapping[str, Any], layers: int | None, *, is_mla: bool, window: int | None
) -> tuple[str, ...]:
    """The kind of every layer, first to last, in the words of ``ModelFacts.layer_kinds``.

    Empty when the number of layers is not known or the config contradicts itself about it.
    """
    if layers is None or not 0 < layers <= _MAX_LAYERS:
        return ()
    if _parallel(text):
        return ("full+mamba",) * layers
    full = "mla" if is_mla else "full"
    kinds = [full if k == "full" else k for k in map(_kind, _named(text))]
    if not kinds:
        kinds = [full if k == "full" else k for k in _by_period(text, raw, layers, window)]
    elif text.get("block_types") and len(kinds) < layers:  # RecurrentGemma: one period of the pattern
        kinds = [kinds[i % len(kinds)] for i in range(layers)]
    # a list may go on for the MTP layers (Step 3.5, DeepSeek's compress_ratios)
    return tuple(kinds[:layers]) if len(kinds) >= layers else ()


def _by_period(text: Mapping[str, Any], raw: Mapping[str, Any], layers: int, window: int | None) -> list[str]:
    """Kinds that follow from a period or from lists of layer numbers."""
    number = range(layers)
    linear = text.get("linear_attn_config")
    if isinstance(linear, dict):
        kda = linear.get("kda_layers")
        chosen = set(_ints(kda))  # counted from 1
        return ["linear" if i + 1 in chosen else "full" for i in number]
    every = _period(text, "full_attention_interval", "full_attn_interval")
    if every and linear_kind(text, raw):
        return ["full" if (i + 1) % every == 0 else "linear" for i in number]
    group = text.get("layer_group_size")
    if _bailing(text, raw):
        if isinstance(group, list):
            return ["linear" if v == 1 else "full" for v in group]
        return ["full" if (i + 1) % _period(text, "layer_group_size") == 0 else "linear" for i in number]
    if any(text.get(name) for name in _MAMBA_FIELDS):
        return _mamba_layers(text, layers)
    return _sliding_layers(text, raw, layers, window)


def _mamba_layers(text: Mapping[str, Any], layers: int) -> list[str]:
    every = _period(text, "attn_layer_period")
    if every:  # Jamba
        offset = text.get("attn_layer_offset")
        start = offset if isinstance(offset, int) else 0
        return ["full" if i % every == start else "mamba" for i in range(layers)]
    full = set(_ints(text.get("attn_layer_indices")))  # Bamba
    return ["full" if i in full else "mamba" for i in range(layers)]


def _sliding_layers(
    text: Mapping[str, Any], raw: Mapping[str, Any], layers: int, window: int | None
) -> list[str]:
    number = range(layers)
    local = _ints(text.get("local_layer_ids"))
    if local:
        return ["sliding" if i in local else "full" for i in number]
    pattern = text.get("sliding_window_pattern", text.get("_sliding_window_pattern"))
    if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:  # EXAONE 4
        return ["full" if pattern[i % len(pattern)] == "G" else "sliding" for i in number]
    model_type = str(text.get("model_type", ""))
    every = _period(text, "sliding_window_pattern", "_sliding_window_pattern")
    if not every:
        every = {"gemma2": 2, "gemma3_text": 6, "cohere2": 4, "llama4_text": 4}.get(model_type, 0)
    if not every and "Llama4ForConditionalGeneration" in _names(raw):
        every, model_type = 4, "llama4_text"
    if every and (window or model_type.startswith(("gemma", "llama4"))):
        if model_type == "gemma2":
            return ["full" if i % 2 else "sliding" for i in number]
        return ["full" if (i + 1) % every == 0 else "sliding" for i in number]
    # A window for all layers alike (Mistral 7B v0.1, Phi-3): SGLang keeps the whole KV cache of those.
    return ["full"] * layers


def _named(text: Mapping[str, Any]) -> list[str]:
    """The kind of each layer as the config names it; empty when it names none."""
    for name in _LISTS:
        value = text.get(name)
        if isinstance(value, str) and value and set(value) <= set("M*-E|"):
            return [_NEMOTRON[c] for c in value if c in _NEMOTRON]
        if isinstance(value, list) and value:
            if name == "attn_type_list":  # MiniMax: 0 lightning, 1 full
                return ["full_attention" if v == 1 else "lightning" for v in value]
            if name == "hybrid_layer_pattern":  # MiMo-V2: 1 sliding, 0 full
                return ["sliding_attention" if v == 1 else "full_attention" for v in value]
            words = [v for v in value if isinstance(v, str)]
            if words:
                return words
    return []


def _kind(word: str) -> str:
    lowered = word.lower()
    if any(w in lowered for w in _MAMBA_WORDS):
        return "mamba"
    if "conv" in lowered:
        return "conv"
    if any(w in lowered for w in _LINEAR_WORDS):
        return "linear"
    if any(w in lowered for w in _SLIDING_WORDS):
        return "sliding"
    if lowered in _MLP_WORDS:
        return "mlp"
    return "full"


def _period(text: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = text.get(name)
        if type(value) is int and value > 0:
            return value
    return 0


def _ints(value: object) -> list[int]:
    return [v for v in value if type(v) is int] if isinstance(value, list) else []


def _names(raw: Mapping[str, Any]) -> list[Any]:
    value = raw.get("architectures")
    return value if isinstance(value, list) else []


def _parallel(text: Mapping[str, Any]) -> bool:
    """Falcon-H1: attention and Mamba side by side in each layer."""
    return text.get("model_type") == "falcon_h1"


def _minimax(text: Mapping[str, Any]) -> bool:
    return isinstance(text.get("attn_type_list"), list) or str(text.get("model_type", "")).startswith(
        "minimax"
    )


def _bailing(text: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    size = text.get("layer_group_size")
    several = isinstance(size, list) or (type(size) is int and size > 1)
    return several and (
        "hybrid" in str(raw.get("model_type", "")).lower() or "bailing" in str(_names(raw)).lower()
    )
