"""The NVIDIA GPUs of this machine, asked of the driver through NVML. No CUDA context is made.

What the driver does not answer, and what an older ``pynvml`` has no call for, stays unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mtpdoctor.host.types import Gpu, HostFacts
from mtpdoctor.host.visible import chosen
from mtpdoctor.records import dataclass

GIB = 2**30
_NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED
T = TypeVar("T")


def gpus_here(nvml: Any = None, environ: Mapping[str, str] = os.environ) -> HostFacts | None:
    """The GPUs that a launch from here would see (``CUDA_VISIBLE_DEVICES`` counts), memory in GiB.

    None when there is no NVIDIA driver: what else the machine has is then not known. ``nvml`` is the
    module ``pynvml`` unless given. A light look, some milliseconds; ``host.probe`` looks at everything.
    """
    if nvml is None:
        try:
            import pynvml
        except Exception:  # not installed, or another package of that name that does not even load
            return None
        nvml = pynvml
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError, OSError):
        return None
    try:
        found = [_entry_or_none(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        driver = attempt(nvml, lambda: text(nvml.nvmlSystemGetDriverVersion()))
        cuda = cuda_version(nvml)
    except (nvml.NVMLError, OSError):
        return None
    finally:
        attempt(nvml, nvml.nvmlShutdown)
    every = tuple(e for e in found if e is not None)  # a GPU that is lost is not one of them
    if found and not every:
        return None
    shown = visible(every, environ.get("CUDA_VISIBLE_DEVICES"))
    if shown is None:
        return None
    gpus = tuple(e.gpu for e in shown)
    return HostFacts(
        platform="cuda" if gpus else "none", gpus=gpus, driver=driver, cuda_driver=cuda, local=True
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A GPU with its handle, or a MIG part of it; ``parts`` are the MIG parts of a GPU in that mode."""

    gpu: Gpu
    handle: Any
    parts: tuple[Entry, ...] = ()


def _entry_or_none(nvml: Any, index: int) -> Entry | None:
    try:
        return entry(nvml, index)
    except nvml.NVMLError:
        return None


def entry(nvml: Any, index: int) -> Entry:
    """What a launch needs to know of one GPU. Raises the library's NVMLError where even that fails.

    A GPU that shares the system's memory (GB10, Jetson) has none of its own to tell of."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        if getattr(error, "value", None) != _NOT_SUPPORTED:
            raise
        memory = None
    mode = attempt(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle)[0])
    gpu = Gpu(
        index=index,
        name=text(nvml.nvmlDeviceGetName(handle)),
        sm=major * 10 + minor,
        memory_gib=memory.total / GIB if memory else None,
        free_gib=memory.free / GIB if memory else None,
        uuid=_uuid(nvml, handle),
        mig=None if mode is None else mode == 1,
    )
    return Entry(gpu, handle, _parts(nvml, handle, gpu) if gpu.mig else ())


def _parts(nvml: Any, handle: Any, whole: Gpu) -> tuple[Entry, ...]:
    out = []
    for number in range(attempt(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0):
        part = attempt(nvml, lambda n=number: nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, n))  # type: ignore[misc]
        if part is None:  # the places of parts that were not made
            continue
        memory = attempt(nvml, lambda p=part: nvml.nvmlDeviceGetMemoryInfo(p))  # type: ignore[misc]
        name = attempt(nvml, lambda p=part: text(nvml.nvmlDeviceGetName(p)))  # type: ignore[misc]
        gpu = Gpu(
            index=whole.index,
            name=name or f"{whole.name} MIG",
            sm=whole.sm,
            memory_gib=memory.total / GIB if memory else None,
            free_gib=memory.free / GIB if memory else None,
            uuid=_uuid(nvml, part),
            mig=True,
        )
        out.append(Entry(gpu, part))
    return tuple(out)


def _uuid(nvml: Any, handle: Any) -> str | None:
    return attempt(nvml, lambda: text(nvml.nvmlDeviceGetUUID(handle)))


def visible(every: tuple[Entry, ...], setting: str | None) -> tuple[Entry, ...] | None:
    """Those that CUDA shows a program, in its order; None when that cannot be told.

    Of a GPU in MIG mode a program sees the first part unless it names another by its UUID.
    """
    first = [e.parts[0] if e.parts else e for e in every if e.parts or not e.gpu.mig]
    rest = [p for e in every for p in e.parts[1:]]
    everything = (*first, *rest)
    places = chosen(setting, len(first), [e.gpu.uuid for e in everything])
    return None if places is None else tuple(everything[i] for i in places)


def cuda_version(nvml: Any) -> str | None:
    """The newest CUDA release that the driver runs: "13.0"."""
    number = attempt(nvml, lambda: nvml.nvmlSystemGetCudaDriverVersion_v2())
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def attempt(nvml: Any, ask: Callable[[], T]) -> T | None:
    """The answer, or None where the driver has none or this version of the library no such call."""
    try:
        return ask()
    except (nvml.NVMLError, AttributeError, TypeError, ValueError, UnicodeDecodeError):
        return None


def text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
