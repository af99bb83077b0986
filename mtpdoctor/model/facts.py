"""A model as facts, under the names of docs/knowledge-format.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpdoctor.facts import Facts, Source, make_facts

if TYPE_CHECKING:
    from mtpdoctor.model.types import ModelFacts

_FIELDS = (
    "path",
    "architecture",
    "model_type",
    "layers",
    "hidden_size",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab_size",
    "context_length",
    "dtype",
    "mtp_layers",
    "is_hybrid",
    "is_mla",
    "is_moe",
    "is_multimodal",
    "tied_embeddings",
    "intermediate_size",
    "expert_intermediate_size",
    "experts_per_token",
    "kv_lora_rank",
    "v_head_dim",
    "linear_key_dim",
    "linear_value_dim",
    "revision",
)
# A config that does not name these has none of them; for the others, silence says nothing
# (a checkpoint may hold MTP layers that its config.json does not count).
_ABSENT_WHEN_UNNAMED = (
    "experts",
    "quantization",
    "full_attention_interval",
    "linear_key_heads",
    "linear_value_heads",
    "linear_kind",
    "sliding_window",
    "rope_scaling",
)
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "spiece.model")
_PROCESSOR = ("preprocessor_config.json", "processor_config.json")


def model_facts(model: ModelFacts) -> Facts:
    """Facts ``model.*``; what the config does not tell is absent (unknown), what it rules out is None."""
    values: dict[str, Any] = {
        f"model.{f}": getattr(model, f) for f in _FIELDS if getattr(model, f) is not None
    }
    for name in _ABSENT_WHEN_UNNAMED:
        value = getattr(model, name)
        if value is not None or (model.raw and not _malformed(model)):
            values[f"model.{name}"] = value
    if model.quantization_block:
        values["model.quantization_block"] = max(model.quantization_block)
    values |= _of_files(model)
    values["model.problems"] = list(model.problems)
    return make_facts(values, Source.MODEL, model.path)


def _malformed(model: ModelFacts) -> bool:
    """Whether the description itself is damaged; what is wrong with other files says nothing about it."""
    return any(p.startswith(("config.json", "quant_method", "hf_quant_config.json")) for p in model.problems)


def _of_files(model: ModelFacts) -> dict[str, Any]:
    """What the model's folder holds; nothing where only a config.json was given."""
    if not model.files and model.weights is None:
        return {}
    files = set(model.files)
    templates = {"chat_template.jinja", "chat_template.json", "chat_templates"}
    values: dict[str, Any] = {
        "model.has_tokenizer": bool(files.intersection(_TOKENIZER))
        or any(f.endswith(".tiktoken") or f == "tiktoken.model" for f in files),
        "model.has_processor": bool(files.intersection(_PROCESSOR)),
        "model.weights_format": None,
    }
    if files & templates:
        values["model.has_chat_template"] = True  # else it may stand in tokenizer_config.json
    weights = model.weights
    if weights is None:
        return values
    values |= {
        "model.weights_format": weights.format,
        "model.weights_missing": len(weights.missing),
        "model.weights_truncated": len(weights.truncated),
        "model.weights_pointers": len(weights.lfs_pointers),
        "model.weights_empty": len(weights.empty),
        "model.weights_unreadable": len(weights.unreadable),
    }
    if weights.complete:
        values["model.weights_gib"] = round(weights.total_bytes / 2**30, 3)
    if weights.has_mtp is not None:
        values["model.has_mtp"] = weights.has_mtp
    return values
