"""Weights of one rank: how tensor, pipeline, expert and attention data parallelism split them.

Sizes in bytes. What is split how follows the layers of SGLang's models: vocabulary, attention and MLP by
tensor parallelism, attention only by the ranks that share one attention (``Launch.attention_tp``), experts
by all ranks, down-projections of MLA, routers and norms by none.
"""

from __future__ import annotations

from mtpdoctor.memory.architecture import text_of
from mtpdoctor.memory.launch import Launch
from mtpdoctor.model.types import ModelFacts, WeightFacts, WeightGroup
from mtpdoctor.records import dataclass

_LINEAR = ("attention", "linear_attention", "mlp", "experts", "shared_experts")
# Bytes of a weight of 2 bytes after --quantization has it stored smaller, scales included.
_SHRINKS = {
    "fp8": 1.0, "w8a8_fp8": 1.0, "w8a8_int8": 1.0, "modelopt_fp8": 1.0, "blockwise_int8": 1.0, "mxfp8": 1.03,
    "bitsandbytes": 0.53, "mxfp4": 0.53, "modelopt_fp4": 0.563, "nvfp4": 0.563, "petit_nvfp4": 0.563,
}  # fmt: skip
_WIDE = frozenset({"BF16", "F16", "F32"})
_ROUNDING = 12 * 2**20  # bytes: segments of the allocator that are not full (measured)
_PADDING = 64  # the vocabulary is padded to a multiple of it


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Bytes on the fullest rank. ``parts`` names each share of the target, largest first."""

    target: float
    draft: float  # once it serves
    draft_copies: float  # of embedding and LM head, freed when it has taken the target's
    parts: tuple[tuple[str, float], ...]
    how: str


def rank_weights(
    model: ModelFacts,
    weights: WeightFacts,
    launch: Launch,
    draft: ModelFacts | None = None,
    draft_weights: WeightFacts | None = None,
) -> RankWeights:
    shares: dict[str, float] = {}
    for group in weights.groups:
        if group.part.startswith("mtp"):
            continue
        size = _stored(group, model, launch) * _share(group.part, model, launch)
        shares[group.part] = shares.get(group.part, 0.0) + size
    if model.tied_embeddings and launch.pp > 1:
        shares["lm_head"] = shares.get("embedding", 0.0)  # the last stage holds a copy
    if launch.pp > 1:
        ends = [shares.pop(name, 0.0) for name in ("embedding", "lm_head")]
        shares = {name: size * stage_share(model, launch) for name, size in shares.items()}
        shares["embedding or LM head"] = max(ends)
    shares["rope table"] = rope_table(model, launch)
    shares["rounding"] = float(_ROUNDING)
    parts = tuple(sorted(((n, b) for n, b in shares.items() if b), key=lambda part: -part[1]))
    return RankWeights(
        target=sum(shares.values()),
        draft=_draft(model, weights, launch, draft, draft_weights),
        draft_copies=_copies(model, weights, launch, draft),
        parts=parts,
        how=_how(weights, launch) + _of_rope(shares),
    )


def _how(weights: WeightFacts, launch: Launch) -> str:
    whole = f"{weights.total_bytes / 2**30:,.2f} GiB in all"
    split = [f"TP {launch.tp}" if launch.tp > 1 else "", f"PP {launch.pp}" if launch.pp > 1 else ""]
    if launch.dp_attention:
        split.append(f"attention over {launch.attention_tp} of them")
    split = [part for part in split if part]
    shrunk = shrink(launch)
    return ", ".join(
        [
            whole,
            *(["split by " + ", ".join(split)] if split else []),
            *([f"as {shrunk[0]}"] if shrunk else []),
        ]
    )


def _of_rope(shares: dict[str, float]) -> str:
    """Named where it is no small part: with a context far beyond the model's."""
    size = shares.get("rope table", 0.0)
    return f", {size / 2**30:,.1f} GiB of rope table" if size > 0.1 * sum(shares.values()) else ""


def shrink(launch: Launch) -> tuple[str, float] | None:
    """The quantization that is made while loading, and what it leaves of 2 bytes."""
    method = (launch.arguments.text("quantization") or "").lower()
    return (method, _SHRINKS[method]) if method in _SHRINKS else None


def _stored(group: WeightGroup, model: ModelFacts, launch: Launch) -> float:
    """Bytes of a group once loaded: another type than stored where the launch or the model's class says so."""
    size = float(group.bytes)
    if group.dtype == "F32" and group.part not in ("linear_attention", "replicated", "norm"):
        size /= 2
    shrunk = shrink(launch)
    if shrunk and model.quantization is None and group.dtype in _WIDE and group.part in _LINEAR:
        size *= shrunk[1] / 2
    return size


def _share(part: str, model: ModelFacts, launch: Launch) -> float:
    """Of the whole of a part, what the fullest rank of one pipeline stage holds."""
    arguments = launch.arguments
    if part in ("norm", "replicated", "other"):
        return 1.0
    if part == "embedding":
        return _padded(model) * (1.0 if launch.dp_attention else 1 / launch.tp)
    if part == "lm_head":
        if launch.dp_attention and arguments.on("enable_dp_lm_head"):
            return _padded(model) / launch.attention_tp
        return _padded(model) / launch.tp
    if part == "attention":
        return _attention_share(model, launch.attention_tp)
    if part == "linear_attention":
        return 1 / launch.attention_tp
    if part == "mlp":
        return 1.0 if arguments.count("moe_dense_tp_size") == 1 else 1 / launch.tp
    if part == "shared_experts":
        return 1.0 if arguments.on("moe_a2a_backend") else 1 / launch.tp
    if part == "experts":
        redundant = arguments.count("ep_num_redundant_experts") or 0
        return (1 + redundant / (model.experts or 1)) / launch.tp
    if part == "vision":
        if arguments.on("language_only") or arguments.on("language_model_only"):
            return 0.0
        return 1.0 if arguments.on("mm_enable_dp_encoder") else 1 / launch.tp
    return 1.0


def _padded(model: ModelFacts) -> float:
    vocabulary = model.vocab_size or 0
    return (-(-vocabulary // _PADDING) * _PADDING) / vocabulary if vocabulary else 1.0


def _attention_share(model: ModelFacts, ranks: int) -> float:
    """KV heads fewer than ranks are repeated; MLA has none."""
    if not model.heads or not model.kv_heads or model.is_mla or ranks <= model.kv_heads:
        return 1 / ranks
    of_kv = 2 * model.kv_heads / (2 * model.kv_heads + 2 * model.heads)
    return (1 - of_kv) / ranks + of_kv / model.kv_heads


def stage_share(model: ModelFacts, launch: Launch) -> float:
    """The layers of the fullest pipeline stage, of all."""
    layers = model.layers or 0
    return -(-layers // launch.pp) / layers if layers and launch.pp > 1 else 1.0


def rope_table(model: ModelFacts, launch: Launch) -> float:
    """Cosines and sines of all positions, in float32."""
    text = text_of(model)
    positions = text.get("max_position_embeddings")
    if not isinstance(positions, int) or not model.head_dim:
        return 0.0
    rope = text.get("rope_parameters")
    partial = text.get("partial_rotary_factor")
    if partial is None and isinstance(rope, dict):
        partial = rope.get("partial_rotary_factor")
    width = model.rope_head_dim if model.is_mla else model.head_dim
    factor = partial if isinstance(partial, (int, float)) and not isinstance(partial, bool) else 1
    longest = max(positions, launch.context or 0)
    return longest * int((width or 0) * factor) * 4.0


def _draft(
    model: ModelFacts,
    weights: WeightFacts,
    launch: Launch,
    draft: ModelFacts | None,
    draft_weights: WeightFacts | None,
) -> float:
    """What the draft adds. Embedding and LM head are the target's, but for a standalone draft."""
    if not launch.has_draft:
        return 0.0
    if draft is not None and draft_weights is not None:
        shared = () if launch.algorithm == "STANDALONE" else ("embedding",)
        if any(group.part == "mtp" for group in draft_weights.groups):
            return draft_weights.bytes_of("mtp") / launch.tp
        return sum(
            _stored(g, draft, launch) * _share(g.part, draft, launch)
            for g in draft_weights.groups
            if g.part not in shared and not g.part.startswith("mtp")
        )
    if launch.draft_path is not None and launch.draft_path != model.path and not weights.bytes_of("mtp"):
        return 0.0
    shrunk = shrink(launch)
    factor = shrunk[1] / 2 if shrunk and model.quantization is None else 1.0
    return weights.bytes_of("mtp") * factor / launch.tp


def _copies(model: ModelFacts, weights: WeightFacts, launch: Launch, draft: ModelFacts | None) -> float:
    """A draft of MTP layers is made with an embedding and an LM head of its own."""
    if not launch.has_draft or (draft is not None and draft.path != model.path):
        return 0.0
    if not weights.bytes_of("mtp"):
        return 0.0
    parts = [g for g in weights.groups if g.part in ("embedding", "lm_head")]
    size = sum(_stored(g, model, launch) * _share(g.part, model, launch) for g in parts)
    return size * 2 if model.tied_embeddings and not weights.bytes_of("lm_head") else size
