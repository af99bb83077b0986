"""Bytes that one token takes in the KV cache of a rank."""

from __future__ import annotations

from mtpdoctor.memory.architecture import has_two_pools, is_mla, layer_kinds, text_of
from mtpdoctor.memory.launch import Launch
from mtpdoctor.memory.releases import of
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import dataclass

_BYTES = {"fp8_e5m2": 1, "fp8_e4m3": 1, "bf16": 2, "bfloat16": 2, "fp4_e2m1": 1, "mxfp8": 1, "float16": 2}
_WORDS = {"fp8_e5m2": "fp8", "fp8_e4m3": "fp8", "fp4_e2m1": "fp4"}
_DSA = frozenset({"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "MistralLarge3ForCausalLM"})
_WITH_KV = frozenset({"full", "mla", "full+mamba", "sliding"})
_SCALE_BLOCK = 16  # elements of one fp4 scale


@dataclass(frozen=True, slots=True)
class Cell:
    """Bytes of one token on one rank: ``target`` sizes the pool in the release (with the draft's share
    where the release counts it), ``full`` and ``window`` are those of one layer of either kind."""

    target: float
    draft: float  # of the draft's own pool
    counted: bool  # does the release count the draft inside --mem-fraction-static?
    full_layers: int
    window_layers: int  # of a second pool; 0: one pool
    window_share: float  # tokens of the window pool for one of the full pool
    how: str

    @property
    def sizing(self) -> float:
        """Bytes by which the release divides what is left for the pool."""
        return self.target + (self.draft if self.counted else 0.0)


def token_cell(model: ModelFacts, launch: Launch, draft: ModelFacts | None = None) -> Cell | None:
    """None where the config does not tell heads or layers."""
    kinds = layer_kinds(model)
    if not kinds:
        return None
    share = -(-len(kinds) // launch.pp) / len(kinds) if launch.pp > 1 else 1.0
    with_kv = [k for k in kinds if k in _WITH_KV]
    layers = round(len(with_kv) * share)
    size = element_bytes(model, launch)
    per_layer, how = _layer_bytes(model, launch, size)
    if per_layer is None:
        return None
    two = has_two_pools(model, launch.release, launch.arguments)
    window = round(sum(k == "sliding" for k in kinds) * share) if two else 0
    ratio = launch.arguments.number("swa_full_tokens_ratio") or 0.8
    full = layers - window
    target = full * per_layer + window * _window_bytes(model, launch, size, per_layer) * (
        ratio if full else 1
    )
    drafted = draft_bytes(model, launch, draft, per_layer, max(layers, 1), target)
    return Cell(
        target=target,
        draft=drafted,
        counted=launch.has_draft and counts_draft(launch),
        full_layers=full,
        window_layers=window,
        window_share=ratio,
        how=f"{layers} layers x {how}" if not two else f"{full} full + {window} window layers x {how}",
    )


def counts_draft(launch: Launch) -> bool:
    """From 0.5.14 on the draft's weights and its KV pool come out of --mem-fraction-static, too.
    DFLASH's pool does since it exists."""
    return of(launch.release, ">=0.5.14") or launch.algorithm == "DFLASH"


def element_bytes(model: ModelFacts, launch: Launch) -> float:
    given = launch.kv_dtype
    if given in _BYTES:
        return _BYTES[given]
    if (model.quantization or "").startswith("modelopt") and _fp8_kv(model) and of(launch.release, ">=0.5.3"):
        return 1
    return 4 if launch.arguments.text("dtype") in ("float32", "float") else 2


def _fp8_kv(model: ModelFacts) -> bool:
    config = model.raw.get("quantization_config")
    scheme = config.get("kv_cache_scheme") if isinstance(config, dict) else None
    named = config.get("kv_cache_quant_algo") if isinstance(config, dict) else None
    return named == "FP8" or (isinstance(scheme, dict) and scheme.get("num_bits") == 8)


def kv_heads(model: ModelFacts, ranks: int) -> int:
    """KV heads of a rank: fewer heads than ranks are repeated, one for each."""
    return max(1, (model.kv_heads or 1) // ranks)


def _layer_bytes(model: ModelFacts, launch: Launch, size: float) -> tuple[float | None, str]:
    word = _WORDS.get(launch.kv_dtype or "", "bf16" if size == 2 else "fp8" if size == 1 else "fp32")
    four_bit = launch.kv_dtype == "fp4_e2m1"
    if is_mla(model, launch.arguments):
        rank, rope = model.kv_lora_rank, model.rope_head_dim
        if rank is None or rope is None:
            text = text_of(model)
            rank, rope = text.get("kv_lora_rank"), text.get("qk_rope_head_dim")
        if not isinstance(rank, int) or not isinstance(rope, int):
            return None, ""
        width = rank + rope
        dsa = model.architecture in _DSA or bool(text_of(model).get("index_topk"))
        if dsa and launch.kv_dtype == "fp8_e4m3" and of(launch.release, ">=0.5.17"):
            width = rank + rank // 128 * 4 + rope * 2
        each = width * size
        if four_bit:
            each = each / 2 + (rank + rope) // _SCALE_BLOCK * size
        if dsa and of(launch.release, ">=0.5.3.post1"):
            index = text_of(model).get("index_head_dim")
            index = index if isinstance(index, int) else 128
            each += index + index // 128 * 4
        return each, f"(latent {rank} + rope {rope}) x {word}"
    if not model.head_dim or not (model.kv_heads or model.heads):
        return None, ""
    heads = kv_heads(model, launch.attention_tp)
    value_dim = model.v_head_dim or model.head_dim if of(launch.release, ">=0.5.7") else model.head_dim
    each = heads * (model.head_dim + value_dim) * size
    if four_bit:
        each = each / 2 + heads * model.head_dim * 2 * size / _SCALE_BLOCK
    elif launch.kv_dtype == "mxfp8":
        each += heads * (model.head_dim + value_dim) / 32
    plural = "heads" if heads > 1 else "head"
    return each, f"{heads} KV {plural} x ({model.head_dim} + {value_dim}) x {word}"


def _window_bytes(model: ModelFacts, launch: Launch, size: float, plain: float) -> float:
    """One sliding-window layer, where its heads differ."""
    text = text_of(model)
    heads, dim = text.get("swa_num_key_value_heads"), text.get("swa_head_dim")
    if not isinstance(heads, int) and not isinstance(dim, int):
        return plain
    heads = heads if isinstance(heads, int) else model.kv_heads or 1
    dim = dim if isinstance(dim, int) else model.head_dim or 0
    value = text.get("swa_v_head_dim")
    value = value if isinstance(value, int) else dim
    return max(1, heads // launch.attention_tp) * (dim + value) * size


def draft_layers(model: ModelFacts, launch: Launch, draft: ModelFacts | None) -> int:
    """Layers of the draft that keep a KV cache."""
    if not launch.has_draft:
        return 0
    if draft is not None:
        return draft.mtp_layers or draft.layers or 1
    return model.mtp_layers or 1


def draft_bytes(
    model: ModelFacts, launch: Launch, draft: ModelFacts | None, per_layer: float, layers: int, target: float
) -> float:
    """The draft's pool has as many tokens as the target's. As the release sizes it: the target's cell for
    each layer (0.5.14 on), else the draft's own heads."""
    count = draft_layers(model, launch, draft)
    if not count:
        return 0.0
    if counts_draft(launch) or draft is None or draft.path == model.path:
        return target * count / layers if counts_draft(launch) else per_layer * count
    own, _ = _layer_bytes(draft, launch, element_bytes(draft, launch))
    return (own or per_layer) * count
