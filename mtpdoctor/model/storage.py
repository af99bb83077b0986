"""How many bytes a matrix takes in a checkpoint, by its quantization method."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mtpdoctor.model.quantization import read_quantization
from mtpdoctor.model.shapes import Matrix
from mtpdoctor.model.types import ModelFacts

_PLAIN = {"bfloat16": ("BF16", 2), "float16": ("F16", 2), "half": ("F16", 2), "float32": ("F32", 4)}
_EIGHT_BITS = ("modelopt_fp8", "w8a8_fp8", "w8a8_int8", "fbgemm_fp8", "quark_fp8", "ptpc_fp8", "experts_int8")
_PACKED = ("awq", "gptq", "auto-round", "auto_round", "awq_marlin", "gptq_marlin", "inc")
_MAX_TIME = 0.05  # seconds for one pattern of the config's own on one name

Pieces = list[tuple[str, int]]  # stored type, bytes


class Storage:
    """``pieces(matrix)``: the bytes of one copy by stored type, its scales included."""

    def __init__(
        self, plain: tuple[str, int], packed: Callable[[Matrix], Pieces] | None, ignored: _Ignored
    ) -> None:
        self._plain = plain
        self._packed = packed
        self._ignored = ignored

    def pieces(self, matrix: Matrix) -> Pieces:
        if self._packed is not None and matrix.linear and not self._ignored.holds(matrix.name):
            return self._packed(matrix)
        dtype, size = self._plain
        return [(dtype, matrix.rows * matrix.columns * size)]


def storage_of(model: ModelFacts, text: Mapping[str, Any]) -> Storage | None:
    """None where the stored type or the quantization's layout is not known."""
    from pathlib import Path

    plain = _PLAIN.get(model.dtype or "")
    if plain is None:
        return None
    if model.quantization is None:
        return Storage(plain, None, _Ignored(()))
    path = Path(model.path)
    found, _ = read_quantization(model.raw, text, path if path.is_dir() else path.parent)
    ignored = _Ignored(_ignored_names(found.config))
    packed = _packing(model, found.config)
    return None if packed is None else Storage(plain, packed, ignored)


def _packing(model: ModelFacts, config: Mapping[str, Any]) -> Callable[[Matrix], Pieces] | None:
    method = model.quantization
    block = model.quantization_block
    if method in ("fp8", "mxfp8") or method in _EIGHT_BITS:
        return lambda m: _fp8(m, block, "F32" if method != "mxfp8" else "U8")
    if method == "mxfp4":  # the experts alone (gpt-oss)
        return lambda m: (
            _four_bits(m, 32, "U8", 1, "U8") if m.part == "experts" else [("BF16", 2 * m.rows * m.columns)]
        )
    if method in ("modelopt_fp4", "nvfp4", "petit_nvfp4"):
        return lambda m: _four_bits(m, 16, "U8", 1, "F8_E4M3")
    if method in _PACKED:
        bits = config.get("bits", config.get("w_bit", 4))
        group = block[0] if block else 128
        return lambda m: _integers(m, bits if bits in (2, 3, 4, 8) else 4, group, zeros=True)
    if method == "compressed-tensors":
        return _compressed(config)
    if method == "bitsandbytes":
        if config.get("load_in_8bit") is True:
            return lambda m: [("I8", m.rows * m.columns)]
        return lambda m: [("U8", m.rows * m.columns // 2), ("F32", m.rows * m.columns // 64 * 4)]
    if method in ("w4afp8", "w4a8_awq"):
        return lambda m: (
            _integers(m, 4, 128, zeros=False) if m.part == "experts" else _fp8(m, (128, 128), "F32")
        )
    return None


def _compressed(config: Mapping[str, Any]) -> Callable[[Matrix], Pieces] | None:
    """compressed-tensors: the first group's scheme, as all Linear layers of the published ones have it."""
    groups = config.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict):
        return None
    bits, kind = weights.get("num_bits"), weights.get("type")
    size = weights.get("group_size")
    group = size if type(size) is int and size > 0 else 0
    block = weights.get("block_structure")
    if bits == 8:
        blocks = (
            tuple(block) if isinstance(block, list) and all(type(b) is int and b > 0 for b in block) else ()
        )
        return lambda m: _fp8(m, blocks, "BF16", "F8_E4M3" if kind == "float" else "I8")
    if bits == 4 and kind == "float":
        return lambda m: _four_bits(m, group or 16, "U8", 1, "F8_E4M3")
    if bits in (2, 3, 4):
        symmetric = weights.get("symmetric") is not False
        return lambda m: _integers(m, bits, group or m.columns, zeros=not symmetric)
    return None


def _fp8(m: Matrix, block: tuple[int, ...], scale: str, dtype: str = "F8_E4M3") -> Pieces:
    size = {"F32": 4, "BF16": 2, "U8": 1}[scale]
    if len(block) == 2:
        scales = _parts(m.rows, block[0]) * _parts(m.columns, block[1])
    elif len(block) == 1:
        scales = m.rows * _parts(m.columns, block[0])
    else:
        scales = m.rows if scale == "BF16" else 1
    return [(dtype, m.rows * m.columns), (scale, scales * size)]


def _four_bits(m: Matrix, group: int, dtype: str, scale_size: int, scale: str) -> Pieces:
    return [(dtype, (m.rows * m.columns + 1) // 2), (scale, m.rows * _parts(m.columns, group) * scale_size)]


def _integers(m: Matrix, bits: int, group: int, *, zeros: bool) -> Pieces:
    groups = m.rows * _parts(m.columns, max(1, group))
    packed = m.rows * m.columns * bits // 8 + (groups * bits // 8 if zeros else 0)
    return [("I32", packed), ("F16", 2 * groups)]


def _parts(length: int, block: int) -> int:
    return -(-length // block)


def _ignored_names(config: Mapping[str, Any]) -> Iterable[str]:
    inner = config.get("quantization")
    places = [config, inner] if isinstance(inner, dict) else [config]
    for place in places:
        for name in (
            "modules_to_not_convert",
            "ignore",
            "exclude_modules",
            "ignored_layers",
            "exclude_layers",
        ):
            value = place.get(name)
            if isinstance(value, list):
                yield from (v for v in value if isinstance(v, str))


class _Ignored:
    """Modules that the quantization left alone: names, ``*`` patterns, ``re:`` expressions.

    Names count from ``layers.`` on, so that those of a model inside another one (``language_model.``) fit.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._patterns: list[str] = []
        self._expressions: list[Any] = []
        for name in names:
            if name.startswith("re:"):
                self._expressions.append(name[3:])
            elif "*" in name or "?" in name:
                self._patterns.append(_from_layers(name))
            else:
                self._exact.add(_from_layers(name))
        self._compiled: list[Any] | None = None

    def holds(self, name: str) -> bool:
        short = _from_layers(name)
        words = short.split(".")
        if any(".".join(words[:n]) in self._exact for n in range(1, len(words) + 1)) or self._exact & {
            words[-1]
        }:
            return True
        if any(w in self._exact for w in words):
            return True
        if any(
            fnmatch.fnmatchcase(n, p) or fnmatch.fnmatchcase(n, p.rstrip("*") + "*")
            for p in self._patterns
            for n in (short, name)
        ):
            return True
        return bool(self._expressions) and any(_search(e, name) for e in self._regexes())

    def _regexes(self) -> list[Any]:
        if self._compiled is None:
            import regex

            self._compiled = []
            for text in self._expressions[:1000]:
                try:
                    self._compiled.append(regex.compile(text))
                except (regex.error, RecursionError, OverflowError):
                    continue
        return self._compiled


def _search(expression: Any, name: str) -> bool:
    try:
        return expression.match(name, timeout=_MAX_TIME) is not None
    except TimeoutError:
        return False


def _from_layers(name: str) -> str:
    at = name.find("layers.")
    return name[at:] if at >= 0 else name
