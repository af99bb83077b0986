"""Reading a model's config.json into facts, whatever its family calls them.

Field names and the order in which they are looked up follow SGLang's own ``ModelConfig`` and
``get_hf_text_config`` (0.4.6 to 0.5.23), so that a fact here is what SGLang will see.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.model.layers import is_hybrid, linear_kind
from mtpdoctor.model.types import ModelFacts

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
)
_FALCON = ("falcon", "RefinedWeb", "RefinedWebModel")


def read_model(path: str | Path) -> ModelFacts:
    """Facts of the model in a folder, or of one config.json.

    What is malformed stands in ``problems`` and the facts it would have given are None. Raises
    UserError when there is no such path or no config.json in it.
    """
    given = Path(path)
    file = given / "config.json" if given.is_dir() else given
    try:
        with open(file, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise _missing(given) from None
    except OSError as e:
        raise UserError(f"{file}: cannot be read: {e.strerror or e}") from None
    raw, problems = _parse(data)
    quantization, more = _quantization(raw, file.parent)
    return _facts(str(path), raw, quantization, problems + more)


def _missing(given: Path) -> UserError:
    if given.is_dir():
        return UserError(
            f"{given}: no config.json in this folder",
            hint="give the folder that holds the model's config.json (in a Hub cache: snapshots/<revision>)",
        )
    return UserError(
        f"{given}: no such folder or file", hint="give the model's folder on this machine, or a config.json"
    )


def _parse(data: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    if len(data) > _MAX_BYTES:
        return {}, ("config.json is over 16 MiB: not a model's configuration",)
    if data.startswith(b"version https://git-lfs"):
        return {}, ("config.json is a Git LFS pointer, not the file itself (git lfs pull)",)
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as e:
        return {}, (f"config.json is not valid JSON: {e.msg}, line {e.lineno} column {e.colno}",)
    except (UnicodeDecodeError, ValueError, RecursionError) as e:
        return {}, (f"config.json is not valid JSON: {e}",)
    if not isinstance(raw, dict):
        return {}, (f"config.json holds a {type(raw).__name__}, not an object",)
    return raw, ()


def _facts(path: str, raw: dict[str, Any], quantization: str | None, problems: tuple[str, ...]) -> ModelFacts:
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
    kind = linear_kind(text, raw)
    return ModelFacts(
        path=path,
        architecture=architecture,
        model_type=model_type if isinstance(model_type, str) else None,
        layers=reader.number(_LAYERS),
        hidden_size=hidden,
        heads=heads,
        kv_heads=_kv_heads(reader, raw, heads),
        head_dim=_head_dim(reader, bool(is_mla), hidden, heads),
        experts=experts,
        vocab_size=reader.number(("vocab_size", "padded_vocab_size")),
        context_length=_context_length(reader),
        dtype=_dtype(text, raw),
        quantization=quantization,
        mtp_layers=reader.number(_MTP, everywhere=True),
        full_attention_interval=reader.number(("full_attention_interval", "full_attn_interval")),
        linear_key_heads=reader.number(("linear_num_key_heads",)),
        linear_value_heads=reader.number(("linear_num_value_heads",)),
        is_hybrid=is_hybrid(text, raw) if raw else None,
        is_mla=is_mla,
        is_moe=(experts or 0) > 1 if raw else None,
        linear_kind=kind,
        sliding_window=_sliding_window(reader),
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
    return math.isfinite(value) and value >= 0 and value == int(value)


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


def _quantization(raw: Mapping[str, Any], folder: Path) -> tuple[str | None, tuple[str, ...]]:
    """The checkpoint's quantization method, under SGLang's name for it."""
    config = raw.get("quantization_config")
    if config is None:
        config = text_config(raw).get("quantization_config")
    if config is None:
        config = raw.get("compression_config")
    if config is None:
        config, problem = _standalone_quantization(folder)
        if problem:
            return None, (problem,)
    if config is None:
        return None, ()
    if not isinstance(config, dict):
        return None, (f"config.json: 'quantization_config' must be an object, not {config!r:.40}",)
    method = config.get("quant_method")
    if method in (None, "modelopt"):
        return _modelopt(config) or method, ()
    return (method.lower(), ()) if isinstance(method, str) else (None, (f"quant_method is {method!r:.40}",))


def _standalone_quantization(folder: Path) -> tuple[Any, str | None]:
    """ModelOpt's hf_quant_config.json and ModelSlim's description beside config.json, if any."""
    try:
        if (folder / "quant_model_description.json").is_file():
            return {"quant_method": "modelslim"}, None
        file = folder / "hf_quant_config.json"
        if not file.is_file() or file.stat().st_size > _MAX_BYTES:
            return None, None
        content = json.loads(file.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as e:
        return None, f"hf_quant_config.json cannot be read: {e}"
    return content if isinstance(content, dict) else None, None


def _modelopt(config: Mapping[str, Any]) -> str | None:
    inner = config.get("quantization")
    config = inner if isinstance(inner, dict) else config
    algorithm = config.get("quant_algo")
    if not isinstance(algorithm, str):
        return None
    if algorithm == "MIXED_PRECISION":
        layers = config.get("quantized_layers")
        used = layers.values() if isinstance(layers, dict) else ()
        fp4 = any(
            "NVFP4" in str(layer.get("quant_algo")).upper() for layer in used if isinstance(layer, dict)
        )
        return "modelopt_mixed" if fp4 else "w4afp8"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}.get(algorithm, f"modelopt_{algorithm.lower()}")
