"""Model folders for tests: safetensors files with a true header and, in place of tensors, a hole."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "torch_dtype": "bfloat16",
}
SIZES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "I32": 4, "U8": 1}


def header(tensors: Mapping[str, tuple[str, int]]) -> tuple[bytes, int]:
    """A header for ``{name: (dtype, numbers)}``, and the bytes of the tensors."""
    at, content = 0, {"__metadata__": {"format": "pt"}}
    for name, (dtype, count) in tensors.items():
        size = count * SIZES[dtype]
        content[name] = {"dtype": dtype, "shape": [count], "data_offsets": [at, at + size]}  # type: ignore[assignment]
        at += size
    text = json.dumps(content).encode()
    return struct.pack("<Q", len(text)) + text, at


def write_shard(file: Path, tensors: Mapping[str, tuple[str, int]], *, lacking: int = 0) -> None:
    head, size = header(tensors)
    with open(file, "wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + size - lacking)


def write_model(
    folder: Path, shards: Mapping[str, Mapping[str, tuple[str, int]]], config: Mapping[str, Any] = CONFIG
) -> None:
    """config.json, a tokenizer, the shards and an index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    for name, tensors in shards.items():
        write_shard(folder / name, tensors)
    weight_map = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )
