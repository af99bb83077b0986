"""The options and variables that a text names, and the values that stand by them.

What the text wants of them is read elsewhere: ``kinds.asked`` reads what a check asks for, ``printed.options`` what a
sentence says to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import FlagSpec, FlagTable

_NAME = lazy(
    r"(?P<flag>(?<![\w-])--[a-z][a-z0-9_-]*[a-z0-9])"
    r"|(?P<variable>(?<![\w/.-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w/]))"
    r"|(?<![\w./-])(?:(?:self\.)?server_args\.)?(?P<field>[a-z]+(?:_[a-z0-9]+)+)(?![\w/(]|\.\w)"
)
_VARIABLE = lazy(
    r"(?:SGLANG|SGL|NCCL|RCCL|CUDA|TORCH|PYTORCH|PYTORCH_CUDA|TRITON|HF|GLOO|HSA|HIP|ROCM|ASCEND|HCCL|FLASHINFER|MC|MOONCAKE|NVSHMEM|UCX|VLLM|AITER|TVM|"
    r"TILELANG|TRTLLM|LD|MORI|DG|LMCACHE|OMP|TIKTOKEN|TRANSFORMERS|CUTE)_\w+"
)
_VALUE = lazy(
    r"""[`'"]?(?:\s*(?P<sign>==|=|>=|>|<=)\s*|\s+(?:to\s+(?:be\s+)?)?)['"`]?(?P<value>-?\d[\w.]*|[A-Za-z_][\w./:-]*)"""
)
# Words of a sentence, which are no value of an option.
_WORDS = frozenset(
    [
        "or",
        "and",
        "to",
        "for",
        "with",
        "when",
        "is",
        "instead",
        "in",
        "on",
        "if",
        "as",
        "by",
        "so",
        "the",
        "a",
        "an",
        "of",
        "at",
        "from",
        "not",
        "be",
        "value",
        "flag",
        "option",
        "are",
        "was",
        "values",
        "must",
        "should",
        "requires",
        "require",
        "needs",
        "without",
        "only",
        "does",
        "do",
        "cannot",
        "can",
        "unless",
        "but",
        "which",
        "together",
        "yet",
        "smaller",
        "larger",
        "different",
        "other",
        "one",
        "has",
        "have",
        "this",
        "that",
        "it",
        "its",
        "because",
        "since",
        "than",
        "then",
        "may",
        "will",
        "explicitly",
        "argument",
        "via",
        "using",
    ]
)


@dataclass(frozen=True, slots=True)
class Named:
    """``spec``: of an option that the release has, None for a variable and what is no option of it."""

    start: int
    end: int
    spec: FlagSpec | None
    is_flag: bool  # written as on a command line
    variable: str  # "" for options


def named_in(text: str, table: FlagTable) -> Iterator[Named]:
    """Every name in the text, in its order."""
    for found in _NAME.finditer(text):
        spec = None
        if found["flag"]:
            spec = table.resolve(found["flag"].replace("_", "-"))
        elif found["field"]:
            spec = table.by_dest(found["field"])
        if spec is not None and spec.refused is not None:
            spec = None
        yield Named(found.start(), found.end(), spec, bool(found["flag"]), found["variable"] or "")


def is_setting(variable: str) -> bool:
    """Does its name begin as those do that SGLang and what it stands on read?"""
    return _VARIABLE.match(variable) is not None


def value_after(text: str, at: int) -> tuple[str, str | None, int] | None:
    """The word behind a name that ends at ``at``, the sign before it, and where it ends."""
    said = _VALUE.match(text, at)
    return (said["value"].rstrip(".,:"), said["sign"], said.end()) if said else None


def usable(spec: FlagSpec, value: str, free: Callable[[str], bool]) -> str | None:
    """The value, where the option takes such a one; ``free`` judges what the release gives no form for."""
    if not value or value.lower() in _WORDS:
        return None
    if spec.choices:
        return value if value in {str(c) for c in spec.choices} else None
    if spec.type in ("int", "float"):
        return None if number(value) is None or (spec.type == "int" and "." in value) else value
    return value if free(value) else None


def is_word(text: str) -> bool:
    return text.lower() in _WORDS


def number(value: Any) -> float | None:
    """None for what is no number, and for those that count nothing ("inf", "nan")."""
    try:
        read = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return read if read is not None and isfinite(read) else None
