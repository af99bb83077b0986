"""Facts of a host, real or pretended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    used_gib: float
    command: str


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str
    sm: int | None  # compute capability as SM number: 90, 100, 120
    memory_gib: float | None
    free_gib: float | None = None
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of a host; None or absent means not known. Sizes in GiB."""

    platform: str | None  # "cuda", "rocm", "npu", "xpu", "cpu", "none"
    gpus: tuple[Gpu, ...] | None
    driver: str | None = None
    cuda_driver: str | None = None
    ram_gib: float | None = None
    shm_gib: float | None = None
    container: bool | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # distribution -> version
    env: Mapping[str, str] = field(default_factory=dict)
    pretended: bool = False
    local: bool = False  # this very machine, not a saved one
