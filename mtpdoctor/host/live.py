"""Figures that change while one looks: memory, load and processes of the GPUs, put into a host's facts."""

from __future__ import annotations

from dataclasses import replace

from mtpdoctor.host.types import Gpu, HostFacts

SLACK = 1.0  # GiB that figures taken at different times may differ by


def with_figures(host: HostFacts, now: HostFacts | None) -> HostFacts:
    """``host`` with what ``now`` (host.nvml.gpus_here) says of the same GPUs. GPUs are matched by their UUID,
    else by index and name; what ``now`` does not tell stays."""
    if now is None or not host.gpus or not now.gpus:
        return host
    return replace(host, gpus=tuple(_with(gpu, now.gpus) for gpu in host.gpus))


def _with(gpu: Gpu, fresh: tuple[Gpu, ...]) -> Gpu:
    same = next((g for g in fresh if _same(gpu, g)), None)
    if same is None:
        return gpu
    fresh_gpu = replace(
        gpu,
        free_gib=same.free_gib if same.free_gib is not None else gpu.free_gib,
        utilization=same.utilization if same.utilization is not None else gpu.utilization,
        processes=same.processes or gpu.processes,
    )
    return fresh_gpu if _fits(fresh_gpu) else replace(fresh_gpu, processes=())


def _fits(gpu: Gpu) -> bool:
    """Whether the processes can hold what they were seen to hold: else some of them are gone by now."""
    if gpu.memory_gib is None or gpu.free_gib is None:
        return True
    return sum(p.used_gib for p in gpu.processes) <= gpu.memory_gib - gpu.free_gib + SLACK


def _same(gpu: Gpu, other: Gpu) -> bool:
    if gpu.uuid and other.uuid:
        return gpu.uuid == other.uuid
    return gpu.index == other.index and gpu.name == other.name
