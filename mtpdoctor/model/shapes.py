"""The weight matrices of a model as its config.json implies them, for the families whose shape is known.

Shapes are those of the published checkpoints (as Transformers and SGLang build them). Biases and small
vectors are left out where they come to less than a thousandth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mtpdoctor.model.shapes_linear import linear_matrices
from mtpdoctor.model.types import ModelFacts

# model types (of the text part) whose layers are built as below; others are not computed
_TYPES = """
    llama mistral mixtral qwen2 qwen2_moe qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen3 qwen3_moe
    qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_vl qwen3_vl_text qwen3_vl_moe
    qwen3_vl_moe_text gemma gemma2 gemma3 gemma3_text glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa deepseek_v2
    deepseek_v3 deepseek_v32 kimi_k2 kimi_linear gpt_oss minimax_m2 minimax minimax_text_01 minimax_m1
    nemotron_h nemotron_h_moe granite granitemoe granitemoehybrid falcon_h1 jamba bamba lfm2 lfm2_moe phi3 olmo2
    olmo3 olmoe cohere cohere2 exaone4 internlm3 seed_oss mimo smollm3 dots1 ernie4_5 ernie4_5_moe bailing_moe
    bailing_moe_v2 llama4_text mistral3 ministral ministral3 hunyuan_v1_dense
"""
KNOWN = frozenset(_TYPES.split())
_UNGATED = ("relu2", "gelu_new", "relu")
_ALL_MOE = ("mixtral", "gpt_oss", "minimax", "granitemoe", "olmoe", "qwen3_vl_moe")
# MTP layers that are written after the others with an embedding and an LM head of their own
_MTP_WITH_COPIES = ("deepseek_v3", "deepseek_v32", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa")
# config.json counts MTP layers, the published checkpoints hold none
_MTP_NOT_PUBLISHED = ("minimax_m2",)
_BIASED = ("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "gpt_oss")


class Matrix(NamedTuple):
    """``copies`` of a matrix of ``rows`` x ``columns``; ``linear``: a quantization may apply to it."""

    name: str
    part: str
    rows: int
    columns: int
    copies: int = 1
    linear: bool = True


class Unknown(Exception):
    """A number that the sum needs is not in the config, or the family's shape is not known."""


class Shape:
    """Looks up the numbers of the text part; what is missing raises Unknown."""

    def __init__(self, model: ModelFacts, text: Mapping[str, Any]) -> None:
        self.model = model
        self.text = text
        self.type = str(text.get("model_type", model.model_type or "")).lower()
        self.hidden = need(model.hidden_size)
        self.layers = need(model.layers)
        self.gated = str(text.get("mlp_hidden_act", text.get("hidden_act", ""))) not in _UNGATED
        if self.type not in KNOWN or len(model.layer_kinds) != self.layers:
            raise Unknown(self.type)

    def number(self, *names: str, default: int | None = None) -> int:
        for name in names:
            value = self.text.get(name)
            if type(value) is int and 0 <= value < 1 << 40:
                return value
        return need(default)


def need(value: int | None) -> int:
    if value is None or not 0 <= value < 1 << 40:
        raise Unknown
    return value


def matrices(model: ModelFacts, text: Mapping[str, Any]) -> Iterator[Matrix]:
    """Every matrix of the language model, with its MTP layers. Raises Unknown."""
    s = Shape(model, text)
    vocabulary = need(model.vocab_size)
    yield Matrix("model.embed_tokens", "embedding", vocabulary, s.hidden, linear=False)
    if not model.tied_embeddings:
        yield Matrix("lm_head", "lm_head", vocabulary, s.hidden, linear=False)
    for number, kind in enumerate(model.layer_kinds):
        yield from _layer(s, f"model.layers.{number}", kind, number)
    yield Matrix("model.norm", "norm", s.hidden, 1, linear=False)
    yield from _mtp(s, vocabulary)


def _layer(s: Shape, at: str, kind: str, number: int) -> Iterator[Matrix]:
    yield Matrix(f"{at}.norms", "norm", s.hidden, 4 if s.type.startswith("gemma") else 2, linear=False)
    if kind in ("full", "sliding"):
        yield from _attention(s, at, kind)
    elif kind == "mla":
        yield from _latent(s, at)
    elif kind in ("linear", "mamba", "conv"):
        yield from linear_matrices(s, at, kind)
    elif kind == "full+mamba":
        yield from _attention(s, at, kind)
        yield from linear_matrices(s, at, "mamba")
    if s.type.startswith("nemotron_h"):  # one thing a layer
        if kind == "mlp":
            yield from (_experts(s, at) if _nemotron_moe(s, number) else _mlp(s, at))
    elif is_moe_layer(s, number):
        yield from _experts(s, at)
    else:
        yield from _mlp(s, at)


def _attention(s: Shape, at: str, kind: str) -> Iterator[Matrix]:
    heads, kv = need(s.model.heads), need(s.model.kv_heads)
    size = need(s.model.head_dim)
    value = s.model.v_head_dim or size
    if kind == "sliding":
        heads = s.number("swa_num_attention_heads", default=heads)
        kv = s.number("swa_num_key_value_heads", default=kv)
        size = s.number("swa_head_dim", default=size)
        value = s.number("swa_v_head_dim", default=value)
    gate = s.text.get("attn_output_gate") is True or s.type.startswith(("qwen3_next", "qwen3_5"))
    at += ".self_attn"
    yield Matrix(f"{at}.q_proj", "attention", heads * size * (2 if gate else 1), s.hidden)
    yield Matrix(f"{at}.k_proj", "attention", kv * size, s.hidden)
    yield Matrix(f"{at}.v_proj", "attention", kv * value, s.hidden)
    yield Matrix(f"{at}.o_proj", "attention", s.hidden, heads * value)
    if s.text.get("attention_bias") is True or s.type in _BIASED:
        yield Matrix(f"{at}.bias", "attention", heads * size + kv * (size + value), 1, linear=False)


def _latent(s: Shape, at: str) -> Iterator[Matrix]:
    """MLA: queries and keys over low-rank latents, and the indexer of sparse attention where there is one."""
    heads, rank = need(s.model.heads), need(s.model.kv_lora_rank)
    nope, rope, value = (s.number(n) for n in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    low = s.number("q_lora_rank", default=0)
    at += ".self_attn"
    if low:
        yield Matrix(f"{at}.q_a_proj", "replicated", low, s.hidden)
        yield Matrix(f"{at}.q_b_proj", "attention", heads * (nope + rope), low)
    else:
        yield Matrix(f"{at}.q_proj", "attention", heads * (nope + rope), s.hidden)
    yield Matrix(f"{at}.kv_a_proj_with_mqa", "replicated", rank + rope, s.hidden)
    yield Matrix(f"{at}.kv_b_proj", "attention", heads * (nope + value), rank)
    yield Matrix(f"{at}.o_proj", "attention", s.hidden, heads * value)
    indexers = s.number("index_n_heads", default=0)
    if indexers:
        size = s.number("index_head_dim")
        yield Matrix(f"{at}.indexer.wq_b", "replicated", indexers * size, low or s.hidden)
        yield Matrix(f"{at}.indexer.wk", "replicated", size, s.hidden)
        yield Matrix(f"{at}.indexer.weights_proj", "replicated", indexers, s.hidden, linear=False)


def _mlp(
    s: Shape, at: str, width: int | None = None, part: str = "mlp", name: str = "mlp"
) -> Iterator[Matrix]:
    if width is None:  # Llama 4 and LFM2 have a field of their own for it
        width = s.number("intermediate_size_mlp", "block_ff_dim", default=s.model.intermediate_size)
    if s.type.startswith("lfm2") and s.text.get("block_auto_adjust_ff_dim") is True and part == "mlp":
        multiple = max(1, s.number("block_multiple_of", default=256))
        width = (2 * width // 3 + multiple - 1) // multiple * multiple
    if s.gated:
        yield Matrix(f"{at}.{name}.gate_proj", part, width, s.hidden)
    yield Matrix(f"{at}.{name}.up_proj", part, width, s.hidden)
    yield Matrix(f"{at}.{name}.down_proj", part, s.hidden, width)


def _experts(s: Shape, at: str) -> Iterator[Matrix]:
    count, width = need(s.model.experts), need(s.model.expert_intermediate_size)
    latent = s.number("moe_latent_size", default=0) or s.hidden  # Nemotron 3: experts on a smaller state
    at_experts = f"{at}.mlp.experts.0"
    if s.gated:
        yield Matrix(f"{at_experts}.gate_proj", "experts", width, latent, count)
    yield Matrix(f"{at_experts}.up_proj", "experts", width, latent, count)
    yield Matrix(f"{at_experts}.down_proj", "experts", latent, width, count)
    if latent != s.hidden:
        yield Matrix(f"{at}.mlp.latent", "replicated", latent, s.hidden, 2, linear=False)
    if s.type == "gpt_oss":
        yield Matrix(f"{at}.mlp.experts.bias", "experts", 2 * width + s.hidden, count, linear=False)
    yield Matrix(f"{at}.mlp.gate", "replicated", count, s.hidden, linear=False)
    shared = _shared_width(s, width)
    if shared:
        yield from _mlp(s, at, shared, "shared_experts", "mlp.shared_experts")


def _shared_width(s: Shape, width: int) -> int:
    count = s.model.shared_experts or 0
    for name in ("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"):
        given = s.number(name, default=0)
        if given:
            return given * max(1, count if name.startswith("moe") else 1)
    if s.type == "granitemoehybrid":
        return s.number("shared_intermediate_size", default=0)
    if s.type == "llama4_text":
        return need(s.model.intermediate_size)
    return count * width


def is_moe_layer(s: Shape, number: int) -> bool:
    """Whether a layer has experts, by the fields with which the families say so."""
    text = s.text
    if (s.model.experts or 0) < 2:
        return False
    if s.type.startswith(_ALL_MOE):
        return True
    only = text.get("mlp_only_layers")
    if isinstance(only, list) and number in only:
        return False
    frequency = text.get("moe_layer_freq")
    if isinstance(frequency, list):
        return number < len(frequency) and bool(frequency[number])
    listed = text.get("moe_layers_enum")
    if isinstance(listed, str):
        return str(number) in listed.split(",")
    dense = s.number("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", default=0)
    if number < dense:
        return False
    if "expert_layer_period" in text:
        period = max(1, s.number("expert_layer_period"))
        return number % period == s.number("expert_layer_offset", default=0)
    step = s.number("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", default=1)
    if step < 1:
        return False
    return (number + 1) % step == 0 and number <= s.number("moe_layer_end_index", default=s.layers)


def _nemotron_moe(s: Shape, number: int) -> bool:
    pattern = s.text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.replace("|", "")[number : number + 1] == "E"
    blocks = s.text.get("layers_block_type")
    return isinstance(blocks, list) and number < len(blocks) and blocks[number] == "moe"


def _mtp(s: Shape, vocabulary: int) -> Iterator[Matrix]:
    count = s.model.mtp_layers or 0
    if not count or count > 16 or s.type in _MTP_NOT_PUBLISHED:
        return
    full = "mla" if s.model.is_mla else "full"
    for number in range(count):
        at = f"model.layers.{s.layers + number}"
        yield Matrix(f"{at}.eh_proj", "mtp", s.hidden, 2 * s.hidden, linear=False)
        kinds = ["*", "E"] if s.type.startswith("nemotron_h") else [full]
        for kind in kinds:
            found = {
                "*": lambda at=at: _attention(s, at, "full"),
                "E": lambda at=at: _experts(s, at),
            }.get(kind, lambda at=at: _layer(s, at, full, s.layers - 1))
            yield from (m._replace(part="mtp") for m in found())
        if s.type in _MTP_WITH_COPIES:
            yield Matrix(f"{at}.embed_tokens", "mtp_embedding", vocabulary, s.hidden, 2, linear=False)
