"""Which packages a log shows to be installed, in which version, and whether the SGLang is somebody's own build."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.patterns import lazy

# Literals whose lines are worth looking at; ordinary logs of a server have none of them.
LITERALS = (
    "which is incompatible",
    "Successfully installed ",
    "Transformers version ",
    " + torch==",
    " + transformers==",
    "sglang-kt",
    "sglang_kt",
    "FlagOS plugin",
    "sglang_fl",
)

_CONFLICT = lazy(r"\brequires .{1,80}, but you have ([A-Za-z0-9][\w.-]*) (\d[\w.+!-]*) which is incompatible")
_INSTALLED = lazy(r"([A-Za-z0-9][A-Za-z0-9_.-]*?)-(\d+(?:\.\d+)*[\w.+]*)(?=\s|$)")
_ADDED = lazy(r"^\s*\+ ([A-Za-z0-9][\w.-]*)==(\d[\w.+!-]*)\s*$")
_USED = lazy(r"\bTransformers version (\d+(?:\.\d+)+\w*)")
_FORKS = (
    ("sglang-kt", lazy(r"\bsglang[-_]kt\b")),
    ("sglang_fl", lazy(r"\bsglang_fl\b|\bFlagOS plugin\b")),
)
_LOCAL = lazy(
    r"\bsglang(?:==|-|[ _][Vv]ersion[:= '\"]+|: +| +)v?(\d+\.\d+\.\d+[\w.]*\+(?!cu\d|rocm|cpu|xpu|npu|g[0-9a-f]{6,})[A-Za-z][\w.]*)"
)


def installed_in(text: str) -> Iterator[tuple[str, str]]:
    """(distribution, version) pairs that a line of pip, uv or SGLang shows; SGLang itself is left out."""
    if "which is incompatible" in text and (m := _CONFLICT.search(text)):
        yield _name(m[1]), m[2].rstrip(",.")
    if "Successfully installed " in text:
        for m in _INSTALLED.finditer(text.partition("Successfully installed ")[2]):
            if _name(m[1]) != "sglang":
                yield _name(m[1]), m[2]
    if " + " in text and (m := _ADDED.match(text)) and _name(m[1]) != "sglang":
        yield _name(m[1]), m[2]
    if "Transformers version " in text and (m := _USED.search(text)):
        yield "transformers", m[1]


def build_in(text: str) -> str | None:
    """The name of a fork or plugin of SGLang that a line shows, or a version with somebody's own suffix."""
    for name, pattern in _FORKS:
        if pattern.search(text):
            return name
    local = _LOCAL.search(text) if "+" in text else None
    return f"sglang {local[1]}" if local else None


def _name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
