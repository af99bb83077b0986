"""Which make of accelerator a launch ran on, where its log shows it by what only that make has.

That SGLang says ``cuda`` tells nothing: it calls AMD's devices so too. NVIDIA's own tools only contradict other signs (a
folder /opt/rocm that was left on the machine).
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.log.types import Attempt, Line
from mtpdoctor.patterns import lazy

# Fact value -> its signs in paths of frames and in error lines.
_SIGNS = (
    ("rocm", lazy(r"/aiter/|\[aiter\]|\bgfx(?:9[0-4]\w|950|1[0-2]\d\d)\b|\bHIP (?:error|out of memory)|\bhipError\w+|/opt/rocm\b|\bamdgpu\b|\blibamdhip64\b|\blibrccl\b|\b(?:rocblas|hipblas(?:lt)?|miopen)(?:Status|Error|_status)\w*")),
    ("npu", lazy(r"/torch_npu/|/hardware_backend/npu/|\bNPU (?:out of memory|function error)|\bAscend910\w|/Ascend/|\bbishengir\b|\bEZ\d{4}\b.*\bAscend")),
    ("cuda", lazy(r"\bnvcc\b|-gencode\b|\bsm_\d{2,3}a?\b|\bNVIDIA (?:[AHBLT]\d{1,3}|GB\d{2,3}|RTX|GeForce|Tesla)\b")),
    ("xpu", lazy(r"\bXPU out of memory|\blevel_zero backend failed|UR_RESULT_ERROR_\w+")),
)  # fmt: skip
# SGLang's code for a platform also runs where an option asks for it, and then finds nothing to run on.
_LACKS = (
    ("No module named 'torch_npu'", "npu"),
    ("No module named 'aiter'", "rocm"),
    ("Could not detect ROCm GPU architecture", "rocm"),  # names examples, of a GPU that was not found
)
# Devices of --device that are a platform of their own.
OF_DEVICE = {"cpu": "cpu", "npu": "npu", "xpu": "xpu", "musa": "musa"}


# Literals of lines outside of errors that only one make of accelerator writes, what of it counts, and the fact's value.
SAID = (
    ("[aiter] import [", None, "rocm"),
    ("RCCL version", None, "rocm"),
    ("HIP version", None, "rocm"),
    ("lmsysorg/sglang-rocm", None, "rocm"),
    ("rocm/sg", lazy(r"\brocm/(?:sgl-dev|sglang)"), "rocm"),
    ("-rocm", lazy(r"\bsglang:[\w.-]*-rocm\d"), "rocm"),
    ("AMD Instinct", None, "rocm"),
    ("AMD_Instinct", None, "rocm"),
    # A prompt: machines are often named after their GPUs.
    ("@mi", lazy(r"^[\w.-]+@mi(?:2[15]0|3\d\d)[ax]?(?:[-._]\w+)*:"), "rocm"),
    (" gfx9", lazy(r"^\s*Name:\s+gfx9(?:0a|4\d|50)\b"), "rocm"),  # rocminfo
    ("SGLANG_USE_AITER=", lazy(r"(?<!\w)SGLANG_USE_AITER=(?:1|true)\b"), "rocm"),
    ("ROCR_VISIBLE_DEVICES=", lazy(r"(?<![A-Z_])ROCR_VISIBLE_DEVICES=\d"), "rocm"),
    ("HIP_VISIBLE_DEVICES=", lazy(r"(?<![A-Z_])HIP_VISIBLE_DEVICES=\d"), "rocm"),
    ("/torch_npu/", None, "npu"),
    ("ASCEND_RT_VISIBLE_DEVICES=", lazy(r"(?<![A-Z_])ASCEND_RT_VISIBLE_DEVICES=\d"), "npu"),
    ("-cann", lazy(r"\bsglang:[\w.-]*-cann\d"), "npu"),
    ("/dev/davinci", None, "npu"),
    ("auto-resolved to cuda_ipc (single-node CUDA)", None, "cuda"),
    ("torch_musa", lazy(r"/torch_musa/|\btorch_musa version"), "musa"),
)


def platform_said(text: str) -> str | None:
    """The platform that a line outside of errors shows."""
    return next(
        (name for literal, form, name in SAID if literal in text and (form is None or form.search(text))),
        None,
    )


def platform_of(attempt: Attempt) -> tuple[str, Line] | None:
    """The platform and the line that shows it; None where none or several are shown."""
    found: dict[str, Line] = {}
    lacking: set[str] = set()
    for line in _lines(attempt):
        lacking |= {name for text, name in _LACKS if text in line.text}
        for name, pattern in _SIGNS:
            if name not in found and pattern.search(line.text):
                found[name] = line
    if len(found) != 1 or found.keys() & {"cuda", *lacking}:
        return None
    return next(iter(found.items()))


def _lines(attempt: Attempt) -> Iterator[Line]:
    for event in attempt.events:
        yield event.line
        for node in event.traceback.chain if event.traceback is not None else ():
            yield from node.lines
