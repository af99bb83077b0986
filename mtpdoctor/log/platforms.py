"""Which make of accelerator a launch ran on, where its log shows it by what only that make has.

CUDA is not looked for: SGLang calls AMD's devices ``cuda`` too, so that its traces tell little.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.log.types import Attempt, Line
from mtpdoctor.patterns import lazy

# Fact value -> its signs in paths of frames and in error lines.
_SIGNS = (
    ("rocm", lazy(r"/aiter/|\[aiter\]|\bgfx(?:9[0-4]\w|950|1[0-2]\d\d)\b|\bHIP (?:error|out of memory)|\bhipError\w+|/opt/rocm\b|\bamdgpu\b")),
    ("npu", lazy(r"/torch_npu/|/hardware_backend/npu/|\bNPU (?:out of memory|function error)|\bAscend910\w|/Ascend/|\bbishengir\b|\bEZ\d{4}\b.*\bAscend")),
    ("xpu", lazy(r"\bXPU out of memory|\blevel_zero backend failed|UR_RESULT_ERROR_\w+")),
)  # fmt: skip
# Devices of --device that are a platform of their own.
OF_DEVICE = {"cpu": "cpu", "npu": "npu", "xpu": "xpu"}


# Literals of lines outside of errors that only one make of GPU writes, and the fact's value.
SAID = (
    ("[aiter] import [", "rocm"),
    ("RCCL version", "rocm"),
    ("HIP version", "rocm"),
    ("lmsysorg/sglang-rocm", "rocm"),
    ("rocm/sgl-dev", "rocm"),
)


def platform_said(text: str) -> str | None:
    """The platform that a line outside of errors shows."""
    return next((name for literal, name in SAID if literal in text), None)


def platform_of(attempt: Attempt) -> tuple[str, Line] | None:
    """The platform and the line that shows it; None where none or several are shown."""
    found: dict[str, Line] = {}
    for line in _lines(attempt):
        for name, pattern in _SIGNS:
            if name not in found and pattern.search(line.text):
                found[name] = line
    return next(iter(found.items())) if len(found) == 1 else None


def _lines(attempt: Attempt) -> Iterator[Line]:
    for event in attempt.events:
        yield event.line
        node = event.traceback
        while node is not None:
            yield from node.lines
            node = node.inner
