"""What lies beside config.json: weights, tokenizer, processor, generation and template files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mtpdoctor.model.parts import Parts
from mtpdoctor.model.types import ModelFacts, WeightFacts
from mtpdoctor.model.weights import read_weights
from mtpdoctor.records import replace

_TOKENIZER = (
    "tokenizer.json",
    "tokenizer.model",
    "tekken.json",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "tiktoken.model",
    "qwen.tiktoken",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
_OTHER = (
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "hf_quant_config.json",
    "params.json",
    "adapter_config.json",
    "model_index.json",
)
# MTP layers that SGLang takes for granted without a number in config.json
_MTP_UNCOUNTED = ("qwen3_next", "mimo", "nemotron_h", "ernie", "bailing", "longcat", "step3")


def known_files(folder: Path) -> tuple[str, ...]:
    """Names of the tokenizer, processor, generation and template files that are there, and remote code."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return ()
    code = sorted(n for n in names if n.endswith(".py"))
    templates = ("chat_templates",) if "chat_templates" in names else ()
    listed = [n for n in (*_TOKENIZER, *_OTHER) if n in names and (folder / n).exists()]
    vocab = sorted(n for n in names if n.endswith(".tiktoken") and n not in listed)
    return (*listed, *templates, *vocab, *code)


def snapshot_revision(folder: Path) -> str | None:
    """The commit of a snapshot folder in a Hugging Face cache."""
    full = Path(os.path.abspath(folder))
    if full.parent.name != "snapshots" or not full.parent.parent.name.startswith("models--"):
        return None
    return full.name


def with_weights(facts: ModelFacts, folder: Path) -> ModelFacts:
    """The facts with those of the weight files, and what only both together tell."""
    linear = frozenset(i for i, kind in enumerate(facts.layer_kinds) if kind == "linear")
    weights, problems = read_weights(folder, Parts(facts.layers, linear_layers=linear))
    found = [*facts.problems, *problems]
    if weights is None:
        if facts.files and not problems:
            found.append("no weight files (*.safetensors, *.bin) in the folder")
    else:
        found += _mtp(facts, weights)
    found += _unfinished(folder)
    found += _tokenizer(facts, weights)
    mtp = facts.mtp_layers
    if mtp is None and weights is not None and weights.complete:
        mtp = weights.mtp_layers
    return replace(facts, weights=weights, mtp_layers=mtp, problems=tuple(found))


def _mtp(facts: ModelFacts, weights: WeightFacts) -> Iterator[str]:
    if facts.mtp_layers and weights.has_mtp is False and weights.format == "safetensors":
        number = f"{facts.mtp_layers} MTP layer{'s' if facts.mtp_layers > 1 else ''}"
        yield (
            f"config.json counts {number}, but the weight files hold no MTP tensors: they were dropped "
            "(by a quantization or a conversion), and speculative decoding with this model's own MTP cannot work"
        )
    if weights.has_mtp and not facts.mtp_layers:
        kind = (facts.model_type or "").lower()
        if facts.mtp_layers is None and kind.startswith(_MTP_UNCOUNTED):
            return
        size = weights.bytes_of("mtp", "mtp_embedding") / 2**30
        yield (
            f"the weight files hold MTP tensors ({size:,.2f} GiB) that config.json does not count "
            "(num_nextn_predict_layers or its like)"
        )


def _tokenizer(facts: ModelFacts, weights: WeightFacts | None) -> Iterator[str]:
    if weights is not None and not any(f in _TOKENIZER[:8] or f.endswith(".tiktoken") for f in facts.files):
        yield "no tokenizer files (tokenizer.json, tokenizer.model) in the folder"


def _unfinished(folder: Path) -> Iterator[str]:
    """Blobs that huggingface_hub has not finished, of the cache or of ``--local-dir``."""
    revision = snapshot_revision(folder)
    full = Path(os.path.abspath(folder))
    places = [full.parent.parent / "blobs"] if revision else [full / ".cache" / "huggingface" / "download"]
    for place in places:
        try:
            parts = [n for n in os.listdir(place) if n.endswith(".incomplete")]
        except OSError:
            continue
        if parts:
            yield f"{len(parts)} downloads are not finished (*.incomplete): hf download the model again"
