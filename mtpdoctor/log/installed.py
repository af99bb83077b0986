"""Whether the SGLang of a log is somebody's own build, and which."""

from __future__ import annotations

from mtpdoctor.patterns import lazy

# Literals whose lines are worth looking at; ordinary logs of a server have none of them.
LITERALS = (
    "sglang-kt",
    "sglang_kt",
    "FlagOS plugin",
    "sglang_fl",
)

_FORKS = (
    ("sglang-kt", lazy(r"\bsglang[-_]kt\b")),
    ("sglang_fl", lazy(r"\bsglang_fl\b|\bFlagOS plugin\b")),
)
_LOCAL = lazy(
    r"\bsglang(?:==|-|[ _][Vv]ersion[:= '\"]+|: +| +)v?(\d+\.\d+\.\d+[\w.]*\+(?!cu\d|rocm|cpu|xpu|npu|g[0-9a-f]{6,})[A-Za-z][\w.]*)"
)


def build_in(text: str) -> str | None:
    """The name of a fork or plugin of SGLang that a line shows, or a version with somebody's own suffix."""
    for name, pattern in _FORKS:
        if pattern.search(text):
            return name
    local = _LOCAL.search(text) if "+" in text else None
    return f"sglang {local[1]}" if local else None
