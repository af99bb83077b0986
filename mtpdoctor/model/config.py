"""Reading a model's config.json into facts, whatever its family calls them.

Field names and the order in which they are looked up follow SGLang's own ``ModelConfig`` and
``get_hf_text_config`` (0.4.6 to 0.5.23), so that a fact here is what SGLang will see.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.model.folder import known_files, snapshot_revision, with_weights
from mtpdoctor.model.layers import is_hybrid, layer_kinds, linear_kind
from mtpdoctor.model.locate import cached_snapshot
from mtpdoctor.model.quantization import Quantization, read_quantization
from mtpdoctor.model.reading import Unreadable, parse_object, read_some
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import replace

_NO_CONFIG = (".gguf", ".safetensors", ".bin", ".pt")
_MAX_BYTES = 16 * 1024 * 1024
_TEXT_CONFIGS = ("thinker_config", "llm_config", "language_config", "text_config")
_CONTEXT = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS = (
    "n_head_kv",
    "num_kv_heads",
    "num_key_value_heads",
    "multi_query_group_num",
    "num_attention_groups",
)
_EXPERTS = (
    "num_experts",
    "n_routed_experts",
    "num_local_experts",
    "moe_num_experts",
    "num_routed_experts",
    "n_experts",
)
_MTP = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_layers",
    "mtp_num_layers",
    "num_mtp_modules",
    "n_mtp_layers",
    "num_nextn_layers",
)
_EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "num_experts_per_topk",
    "top_k_experts",
    "n_activated_experts",
)
_FALCON = ("falcon", "RefinedWeb", "RefinedWebModel")


def read_model(path: str | Path, *, weights: bool = True) -> ModelFacts:
    """Facts of the model in a folder, of a Hub id in the local Hugging Face cache, or of one config.json.

    ``weights``: look at the weight files of the folder, too (their index and headers, never the tensors).
    What is malformed stands in ``problems`` and the facts it would have given are None. Raises
    UserError when there is no such path or no config.json in it.
    """
    given = Path(path)
    folder: Path | None = given if given.is_dir() else None
    file = given / "config.json" if folder else given
    if folder is None and not os.path.lexists(given):
        folder = cached_snapshot(str(path))
        file = folder / "config.json" if folder else given
    try:
        data, _ = read_some(file, _MAX_BYTES)
        raw, problems = _parse(data)
    except FileNotFoundError:
        raise _missing(given, file) from None
    except Unreadable as e:
        hint = "give the model's folder or its config.json" if file.suffix in _NO_CONFIG else None
        raise UserError(f"{file}: cannot be read as a config.json: {e}", hint=hint) from None
    text = text_config(raw)
    quantization, more = read_quantization(raw, text, file.parent)
    facts = _facts(str(path), raw, quantization, problems + more)
    if folder is None:
        return facts
    facts = replace(facts, files=known_files(folder), revision=snapshot_revision(folder))
    return with_weights(facts, folder) if weights else facts


def model_of(raw: dict[str, Any], where: str) -> ModelFacts:
    """The facts of a config.json that is at hand as text, without its folder."""
    quantization, problems = read_quantization(raw, text_config(raw), None)
    return _facts(where, raw, quantization, problems)


def _missing(given: Path, file: Path) -> UserError:
    if os.path.islink(file):
        return UserError(
            f"{file}: the link leads nowhere",
            hint="the download is not finished, or its cache is not mounted here; download the model again",
        )
    if given.is_dir():
        return UserError(
            f"{given}: no config.json in this folder",
            hint="give the folder that holds the model's config.json (in a Hub cache: snapshots/<revision>)",
        )
    return UserError(
        f"{given}: no such folder or file", hint="give the model's folder on this machine, or a config.json"
    )


def _parse(data: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        return parse_object(data), ()
    except Unreadable as e:
        return {}, (f"config.json {e}",)


def _facts(
    path: str, raw: dict[str, Any], quantization: Quantization, problems: tuple[str, ...]
) -> ModelFacts:
    reader = _Reader(text_config(raw), raw)
    architecture = _architecture(raw)
    if raw and architecture is None:
        reader.problems.append("config.json: 'architectures' is missing or not a list of names")
    text = reader.text
    heads = reader.number(_HEADS)
    hidden = reader.number(_HIDDEN)
    experts = _experts(reader)
    is_mla = bool(text.get("kv_lora_rank")) and text.get("use_mla") is not False if raw else None
    model_type = raw.get("model_type")
    layers = _layers(reader)
    window = _sliding_window(reader)
    linear = text.get("linear_attn_config")
    linear_reader = _Reader(linear if isinstance(linear, dict) else text, raw)
    return ModelFacts(
        path=path,
        architecture=architecture,
        model_type=model_type if isinstance(model_type, str) else None,
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=_kv_heads(reader, raw, heads),
        head_dim=_head_dim(reader, bool(is_mla), hidden, heads),
        experts=experts,
        vocab_size=reader.number(("vocab_size", "padded_vocab_size")),
        context_length=_context_length(reader),
        dtype=_dtype(text, raw),
        quantization=quantization.method,
        mtp_layers=_mtp_layers(reader),
        full_attention_interval=reader.number(("full_attention_interval", "full_attn_interval")),
        linear_key_heads=linear_reader.number(("linear_num_key_heads", "num_heads")),
        linear_value_heads=linear_reader.number(("linear_num_value_heads", "num_heads")),
        is_hybrid=is_hybrid(text, raw) if raw else None,
        is_mla=is_mla,
        is_moe=(experts or 0) > 1 if raw else None,
        linear_kind=linear_kind(text, raw),
        sliding_window=window,
        layer_kinds=layer_kinds(text, raw, layers, is_mla=bool(is_mla), window=window),
        linear_key_dim=linear_reader.number(("linear_key_head_dim",)) or _head_of(linear),
        linear_value_dim=linear_reader.number(("linear_value_head_dim",)) or _head_of(linear),
        linear_conv_kernel=linear_reader.number(
            (
                "linear_conv_kernel_dim",
                "short_conv_kernel_size",
                "conv_kernel",
                "mamba_d_conv",
                "conv_L_cache",
            )
        ),
        kv_lora_rank=reader.number(("kv_lora_rank",)) if is_mla else None,
        rope_head_dim=reader.number(("qk_rope_head_dim",)) if is_mla else None,
        experts_per_token=reader.number(_EXPERTS_PER_TOKEN),
        intermediate_size=reader.number(("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")),
        expert_intermediate_size=_expert_size(reader, experts),
        rope_scaling=_rope_scaling(reader),
        quantization_block=quantization.block,
        is_multimodal=_is_multimodal(raw) if raw else None,
        tied_embeddings=_tied(text, raw),
        v_head_dim=reader.number(("v_head_dim",)),
        shared_experts=_shared_experts(reader),
        problems=problems + tuple(reader.problems),
        raw=raw,
    )


def text_config(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model (itself when it is a plain text model)."""
    for key in _TEXT_CONFIGS:
        part = raw.get(key)
        if isinstance(part, dict):
            inner = part.get("text_config")
            return inner if isinstance(inner, dict) else part
    return raw


class _Reader:
    """Looks fields up in the text part, then in the whole; collects what is malformed."""

    def __init__(self, text: Mapping[str, Any], raw: Mapping[str, Any]) -> None:
        self.text = text
        self.raw = raw
        self.problems: list[str] = []

    def number(self, names: Iterable[str], *, everywhere: bool = False) -> int | None:
        """The first of ``names`` that is given, as a whole number of 0 or more."""
        parts = [self.text] if self.text is self.raw or not everywhere else [self.text, self.raw]
        for part in parts:
            for name in names:
                value = part.get(name)
                if value is None:
                    continue
                if isinstance(value, (list, dict)):  # one per layer: legal, and no single number
                    return None
                if not _is_count(value):
                    self.problems.append(f"config.json: '{name}' must be a whole number, not {value!r:.40}")
                    return None
                return int(value)
        return None


def _is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return 0 <= value < 1 << 63 and value == int(value)


def _architecture(raw: Mapping[str, Any]) -> str | None:
    names = raw.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def _experts(reader: _Reader) -> int | None:
    """Routed experts; a list (one per layer, or text and vision) counts by its largest."""
    parts = [reader.text, reader.text.get("ffn_config")]  # DBRX keeps it one level down
    for part in parts:
        if not isinstance(part, dict):
            continue
        for name in _EXPERTS:
            value = part.get(name)
            if isinstance(value, list) and value and all(type(v) is int for v in value):
                return max(value)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
            if value is not None and not isinstance(value, list):
                reader.problems.append(f"config.json: '{name}' must be a whole number, not {value!r:.40}")
                return None
    return None


def _kv_heads(reader: _Reader, raw: Mapping[str, Any], heads: int | None) -> int | None:
    new_falcon = raw.get("model_type") in _FALCON and raw.get("new_decoder_architecture")
    if reader.text.get("multi_query") is True and not new_falcon:
        return 1
    attention = reader.text.get("attn_config")
    if isinstance(attention, dict) and isinstance(attention.get("kv_n_heads"), int):
        return int(attention["kv_n_heads"])
    given = reader.number(_KV_HEADS)
    return heads if given is None else given


def _head_dim(reader: _Reader, is_mla: bool, hidden: int | None, heads: int | None) -> int | None:
    if is_mla:
        parts = [reader.number((name,)) for name in ("qk_nope_head_dim", "qk_rope_head_dim")]
        if None not in parts:
            return sum(p for p in parts if p is not None)
    given = reader.number(("head_dim", "attention_head_dim", "kv_channels"))
    if given:
        return given
    return hidden // heads if hidden and heads else None


def _context_length(reader: _Reader) -> int | None:
    base = reader.number(_CONTEXT)
    scaling = reader.text.get("rope_scaling")
    if base is None or not isinstance(scaling, dict):
        return base
    if "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3":
        return base
    factor = scaling.get("factor", 1)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 1e6:
        reader.problems.append(
            f"config.json: rope_scaling 'factor' must be a positive number, not {factor!r:.40}"
        )
        return base
    return int(base * factor)


def _sliding_window(reader: _Reader) -> int | None:
    if reader.text.get("use_sliding_window") is False:
        return None
    return reader.number(("sliding_window", "sliding_window_size", "attention_chunk_size"))


def _dtype(text: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    for part in (text, raw):
        for name in ("dtype", "torch_dtype"):
            value = part.get(name)
            if isinstance(value, str):
                return value.removeprefix("torch.")
    return None


def _layers(reader: _Reader) -> int | None:
    """A count, or the length of the pattern where the family gives only that (Nemotron-H)."""
    given = reader.number(_LAYERS)
    pattern = reader.text.get("hybrid_override_pattern")
    if given is None and isinstance(pattern, str) and pattern:
        return len(pattern)
    blocks = reader.text.get("layers_block_type")
    return len(blocks) if given is None and isinstance(blocks, list) and blocks else given


def _mtp_layers(reader: _Reader) -> int | None:
    """The number of MTP/next-n layers that the config counts."""
    if reader.text.get("use_mtp") is False:
        return 0
    return reader.number(_MTP, everywhere=True)


def _head_of(linear: object) -> int | None:
    size = linear.get("head_dim") if isinstance(linear, dict) else None
    return size if type(size) is int else None


def _expert_size(reader: _Reader, experts: int | None) -> int | None:
    """The width of one expert; families without a field of its own use intermediate_size."""
    names = (
        "moe_intermediate_size",
        "expert_ffn_hidden_size",
        "moe_ffn_hidden_size",
        "expert_intermediate_size",
    )
    for name in names:
        value = reader.text.get(name)
        if (
            isinstance(value, list) and value and all(type(v) is int for v in value)
        ):  # text and vision, per layer
            return max(value)
    given = reader.number(names)
    return given if given or not experts else reader.number(("intermediate_size", "ffn_hidden_size"))


def _shared_experts(reader: _Reader) -> int | None:
    for name in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"):
        value = reader.text.get(name)
        if type(value) is int and value >= 0:
            return value
        if isinstance(value, list) and value and all(type(v) is int for v in value):
            return max(value)
    return 1 if reader.text.get("shared_expert_intermediate_size") else None


def _rope_scaling(reader: _Reader) -> str | None:
    """The method and factor of a stretched context: "yarn x4"."""
    for name in ("rope_scaling", "rope_parameters"):
        scaling = reader.text.get(name)
        if not isinstance(scaling, dict):
            continue
        if isinstance(scaling.get("full_attention"), dict):  # one set for each kind of layer
            scaling = scaling["full_attention"]
        kind = scaling.get("rope_type", scaling.get("type"))
        if not isinstance(kind, str) or kind in ("default", "mrope"):
            continue
        factor = scaling.get("factor")
        number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
        return f"{kind} x{factor:g}" if number and factor is not None else kind
    return None


def _is_multimodal(raw: Mapping[str, Any]) -> bool:
    parts = ("vision_config", "audio_config", "thinker_config", "vision_tower", "mm_vision_tower", "visual")
    return any(raw.get(name) for name in (*parts, "vit_config", "vision_model", "sound_config"))


def _tied(text: Mapping[str, Any], raw: Mapping[str, Any]) -> bool | None:
    """Whether the LM head is the embedding; unnamed, it is as the family's config class has it."""
    for part in (raw, text):
        for name in ("tie_word_embeddings", "tie_embedding"):
            value = part.get(name)
            if isinstance(value, bool):
                return value
    model_type = str(text.get("model_type", raw.get("model_type", ""))).lower()
    if not raw:
        return None
    return model_type.startswith(("gemma", "cohere", "gpt2", "falcon_mamba", "smollm", "lfm2", "bloom", "t5"))
