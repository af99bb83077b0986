"""The GPUs and accelerators of a machine, whichever make: NVIDIA, AMD, Intel, Ascend; or none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.host.machine import GIB, Machine
from mtpdoctor.host.nvidia import nvidia_gpus
from mtpdoctor.host.pci import pci_gpus
from mtpdoctor.host.rocm import rocm_gpus
from mtpdoctor.host.types import Gpu


def probe_gpus(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Fields of HostFacts, the plain ones first. ``platform`` "none" is said only once all makes were asked."""
    yield {"pci_gpus": pci_gpus(machine)}
    platform = None
    for make in (nvidia_gpus, rocm_gpus, _npus, _xpus):
        for fields in make(machine):
            platform = fields.get("platform") or platform
            yield fields
        if platform not in (None, "none"):
            return
    if platform is None:
        yield {"platform": "none", "gpus": ()}


def _npus(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Ascend NPUs: device files /dev/davinciN. Names and memory need Huawei's tools and stay unknown."""
    names = [n for n in machine.names("/dev") if re.fullmatch(r"davinci\d+", n)]
    if names:
        numbers = sorted(int(n.removeprefix("davinci")) for n in names)
        npus = tuple(Gpu(n, "Ascend NPU", None, None) for n in numbers)
        yield {"platform": "npu", "gpus": npus}


def _xpus(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Intel GPUs with memory of their own (drivers xe and i915)."""
    out: list[Gpu] = []
    for card in machine.names("/sys/class/drm"):
        folder = f"/sys/class/drm/{card}/device"
        if not re.fullmatch(r"card\d+", card) or machine.number(f"{folder}/vendor") != 0x8086:
            continue
        size = machine.number(f"{folder}/tile0/physical_vram_size_bytes") or machine.number(
            f"/sys/class/drm/{card}/lmem_total_bytes"
        )
        if not size:
            continue  # graphics built into the processor
        device = machine.line(f"{folder}/device") or ""
        node = machine.number(f"{folder}/numa_node")
        out.append(
            Gpu(
                len(out),
                f"Intel GPU {device}".rstrip(),
                None,
                size / GIB,
                numa_node=node if node is not None and node >= 0 else None,
            )
        )
    if out:
        yield {"platform": "xpu", "gpus": tuple(out)}
