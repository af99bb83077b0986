"""Sizes as Docker and as Kubernetes write them."""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy

_SIZE = lazy(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b|i)?\s*\Z", re.I)


def docker_size(text: str) -> str:
    """``16g`` for ``16g``, ``16gb``, ``16Gi``. Raises ValueError when it is no size."""
    m = _SIZE.match(text)
    if m is None:
        raise ValueError(f"{text!r} is no size (write e.g. 16g)")
    return m[1] + m[2].lower()


def kubernetes_size(text: str) -> str:
    """``16Gi`` for the same."""
    size = docker_size(text)
    return size if size[-1].isdigit() else f"{size[:-1]}{size[-1].upper()}i"


_GIB = {"": 2**-30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 1024.0}


def gib_of(text: str) -> float | None:
    """GiB of either; None where it is no size."""
    m = _SIZE.match(text)
    return float(m[1]) * _GIB[m[2].lower()] if m is not None else None
