"""The GPUs of this machine, from recorded answers of the driver of a host with H200s."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mtpdoctor.host.facts import host_facts
from mtpdoctor.host.nvml import gpus_here


class Nvml:
    """Answers as pynvml gave them on an H200, twice; ``broken`` fails as without a driver."""

    class NVMLError(Exception):
        pass

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken
        self.open = 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.159.04"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=150754820096, free=150109880320 - handle * 2**30)


def test_what_the_driver_says_becomes_facts() -> None:
    nvml = Nvml()
    host = gpus_here(nvml, {})
    assert host is not None and nvml.open == 0
    facts = host_facts(host)
    assert facts["host.gpu.sm"] == 90
    assert facts["host.gpu.count"] == 2
    assert facts["host.gpu.memory_gib"] == pytest.approx(140.4, abs=0.1)
    assert facts["host.driver"] == "580.159.04"
    assert host.local and not host.pretended


@pytest.mark.parametrize(
    ("setting", "indexes"),
    [("1", [1]), ("1,0", [1, 0]), ("0,7,1", [0]), ("", []), ("-1", []), (" 0 , 1 ", [0, 1])],
)
def test_only_visible_gpus_count(setting: str, indexes: list[int]) -> None:
    host = gpus_here(Nvml(), {"CUDA_VISIBLE_DEVICES": setting})
    assert host is not None and host.gpus is not None
    assert [gpu.index for gpu in host.gpus] == indexes
    assert host.platform == ("cuda" if indexes else "none")


def test_what_cannot_be_told_stays_unknown() -> None:
    assert gpus_here(Nvml(broken=True), {}) is None
    assert gpus_here(Nvml(), {"CUDA_VISIBLE_DEVICES": "GPU-8f2c"}) is None
