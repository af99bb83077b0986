"""What the name of a tensor tells, where the model's class has none of that name: who wrote it so, and which part is telling."""

from __future__ import annotations

from mtpdoctor.patterns import lazy

# Prefixes that a program put before the names of the model's own checkpoint, and the own names ("": without the prefix).
_SAVED = (
    ("_orig_mod.", "torch.compile", ""),
    ("module.", "DistributedDataParallel", ""),
    ("base_model.model.", "PEFT", ""),
    (
        "model.language_model.",
        "transformers 4.52 and later",
        "model.* (Qwen-VL), language_model.model.* (most others)",
    ),
    ("model.visual.", "transformers 4.52 and later", "visual.*"),
    ("model.vision_tower.", "transformers 4.52 and later", "vision_tower.*"),
    ("model.multi_modal_projector.", "transformers 4.52 and later", "multi_modal_projector.*"),
)
ADAPTER = lazy(r"\.(?:lora_[AB]|base_layer|modules_to_save)\.")
NORM = lazy(
    r"\.(?P<part>[qk]_norm|[qk]_layernorm|sinks?|pre_feedforward_layernorm|post_feedforward_layernorm)\b"
)
DRAFT = lazy(r"(?:^|\.)(?:mtp|eh_proj|enorm|hnorm|nextn)\b")
# Parts that every loader speaks of.
_PLAIN = frozenset(
    [
        "model",
        "layers",
        "weight",
        "bias",
        "self_attn",
        "mlp",
        "attn",
        "llm",
        "proj",
        "experts",
        "norm",
        "blocks",
        "block",
        "layer",
        "embed_tokens",
        "lm_head",
        *(
            "q_proj",
            "k_proj",
            "v_proj",
            "o_proj",
            "qkv_proj",
            "gate_proj",
            "up_proj",
            "down_proj",
            "gate_up_proj",
        ),
    ]
)
_NUMBER = lazy(r"^\d+$")


def saved_by(name: str) -> tuple[str, str, str] | None:
    """The prefix that a program put before it, the program, and the model's own names in its place."""
    return next((s for s in _SAVED if name.startswith(s[0])), None)


def telling_parts(name: str) -> list[str]:
    """What of the name a loader would have to know to place the tensor."""
    saved = saved_by(name)
    if saved is not None:
        name = saved[0]
    elif (found := ADAPTER.search(name) or NORM.search(name)) is not None:
        name = found[0]
    return [p for p in dict.fromkeys(name.split(".")) if p and p not in _PLAIN and not _NUMBER.match(p)]
