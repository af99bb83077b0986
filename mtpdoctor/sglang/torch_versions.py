"""What versions of torch ask for, and which of SGLang's pins hold on every platform (``knowledge/releases/torch.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.store import read_table

TABLE = "torch.json"


def asked_by_torch(version: str) -> Mapping[str, str]:
    """Distribution -> specifier that a version of torch ("2.9.1", "2.9.1+cu130") asks for, torchvision and torchaudio
    too, and NVIDIA's libraries where the wheel is the index's own; empty where the version is not known."""
    base, _, local = version.partition("+")
    row = _table()["torch"].get(base, {})
    asked = {name: row[name] for name in ("triton", "torchvision", "torchaudio") if name in row}
    cuda = row.get("cuda", "")
    if cuda and local in ("", "cu" + cuda.replace(".", "")):
        asked |= {
            f"nvidia-{lib}-cu{cuda[:2]}": f"=={row[lib]}"
            for lib in ("cudnn", "nccl", "cublas", "nvjitlink")
            if lib in row
        }
    return asked


def cuda_of(version: str) -> str | None:
    """The CUDA ("13.0") that a wheel of torch is built for: by its local part, else by what the index's wheel is."""
    local = version.partition("+")[2]
    if local.startswith("cu") and local[2:].isdigit():
        return f"{local[2:-1]}.{local[-1]}"
    if local:
        return None
    found = _table()["torch"].get(version, {}).get("cuda")
    return found if isinstance(found, str) else None


def python_since(release: Release) -> int | None:
    """The least minor version of Python 3 that the wheels of a release of SGLang ask for."""
    asked = [(parse_release(since), int(minor)) for since, minor in _table()["sglang_python"].items()]
    return max((minor for since, minor in asked if since <= release), default=None)


def anywhere() -> frozenset[str]:
    """Distributions that SGLang's package pins alike for all platforms: they hold no code for an accelerator."""
    return frozenset(_table()["anywhere"])


def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table(releases_folder() / TABLE)
    return table
