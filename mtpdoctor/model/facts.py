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
)
# A config that does not name these has none of them; for the others, silence says nothing
# (a checkpoint may hold MTP layers that its config.json does not count).
_ABSENT_WHEN_UNNAMED = (
    "experts",
    "quantization",
    "full_attention_interval",
    "linear_key_heads",
    "linear_value_heads",
)


def model_facts(model: ModelFacts) -> Facts:
    """Facts ``model.*``; what the config does not tell is absent (unknown), what it rules out is None."""
    values: dict[str, Any] = {
        f"model.{f}": getattr(model, f) for f in _FIELDS if getattr(model, f) is not None
    }
    for name in _ABSENT_WHEN_UNNAMED:
        value = getattr(model, name)
        if value is not None or (model.raw and not model.problems):
            values[f"model.{name}"] = value
    values["model.problems"] = list(model.problems)
    return make_facts(values, Source.MODEL, model.path)
