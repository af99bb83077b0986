"""The NVIDIA GPUs of this machine, asked of the driver through NVML. No CUDA context is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mtpdoctor.host.types import Gpu, HostFacts

GIB = 2**30


def gpus_here(nvml: Any = None, environ: Mapping[str, str] = os.environ) -> HostFacts | None:
    """The GPUs that a launch from here would see (``CUDA_VISIBLE_DEVICES`` counts), memory in GiB.

    None when there is no NVIDIA driver: what else the machine has is then not known. ``nvml`` is the
    module ``pynvml`` unless given.
    """
    if nvml is None:
        try:
            import pynvml
        except ImportError:
            return None
        nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        every = [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        driver = _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
    shown = _visible(every, environ.get("CUDA_VISIBLE_DEVICES"))
    if shown is None:
        return None
    return HostFacts(platform="cuda" if shown else "none", gpus=shown, driver=driver, local=True)


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        sm=major * 10 + minor,
        memory_gib=memory.total / GIB,
        free_gib=memory.free / GIB,
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _visible(gpus: list[Gpu], setting: str | None) -> tuple[Gpu, ...] | None:
    """As CUDA reads the variable: up to the first entry that names no GPU. None for UUIDs and MIG parts,
    which are not told apart here."""
    if setting is None:
        return tuple(gpus)
    shown: list[Gpu] = []
    for entry in setting.split(","):
        word = entry.strip()
        if word.upper().startswith(("GPU-", "MIG-")):
            return None
        if not word.isdigit() or int(word) >= len(gpus):
            break
        shown.append(gpus[int(word)])
    return tuple(shown)
