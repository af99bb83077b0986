"""What SGLang takes a model for: multimodal, MLA, with two KV pools. From its lists of architectures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpdoctor.memory.arguments import Arguments
from mtpdoctor.memory.releases import of
from mtpdoctor.model.config import text_config
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.release import Release

# Multimodal models that are served as text models unless --enable-multimodal says otherwise.
_TEXT_UNLESS_ASKED = frozenset(
    {"Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration"}
)
_MIMO = frozenset(
    {"MiMoV2FlashForCausalLM", "MiMoV2ProForCausalLM", "MiMoV2ForCausalLM", "MiMoV2OmniForCausalLM"}
)
_MAX_LAYERS = 4096  # more than any model has
_GEMMA4 = frozenset({"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"})
# From which release on a model of sliding and full layers gets two pools (configs/model_config.py). Before
# 0.5.8 every model of Llama-4's kind did only with --hybrid-kvcache-ratio.
_TWO_POOLS: tuple[tuple[str, frozenset[str]], ...] = (
    (">=0.5.7", frozenset({"MiMoV2FlashForCausalLM"})),
    (">=0.5.8", frozenset({"Llama4ForConditionalGeneration", "GptOssForCausalLM"})),
    (">=0.5.9", frozenset({"Step3p5ForCausalLM"})),
    (">=0.5.11", _MIMO | _GEMMA4),
    (">=0.5.12", frozenset({"LagunaForCausalLM"})),
    (">=0.5.13", frozenset({"Step3p7ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration"})),
)


def is_multimodal(model: ModelFacts | None, arguments: Arguments) -> bool | None:
    """Is it served with its image or audio parts? None: not known."""
    if model is None or not model.raw:
        return None
    if model.architecture in _TEXT_UNLESS_ASKED and not arguments.on("enable_multimodal"):
        return False
    if model.is_multimodal is not None:
        return model.is_multimodal
    return any(isinstance(model.raw.get(part), dict) for part in ("vision_config", "audio_config"))


def is_mla(model: ModelFacts, arguments: Arguments) -> bool:
    return bool(model.is_mla) and not arguments.on("disable_mla")


def text_of(model: ModelFacts) -> Mapping[str, Any]:
    return text_config(model.raw)


def layer_kinds(model: ModelFacts) -> tuple[str, ...]:
    """The kind of each layer, under the words of ``ModelFacts.layer_kinds``; "full" where nothing says more."""
    if model.layer_kinds:
        return model.layer_kinds
    layers = min(max(model.layers or 0, 0), _MAX_LAYERS)
    text = text_of(model)
    kinds = text.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(_kind(str(k)) for k in kinds)
    interval = model.full_attention_interval
    if model.is_hybrid and interval:
        return tuple("full" if (i + 1) % interval == 0 else "linear" for i in range(layers))
    plain = "mla" if model.is_mla else "full"
    return (plain,) * layers


def _kind(word: str) -> str:
    if "sliding" in word or "chunked" in word:
        return "sliding"
    if "full" in word or word == "attention":
        return "full"
    return "mamba" if "mamba" in word else "conv" if "conv" in word else "linear"


def has_two_pools(model: ModelFacts, release: Release, arguments: Arguments) -> bool:
    """One KV pool for the layers with full attention, another for those with a window."""
    if arguments.on("disable_hybrid_swa_memory") or "sliding" not in layer_kinds(model):
        return False
    if text_of(model).get("is_hybrid_swa") and of(release, ">=0.5.13"):
        return True
    return any(of(release, since) and model.architecture in names for since, names in _TWO_POOLS)
