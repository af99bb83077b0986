"""The matrices of layers that keep a state: GDN, KDA, lightning attention, Mamba, short convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpdoctor.model.shapes import Matrix, Shape

_PART = "linear_attention"


def linear_matrices(s: Shape, at: str, kind: str) -> Iterator[Matrix]:
    """Raises ``shapes.Unknown`` for a kind whose shape the config does not give."""
    if kind == "mamba":
        return _mamba_1(s, at) if s.type == "jamba" else _mamba_2(s, at)
    if kind == "conv":
        return _short_conv(s, at)
    found = {"gdn": _gdn, "kda": _kda, "lightning": _lightning}.get(s.model.linear_kind or "")
    if found is None:
        from mtpdoctor.model.shapes import Unknown

        raise Unknown(s.model.linear_kind or kind)
    return found(s, at)


def _matrix(name: str, rows: int, columns: int, *, linear: bool = True) -> Matrix:
    from mtpdoctor.model.shapes import Matrix

    return Matrix(name, _PART, rows, columns, 1, linear)


def _gdn(s: Shape, at: str) -> Iterator[Matrix]:
    keys = s.number("linear_num_key_heads") * s.number("linear_key_head_dim")
    heads = s.number("linear_num_value_heads")
    values = heads * s.number("linear_value_head_dim")
    at += ".linear_attn"
    yield _matrix(f"{at}.in_proj_qkv", 2 * keys + values, s.hidden)
    yield _matrix(f"{at}.in_proj_z", values, s.hidden)
    yield _matrix(f"{at}.in_proj_ba", 2 * heads, s.hidden, linear=False)
    yield _matrix(
        f"{at}.conv1d", 2 * keys + values, s.number("linear_conv_kernel_dim", default=4), linear=False
    )
    yield _matrix(f"{at}.out_proj", s.hidden, values)


def _kda(s: Shape, at: str) -> Iterator[Matrix]:
    given = s.text.get("linear_attn_config")
    config = given if isinstance(given, dict) else s.text
    from mtpdoctor.model.shapes import need

    def number(name: str) -> int:
        value = config.get(name)
        return need(value if type(value) is int else None)

    heads, size = number("num_heads"), number("head_dim")
    inner = heads * size
    at += ".self_attn"
    for name in ("q_proj", "k_proj", "v_proj"):
        yield _matrix(f"{at}.{name}", inner, s.hidden)
    yield _matrix(f"{at}.conv1d", 3 * inner, number("short_conv_kernel_size"), linear=False)
    for name in ("f", "g"):
        yield _matrix(f"{at}.{name}_a_proj", size, s.hidden)
        yield _matrix(f"{at}.{name}_b_proj", inner, size)
    yield _matrix(f"{at}.b_proj", heads, s.hidden, linear=False)
    yield _matrix(f"{at}.o_proj", s.hidden, inner)


def _lightning(s: Shape, at: str) -> Iterator[Matrix]:
    from mtpdoctor.model.shapes import need

    inner = need(s.model.heads) * need(s.model.head_dim)
    at += ".self_attn"
    yield _matrix(f"{at}.qkv_proj", 3 * inner, s.hidden)
    yield _matrix(f"{at}.output_gate", inner, s.hidden)
    yield _matrix(f"{at}.out_proj", s.hidden, inner)


def _mamba_2(s: Shape, at: str) -> Iterator[Matrix]:
    heads = s.number("mamba_num_heads", "mamba_n_heads")
    inner = heads * s.number("mamba_head_dim", "mamba_d_head")
    groups = s.number("n_groups", "mamba_n_groups", default=1) * s.number("ssm_state_size", "mamba_d_state")
    at += ".mixer"
    yield _matrix(f"{at}.in_proj", 2 * inner + 2 * groups + heads, s.hidden)
    kernel = s.number("conv_kernel", "mamba_d_conv", default=4)
    yield _matrix(f"{at}.conv1d", inner + 2 * groups, kernel, linear=False)
    yield _matrix(f"{at}.out_proj", s.hidden, inner)


def _mamba_1(s: Shape, at: str) -> Iterator[Matrix]:
    inner = s.number("mamba_expand", default=2) * s.hidden
    state, rank = s.number("mamba_d_state"), s.number("mamba_dt_rank", default=(s.hidden + 15) // 16)
    at += ".mamba"
    yield _matrix(f"{at}.in_proj", 2 * inner, s.hidden)
    yield _matrix(f"{at}.conv1d", inner, s.number("mamba_d_conv", default=4), linear=False)
    yield _matrix(f"{at}.x_proj", rank + 2 * state, inner)
    yield _matrix(f"{at}.dt_proj", inner, rank)
    yield _matrix(f"{at}.A_log", inner, state, linear=False)
    yield _matrix(f"{at}.out_proj", s.hidden, inner)


def _short_conv(s: Shape, at: str) -> Iterator[Matrix]:
    at += ".conv"
    yield _matrix(f"{at}.in_proj", 3 * s.hidden, s.hidden)
    yield _matrix(f"{at}.conv", s.hidden, s.number("conv_L_cache", default=3), linear=False)
    yield _matrix(f"{at}.out_proj", s.hidden, s.hidden)
