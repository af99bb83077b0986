"""Which part of the network a tensor belongs to, by its name in the checkpoint.

The parts are those that a launch treats alike (``WeightGroup.part``): what tensor parallelism splits,
what expert parallelism splits, what every rank holds whole. Names follow the checkpoints of the families
that SGLang loads; the order of the questions matters (``mtp.layers.0.mlp.experts`` is MTP first).
"""

from __future__ import annotations

from mtpdoctor.patterns import lazy

_NUMBER = lazy(r"\d+")
_LAYER = lazy(r"(?:^|\.)(?:layers|h|blocks|decoder_layers)\.(\d+)\.")
_VISION = lazy(
    r"(?:^|\.)(?:visual|vision\w*|vit|image\w*|img\w*|audio\w*|video\w*|vpm|apm|resampler|patch_embed\w*"
    r"|multi_modal_projector|mm_projector|mm_\w+|aligner|sam_model|mlp1|embed_vision|embed_audio|talker|token2wav"
    r"|code2wav|siglip\w*|radio_model|sound\w*|perceiver\w*|pre_mm\w*|projector)(?:\.|$)"
)
_MTP = lazy(
    r"(?:^|\.)(?:mtp\w*|nextn\w*|mtp_layers|mtp_block|eh_proj|enorm|hnorm|mtp_modules|mtps|model_mtp)(?:\.|$)"
)
_MTP_EMBEDDING = lazy(r"embed_tokens|shared_head\.head|embed_head|\.lm_head|^lm_head|word_embeddings")
_LINEAR = lazy(
    r"(?:^|\.)(?:linear_attn|mamba\w*|ssm|delta_net|gated_delta\w*|short_conv|conv|conv1d|A_log|D|dt_bias|dt_proj"
    r"|x_proj|in_proj|out_proj|in_proj_\w+|attention\.slope_rate|q_conv1d|k_conv1d|v_conv1d|f_a_proj|f_b_proj"
    r"|g_a_proj|g_b_proj|b_proj|recurrent\w*)(?:\.|$)"
)
_IN_ATTENTION = lazy(r"(?:^|\.)(?:self_attn|self_attention|attn|attention)\.(?:in_proj|out_proj)(?:\.|$)")
_REPLICATED = lazy(
    r"(?:^|\.)(?:q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj\w*|kv_a_proj|kv_down_proj|indexer|compressor"
    r"|e_score_correction_bias|routing_bias|router|gate|shared_expert_gate|expert_bias)(?:\.|$)"
)
_SHARED = lazy(r"(?:^|\.)(?:shared_experts?|shared_mlp|shared_expert)(?:\.|$)")
_EXPERTS = lazy(
    r"(?:^|\.)(?:experts|local_experts|block_sparse_moe\.input_linear|block_sparse_moe\.output_linear"
    r"|switch_mlp|ffn\.experts|input_linear|output_linear)(?:\.|$)"
)
_NORM = lazy(r"(?:^|\.)\w*(?:norm|layernorm|ln_\d|ln_f|ln)\w*(?:\.|$)|(?:^|\.)norm\d?(?:\.|$)")
_HEAD = lazy(r"(?:^|\.)(?:lm_head|embed_out|output_layer|head)(?:\.|$)|^output\.")
_EMBEDDING = lazy(
    r"(?:^|\.)(?:embed_tokens\w*|tok_embeddings|wte|wpe|word_embeddings\w*|embed|embedding|embeddings|embed_in"
    r"|token_embd)(?:\.|$)"
)
_ATTENTION = lazy(
    r"(?:^|\.)(?:self_attn|self_attention|attention|attn|q_proj|k_proj|v_proj|o_proj|qkv_proj|qkv|c_attn"
    r"|query_key_value|wqkv|wq|wk|wv|wo|q_b_proj|kv_b_proj|sinks|attn_\w+)(?:\.|$)"
)
_MLP = lazy(
    r"(?:^|\.)(?:mlp\w*|feed_forward|ffn|gate_proj|up_proj|down_proj|gate_up_proj|w1|w2|w3|c_fc|c_proj|fc1|fc2"
    r"|dense_h_to_4h|dense_4h_to_h|block_sparse_moe)(?:\.|$)"
)


class Parts:
    """Sorts the tensors of one checkpoint; ``layers`` is its number of layers without MTP, if known."""

    def __init__(self, layers: int | None = None, *, linear_layers: frozenset[int] = frozenset()) -> None:
        self.layers = layers
        self.linear_layers = linear_layers  # those whose tensors are called self_attn all the same (Kimi)
        self._known: dict[tuple[str, bool, bool], str] = {}

    def part(self, name: str) -> str:
        """The part of a tensor, in the words of ``WeightGroup.part``."""
        layer = self.layer(name)
        extra = self.layers is not None and layer is not None and layer >= self.layers
        linear = layer in self.linear_layers
        key = (_NUMBER.sub("#", name), extra, linear)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _part(name, extra, linear)
        return found

    def layer(self, name: str) -> int | None:
        """The number of the layer that the name says; None outside of the layers."""
        found = _LAYER.search(name)
        return int(found[1]) if found and len(found[1]) < 7 else None


def _part(name: str, extra: bool, linear: bool) -> str:
    if _VISION.search(name):
        return "vision"
    if extra or _MTP.search(name):
        return "mtp_embedding" if _MTP_EMBEDDING.search(name) else "mtp"
    if _SHARED.search(name):
        return "replicated" if name.startswith("shared_expert_gate") or ".gate." in name else "shared_experts"
    if _EXPERTS.search(name):
        return "experts"
    if linear and ".self_attn." in name and "layernorm" not in name:
        return "linear_attention"
    if _REPLICATED.search(name):
        return "replicated"
    if _LINEAR.search(name) and not _IN_ATTENTION.search(name):
        return "linear_attention"
    if _NORM.search(name):
        return "norm"
    if _HEAD.search(name):
        return "lm_head"
    if _EMBEDDING.search(name):
        return "embedding"
    if _ATTENTION.search(name):
        return "attention"
    return "mlp" if _MLP.search(name) else "other"
