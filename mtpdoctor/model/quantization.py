"""How a checkpoint is quantized, under SGLang's names for the methods, and in which blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mtpdoctor.model.reading import Unreadable, parse_object, read_some

_MAX_BYTES = 64 * 1024 * 1024


class Quantization(NamedTuple):
    method: str | None
    block: tuple[int, ...]  # (128, 128) of fp8; (group size,) of the 4-bit methods
    config: Mapping[str, Any]  # where it was found; empty for a plain checkpoint


PLAIN = Quantization(None, (), {})


def read_quantization(
    raw: Mapping[str, Any], text: Mapping[str, Any], folder: Path | None
) -> tuple[Quantization, tuple[str, ...]]:
    """The checkpoint's quantization and what is malformed in its description."""
    config = raw.get("quantization_config")
    if config is None:
        config = text.get("quantization_config")
    if config is None:
        config = raw.get("compression_config")
    if config is None and folder is not None:
        config, problem = _standalone(folder)
        if problem:
            return PLAIN, (problem,)
    if config is None:
        return PLAIN, ()
    if not isinstance(config, dict):
        return PLAIN, (f"config.json: 'quantization_config' must be an object, not {config!r:.40}",)
    method = config.get("quant_method")
    if method in (None, "modelopt"):
        method = _modelopt(config) or method
    elif isinstance(method, str):
        method = method.lower()
        if method == "bitsandbytes" and not (config.get("load_in_4bit") or config.get("load_in_8bit")):
            return PLAIN, ()
    else:
        return PLAIN, (f"quant_method is {method!r:.40}",)
    return Quantization(method, _block(config, method), config), ()


def _standalone(folder: Path) -> tuple[Any, str | None]:
    """ModelOpt's hf_quant_config.json and ModelSlim's description beside config.json, if any."""
    try:
        if (folder / "quant_model_description.json").is_file():
            return {"quant_method": "modelslim"}, None
        for name in ("hf_quant_config.json", "quantize_config.json"):
            try:
                data, _ = read_some(folder / name, _MAX_BYTES)
            except FileNotFoundError:
                continue
            content = parse_object(data)
            return ({"quant_method": "gptq"} | content if name[0] == "q" else content), None
    except (Unreadable, OSError) as e:
        return None, f"hf_quant_config.json cannot be read: {e}"
    return None, None


def _modelopt(config: Mapping[str, Any]) -> str | None:
    inner = config.get("quantization")
    config = inner if isinstance(inner, dict) else config
    algorithm = config.get("quant_algo")
    if not isinstance(algorithm, str):
        return None
    if algorithm == "MIXED_PRECISION":
        layers = config.get("quantized_layers")
        used = layers.values() if isinstance(layers, dict) else ()
        fp4 = any(
            "NVFP4" in str(layer.get("quant_algo")).upper() for layer in used if isinstance(layer, dict)
        )
        return "modelopt_mixed" if fp4 else "w4afp8"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}.get(algorithm, f"modelopt_{algorithm.lower()}")


def _block(config: Mapping[str, Any], method: str | None) -> tuple[int, ...]:
    given = config.get("weight_block_size")
    if isinstance(given, list) and given and all(type(v) is int and v > 0 for v in given):
        return tuple(given)
    for part in _parts(config):
        for name in ("block_structure", "group_size", "q_group_size"):
            value = part.get(name)
            if name == "block_structure" and isinstance(value, list) and len(value) == 2:
                if all(type(v) is int and v > 0 for v in value):
                    return tuple(value)
            elif type(value) is int and value > 0:
                return (value,)
    return {"mxfp4": (32,), "modelopt_fp4": (16,), "mxfp8": (32,)}.get(method or "", ())


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The places where methods keep the size of a group: their own top, or a group's ``weights``."""
    yield config
    inner = config.get("quantization")
    if isinstance(inner, dict):
        yield inner
    groups = config.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            yield weights
