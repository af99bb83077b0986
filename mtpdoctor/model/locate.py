"""Finding a model's config.json on this machine from what a command calls the model. Nothing is fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mtpdoctor.patterns import lazy

_HUB_ID = lazy(r"[\w.-]+/[\w.-]+\Z")


def local_model(name: str) -> Path | None:
    """The folder with the config.json of a path or of a Hub id in the local Hugging Face cache."""
    path = Path(name).expanduser()
    try:
        if (path / "config.json").is_file():
            return path
    except (OSError, ValueError):
        return None
    return cached_snapshot(name) if not path.exists() else None


def cached_snapshot(name: str) -> Path | None:
    """The snapshot of a Hub id (``Qwen/Qwen3-8B``) in the local Hugging Face cache, where it is there."""
    return _cached(name) if _HUB_ID.fullmatch(name) else None


def _cached(name: str) -> Path | None:
    """The snapshot that ``main`` points to, as huggingface_hub lays its cache out."""
    folder = _cache() / f"models--{name.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    snapshot = folder / "snapshots" / revision
    if not re.fullmatch(r"[0-9a-f]{7,64}", revision) or not (snapshot / "config.json").is_file():
        return None
    return snapshot


def _cache() -> Path:
    for name, below in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser() / below
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "huggingface" / "hub"
