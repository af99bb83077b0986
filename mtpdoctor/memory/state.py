"""The state of linear-attention and Mamba layers: bytes of one slot, and how many slots a request takes."""

from __future__ import annotations

from typing import Any

from mtpdoctor.memory.architecture import layer_kinds, text_of
from mtpdoctor.memory.launch import Launch
from mtpdoctor.memory.releases import of
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import dataclass

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_STATEFUL = frozenset({"linear", "mamba", "full+mamba", "conv"})


@dataclass(frozen=True, slots=True)
class State:
    """Bytes of one slot on one rank, over all its layers with a state."""

    conv: float
    temporal: float
    layers: int
    how: str

    @property
    def slot(self) -> float:
        return self.conv + self.temporal


def state_slot(model: ModelFacts, launch: Launch) -> State | None:
    """None for a model without a state, or where its config does not tell the shape."""
    kinds = layer_kinds(model)
    layers = sum(kind in _STATEFUL for kind in kinds)
    if not layers:
        return None
    if launch.pp > 1 and of(launch.release, ">=0.5.17"):
        layers = -(-layers // launch.pp)
    shape = _shape(model, launch.attention_tp)
    if shape is None:
        return None
    conv, temporal, words = shape
    temporal_bytes = _temporal_bytes(model, launch)
    conv_bytes = _BYTES.get(launch.arguments.environment("SGLANG_MAMBA_CONV_DTYPE") or "", 2)
    kind = {4: "fp32", 2: "bf16"}[temporal_bytes]
    return State(
        conv * conv_bytes * layers,
        temporal * temporal_bytes * layers,
        layers,
        f"{layers} layers x {words} {kind}",
    )


def _temporal_bytes(model: ModelFacts, launch: Launch) -> int:
    """--mamba-ssm-dtype, else the environment, else the model's config (from 0.5.8 on), else float32."""
    given = launch.arguments.text("mamba_ssm_dtype") or launch.arguments.environment("SGLANG_MAMBA_SSM_DTYPE")
    if given is None and of(launch.release, ">=0.5.8"):
        named = text_of(model).get("mamba_ssm_dtype")
        given = named if isinstance(named, str) else None
    return _BYTES.get(given or "", 4)


def _shape(model: ModelFacts, ranks: int) -> tuple[int, int, str] | None:
    """Elements of the convolution window and of the recurrent state of one layer, and the state in words."""
    text = text_of(model)
    if model.linear_kind == "gdn":
        kernel, heads, key_heads = (
            model.linear_conv_kernel or _int(text, "linear_conv_kernel_dim"),
            model.linear_value_heads,
            model.linear_key_heads,
        )
        key_dim = model.linear_key_dim or _int(text, "linear_key_head_dim")
        value_dim = model.linear_value_dim or _int(text, "linear_value_head_dim")
        if not (kernel and heads and key_heads and key_dim and value_dim):
            return None
        return _mamba2(heads * value_dim, key_heads, heads, value_dim, key_dim, kernel, ranks)
    if model.linear_kind == "kda":
        linear = text.get("linear_attn_config")
        linear = linear if isinstance(linear, dict) else {}
        heads, dim = _int(linear, "num_heads"), _int(linear, "head_dim")
        window = _int(linear, "short_conv_kernel_size") or 4
        if not heads or not dim:
            return None
        width = heads * dim // ranks
        return 3 * width * (window - 1), heads // ranks * dim * dim, f"{heads // ranks} x {dim} x {dim}"
    if model.linear_kind == "mamba":
        heads = _int(text, "mamba_num_heads", "mamba_n_heads")
        dim = _int(text, "mamba_head_dim", "mamba_d_head")
        groups = _int(text, "n_groups", "mamba_n_groups") or 1
        size = _int(text, "ssm_state_size", "mamba_d_state")
        window = _int(text, "conv_kernel", "mamba_d_conv") or 4
        if not (heads and dim and size):
            return None
        inner = _int(text, "mamba_d_ssm") or heads * dim
        return _mamba2(inner, groups, heads, dim, size, window, ranks)
    if model.linear_kind == "conv":
        channels = _int(text, "conv_dim") or model.hidden_size
        window = _int(text, "conv_L_cache") or 3
        return (channels // ranks * (window - 1), 0, "window only") if channels else None
    if model.linear_kind == "lightning" and model.heads and model.head_dim:
        return 0, model.heads // ranks * model.head_dim**2, f"{model.heads} x {model.head_dim}^2"
    return None


def _mamba2(
    inner: int, groups: int, heads: int, dim: int, size: int, kernel: int, ranks: int
) -> tuple[int, int, str]:
    if groups % ranks:
        groups = ranks  # each rank needs the group of its heads
    width = (inner + 2 * groups * size) // ranks
    return width * (kernel - 1), heads // ranks * dim * size, f"{heads // ranks} x {dim} x {size}"


def _int(config: Any, *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def slots_per_request(launch: Launch) -> int:
    """Slots that a running request is given: its own, those the prefix cache keeps, and with extra_buffer
    the ping-pong slots that let a request go on while its state is saved."""
    arguments, release = launch.arguments, launch.release
    if of(release, "<0.5.3.post2") or arguments.on("disable_radix_cache"):
        return 1
    if of(release, "<0.5.7"):
        return 3
    strategy = arguments.text("mamba_scheduler_strategy", "mamba_radix_cache_strategy") or ""
    spec = launch.algorithm is not None
    if of(release, "<0.5.8"):  # the condition of this release is the wrong way round
        return 4 if strategy.startswith("extra_buffer") and spec else 5
    if not strategy.startswith("extra_buffer"):
        return 3
    if of(release, "<0.5.10rc0"):
        return 4 if spec else 5
    if arguments.on("disable_overlap_schedule") or "lazy" in strategy:
        return 4
    return 5
