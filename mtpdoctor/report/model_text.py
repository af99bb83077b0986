"""A model for people: its name and size, the stack of its layers as a picture, files, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpdoctor.report.rows import Rows
from mtpdoctor.report.rows import size as in_words

if TYPE_CHECKING:
    from mtpdoctor.model.types import ModelFacts, WeightFacts

# one letter a layer; the order of the legend
LETTERS = {
    "full": ("F", "full attention"),
    "mla": ("A", "latent attention (MLA)"),
    "sliding": ("S", "sliding window"),
    "linear": ("L", "linear attention"),
    "mamba": ("M", "Mamba"),
    "conv": ("C", "short convolution"),
    "full+mamba": ("B", "attention and Mamba side by side"),
    "mlp": ("-", "neither (MLP or experts)"),
}
_COLOUR = {
    "F": "green",
    "A": "green",
    "B": "green",
    "S": "cyan",
    "L": "magenta",
    "M": "magenta",
    "C": "magenta",
}
_LINEAR = {"gdn": "Gated DeltaNet", "kda": "Kimi Delta Attention", "lightning": "lightning attention"}
_OTHER_STATE = {"mamba": "Mamba", "conv": "short convolution"}
_PARTS = {
    "experts": "experts",
    "shared_experts": "shared experts",
    "mlp": "MLP",
    "attention": "attention",
    "linear_attention": "linear attention",
    "embedding": "embedding",
    "lm_head": "LM head",
    "replicated": "on every rank",
    "mtp": "MTP",
    "mtp_embedding": "MTP's embedding copies",
    "vision": "vision",
    "norm": "norms",
    "other": "other",
}
_MOST_PERIOD = 16  # layers in a repeated piece of the picture
_BAR = 16
_SHOWN_PROBLEMS = 8


def render_model(
    model: ModelFacts, *, width: int = 80, color: bool = False, verbose: bool = False, plain: bool = False
) -> str:
    """The page as text that ends in a line feed; ``plain``: without block and line characters."""
    rows = Rows(width, color, plain)
    return "\n".join(row.rstrip() for row in _page(model, rows, verbose)) + "\n"


def _page(model: ModelFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    yield rows.heading("Model", model.path)
    yield from rows.value("class", _class(model) or "not known")
    yield from _layers(model, rows)
    yield from _attention(model, rows)
    yield from _experts(model, rows)
    yield from rows.value("MTP", _mtp(model))
    yield from _numbers(model, rows)
    yield from _weights(model, rows, verbose)
    if model.files:
        files = list(model.files) if verbose else [f for f in model.files if not f.endswith(".py")]
        yield from rows.value("files", ", ".join(files))
    problems = model.problems if verbose else model.problems[:_SHOWN_PROBLEMS]
    for problem in problems:
        yield from rows.item("!", problem, style="yellow")
    if len(problems) < len(model.problems):
        yield rows.style("dim", f"  and {len(model.problems) - len(problems)} more (--verbose)")


def _class(model: ModelFacts) -> str:
    kinds = [
        "experts" if model.is_moe else "dense" if model.is_moe is False else "",
        "hybrid" if model.is_hybrid else "",
        "multimodal" if model.is_multimodal else "",
    ]
    told = ", ".join(k for k in kinds if k)
    name = model.architecture or model.model_type or ""
    return f"{name} ({told})" if name and told else name


def _layers(model: ModelFacts, rows: Rows) -> Iterator[str]:
    if model.layers is None:
        return
    if not model.layer_kinds:
        yield from rows.value("layers", f"{model.layers}, of which kind each is, is not known")
        return
    letters = "".join(LETTERS[k][0] for k in model.layer_kinds)
    for i, row in enumerate(rows.folded(stack(letters, rows.times), rows.width - 13)):
        lead = "  layers".ljust(13) if i == 0 else " " * 13
        yield (rows.style("dim", lead) if i == 0 else lead) + _coloured(row, rows)
    used = [(kind, *LETTERS[kind]) for kind in LETTERS if kind in model.layer_kinds]
    named = (
        f"{letter} {model.layer_kinds.count(kind)} {_named(model, kind, text)}" for kind, letter, text in used
    )
    yield from rows.value("", ", ".join(named))


def _named(model: ModelFacts, kind: str, text: str) -> str:
    if kind == "linear" and model.linear_kind in _LINEAR:
        return f"{text} ({_LINEAR[model.linear_kind]})"
    if kind == "sliding" and model.sliding_window:
        return f"{text} of {model.sliding_window:,} tokens"
    return text


def stack(letters: str, times: str = "×") -> str:
    """The stack with its repetitions folded: ``48 = (LLLF)×12``, ``61 = A×61``, else letters in tens."""
    total = len(letters)
    for period in range(1, min(_MOST_PERIOD, total // 2) + 1):
        piece, count = letters[:period], 1
        while letters.startswith(piece, period * count):
            count += 1
        rest = letters[period * count :]
        if count * period >= 2 and count >= (2 if not rest else 3) and len(rest) <= period:
            folded = f"{piece}{times}{count}" if period == 1 else f"({piece}){times}{count}"
            return f"{total} = {folded}{rest and ' ' + rest}"
    tens = " ".join(letters[i : i + 10] for i in range(0, total, 10))
    return f"{total} = {tens}"


def _coloured(row: str, rows: Rows) -> str:
    """The letters of the picture in their colours; the number before them plain."""
    head, joint, tail = row.partition("= ") if "= " in row else ("", "", row)
    return head + joint + "".join(rows.style(_COLOUR[c], c) if c in _COLOUR else c for c in tail)


def _attention(model: ModelFacts, rows: Rows) -> Iterator[str]:
    told = []
    if model.heads:
        told.append(f"{model.heads} heads")
    if model.is_mla and model.kv_lora_rank:
        told.append(f"KV latent of {model.kv_lora_rank} + {model.rope_head_dim or 0}")
    elif model.kv_heads:
        told.append(f"{model.kv_heads} KV heads")
    if model.head_dim:
        told.append(f"head size {model.head_dim}")
    if told:
        yield from rows.value("attention", ", ".join(told))
    if model.linear_value_heads and model.linear_kind:
        sizes = f" of {model.linear_value_dim}" if model.linear_value_dim else ""
        text = f"{model.linear_key_heads or '?'} key heads, {model.linear_value_heads} value heads{sizes}"
        yield from rows.value("linear", text)


def _experts(model: ModelFacts, rows: Rows) -> Iterator[str]:
    if not model.is_moe:
        return
    text = f"{model.experts}"
    if model.experts_per_token:
        text += f", {model.experts_per_token} for a token"
    if model.shared_experts:
        text += f", {model.shared_experts} shared"
    if model.expert_intermediate_size:
        text += f", {model.expert_intermediate_size:,} wide"
    yield from rows.value("experts", text)


def _mtp(model: ModelFacts) -> str:
    count, weights = model.mtp_layers, model.weights
    held = weights.has_mtp if weights is not None else None
    if count:
        layers = f"{count} layer{'s' if count > 1 else ''}"
        if held is False:
            return f"config.json counts {layers}, the weight files hold none"
        return f"{layers}, in the weight files" if held else f"{layers} by config.json"
    if held:
        return "in the weight files, not counted by config.json"
    return (
        "none" if count == 0 or held is False else "not counted by config.json; the weight files would tell"
    )


def _numbers(model: ModelFacts, rows: Rows) -> Iterator[str]:
    told = []
    if model.hidden_size:
        told.append(f"{model.hidden_size:,} wide")
    if model.vocab_size:
        tied = ", tied" if model.tied_embeddings else ""
        told.append(f"vocabulary {model.vocab_size:,}{tied}")
    if model.context_length:
        stretched = f" ({model.rope_scaling})" if model.rope_scaling else ""
        told.append(f"context {model.context_length:,}{stretched}")
    if told:
        yield from rows.value("size", ", ".join(told))
    block = " x ".join(str(b) for b in model.quantization_block)
    plain = model.dtype or "type not named"
    if model.quantization is None:
        yield from rows.value("stored", f"{plain}, not quantized")
        return
    blocks = f" in blocks of {block}" if block else ""
    yield from rows.value("stored", f"{model.quantization}{blocks}, the rest {plain}")


def _weights(model: ModelFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    from mtpdoctor.model.by_config import weights_by_config

    weights = model.weights
    if weights is None or not weights.groups:
        weights = weights_by_config(model) if model.raw else None
    if weights is None:
        return
    yield from rows.value("weights", _total(weights))
    if "all" in weights.unknown:
        return
    by_part: dict[str, int] = {}
    for group in weights.groups:
        by_part[group.part] = by_part.get(group.part, 0) + group.bytes
    for part, size in sorted(by_part.items(), key=lambda item: -item[1]):
        if size < weights.total_bytes / 200 and not verbose:
            continue
        label = _PARTS.get(part, part)
        if part == "linear_attention" and model.linear_kind in _OTHER_STATE:
            label = _OTHER_STATE[model.linear_kind]
        bar = rows.bar(size, weights.total_bytes, _BAR) if rows.width >= 60 else ""
        room = min(24, rows.width - 24)
        yield f"{' ' * 13}{label[:room]:{room}} {in_words(size / 2**30):>10}  {bar}"
    if weights.unknown:
        yield from rows.value("", f"not in this sum: {', '.join(weights.unknown)} (size not known)")


def _total(weights: WeightFacts) -> str:
    total = in_words(weights.total_bytes / 2**30)
    if weights.source == "config":
        return f"{total} by config.json (no files looked at)"
    types: dict[str, int] = {}
    for group in weights.groups:
        types[group.dtype] = types.get(group.dtype, 0) + group.bytes
    names = ", ".join(name for name, _ in sorted(types.items(), key=lambda item: -item[1])[:4] if name != "?")
    count = f"{len(weights.files)} file{'s' if len(weights.files) != 1 else ''}"
    lost = "" if weights.complete else ", not complete"
    return f"{total} in {count} ({weights.format}{f': {names}' if names else ''}{lost})"
