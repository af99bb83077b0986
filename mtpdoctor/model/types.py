"""Facts of a model, read from its folder or config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpdoctor.records import dataclass, field


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """Tensors of one place in the network and one stored type."""

    # Split over tensor parallel ranks: "embedding", "lm_head", "attention", "linear_attention" (GDN, KDA,
    # lightning, Mamba, short convolution), "mlp", "shared_experts"; over TP or expert parallel ranks:
    # "experts". Whole on every rank: "replicated" (routers, the down-projections of MLA, the indexer of
    # sparse attention) and "norm". "mtp": layers of MTP/next-n but for "mtp_embedding", the copies of the
    # embedding and the LM head that some checkpoints repeat there and SGLang takes from the target.
    # "vision": towers and projectors of images, video and sound. "other": what fits none.
    part: str
    dtype: str  # as safetensors names it: "BF16", "F8_E4M3", "I32"
    bytes: int  # with the quantization's scales, which are counted with their tensor's part
    tensors: int


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """The weights of a model: from the index and the headers of its files alone, or from config.json.

    Sizes in bytes. ``files``, ``missing`` and so on are names inside the model's folder.
    """

    files: tuple[str, ...]
    total_bytes: int  # tensors; not the files' headers
    groups: tuple[WeightGroup, ...] = ()
    missing: tuple[str, ...] = ()  # shards that the index names and the folder lacks
    truncated: tuple[str, ...] = ()  # files shorter than their own header says
    lfs_pointers: tuple[str, ...] = ()  # git LFS pointer files in place of the weights
    has_mtp: bool | None = None  # tensors of MTP/next-n layers are there
    source: str = "files"  # "files", or "config": computed by ``weights_by_config``, no file was read
    # what SGLang will load: "safetensors", "consolidated" (Mistral's own), "bin" (PyTorch), "gguf"
    format: str = "safetensors"
    empty: tuple[str, ...] = ()  # files of 0 bytes
    unreadable: tuple[str, ...] = ()  # headers that are no safetensors header, files without permission
    mtp_layers: int | None = None  # how many MTP/next-n layers have tensors
    # parts whose size is not known and not in ``total_bytes``: "vision"; from files: "all" where the
    # format does not tell (only the files' size is known then)
    unknown: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Every file that the index names is there and whole."""
        bad = self.missing or self.truncated or self.lfs_pointers or self.empty or self.unreadable
        return not bad

    def bytes_of(self, *parts: str) -> int:
        return sum(g.bytes for g in self.groups if g.part in parts)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model; None means not known or not applicable."""

    path: str
    architecture: str | None
    model_type: str | None
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    experts: int | None = None
    vocab_size: int | None = None
    context_length: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    mtp_layers: int | None = None
    full_attention_interval: int | None = None
    linear_key_heads: int | None = None
    linear_value_heads: int | None = None
    is_hybrid: bool | None = None  # linear attention (GDN/Mamba) beside full attention
    linear_kind: str | None = None  # of a hybrid model: "gdn", "kda", "mamba", "lightning", "conv"
    sliding_window: int | None = None  # tokens, where some layers look no further back
    is_mla: bool | None = None
    is_moe: bool | None = None
    # one word a layer, first to last: "full", "linear" (GDN/KDA/lightning), "mamba", "sliding", "mla", "conv",
    # "full+mamba" (Falcon-H1: both side by side), "mlp" (Nemotron-H: a layer without either)
    layer_kinds: tuple[str, ...] = ()
    linear_key_dim: int | None = None  # head size
    linear_value_dim: int | None = None
    linear_conv_kernel: int | None = None  # tokens
    kv_lora_rank: int | None = None  # MLA
    rope_head_dim: int | None = None  # MLA: qk_rope_head_dim
    experts_per_token: int | None = None
    intermediate_size: int | None = None
    expert_intermediate_size: int | None = None
    rope_scaling: str | None = None  # "yarn x4", as the config names it
    quantization_block: tuple[int, ...] = ()
    is_multimodal: bool | None = None
    tied_embeddings: bool | None = None  # the LM head is the embedding
    v_head_dim: int | None = None  # where it differs from head_dim (MLA, MiMo)
    shared_experts: int | None = None  # experts that every token takes
    revision: str | None = None  # of a model in the Hugging Face cache: the snapshot's commit
    files: tuple[str, ...] = ()  # tokenizer, processor, generation and template files that are there
    weights: WeightFacts | None = None  # None: not looked at, or no weight files at hand
    problems: tuple[str, ...] = ()  # malformed or missing fields, files
    raw: Mapping[str, Any] = field(default_factory=dict)
