"""Memory of the GPUs while a launch is watched, asked of the driver about once a second. No CUDA context."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

from mtpdoctor.host.nvml import GIB, text
from mtpdoctor.host.visible import chosen
from mtpdoctor.watch.types import GpuUse


class GpuSampler:
    """``sample`` is None where there is no NVIDIA driver; it is then not asked for again.

    ``visible`` is the launch's ``CUDA_VISIBLE_DEVICES``: only its GPUs are sampled, in its order. What it
    names and is not found (or parts of GPUs) counts as no setting.
    """

    def __init__(self, nvml: Any = None, visible: str | None = None) -> None:
        self._nvml = nvml
        self._visible = visible
        self._handles: list[Any] | None = None

    def sample(self, at: float, pids: Collection[int]) -> GpuUse | None:
        """``pids``: the processes of the launch. Blocks a few milliseconds."""
        if self._handles is None:
            self._handles = self._open()
        if not self._handles:
            return None
        own_pids = set(pids)
        used, total, own = [], [], []
        try:
            for handle in self._handles:
                memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                used.append(memory.used / GIB)
                total.append(memory.total / GIB)
                own.append(self._own(handle, own_pids))
        except self._nvml.NVMLError:
            self._handles = []
            return None
        return GpuUse(at=at, used_gib=tuple(used), total_gib=tuple(total), own_gib=tuple(own))

    def close(self) -> None:
        if self._handles:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._handles = []

    def _open(self) -> list[Any]:
        if self._nvml is None:
            try:
                import pynvml
            except ImportError:
                return []
            self._nvml = pynvml
        try:
            self._nvml.nvmlInit()
            every = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
            uuids = [text(self._nvml.nvmlDeviceGetUUID(h)) for h in every] if self._visible else []
        except self._nvml.NVMLError:
            return []
        places = chosen(self._visible, len(every), uuids) if self._visible else None
        return [every[i] for i in places] if places else every

    def _own(self, handle: Any, pids: Collection[int]) -> float:
        """The driver names processes by the pids of its own namespace: 0 in many containers."""
        if not pids:
            return 0.0
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError:
            return 0.0
        return float(sum((p.usedGpuMemory or 0) for p in running if p.pid in pids) / GIB)


def differs(new: GpuUse, old: GpuUse) -> bool:
    """By more than 16 MiB on any GPU."""
    pairs = zip((*new.used_gib, *new.own_gib), (*old.used_gib, *old.own_gib), strict=False)
    return len(new.used_gib) != len(old.used_gib) or any(abs(a - b) > 1 / 64 for a, b in pairs)
