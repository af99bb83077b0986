"""AMD GPUs as the kernel driver shows them in sysfs. No ROCm tool is needed, and none can hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mtpdoctor.host.machine import GIB, Machine
from mtpdoctor.host.processes import who
from mtpdoctor.host.types import Gpu, GpuProcess, ProbeFailure

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_PROCESSES = "/sys/class/kfd/kfd/proc"
_XGMI = 11  # type of an io_link, HSA_IOLINK_TYPE_XGMI
# PCI device ids of datacenter GPUs, where the board does not name itself. https://pci-ids.ucw.cz
_NAMES = {
    0x740C: "AMD Instinct MI250X",
    0x7408: "AMD Instinct MI250X",
    0x740F: "AMD Instinct MI210",
    0x74A0: "AMD Instinct MI300A",
    0x74A1: "AMD Instinct MI300X",
    0x74A2: "AMD Instinct MI308X",
    0x74A5: "AMD Instinct MI325X",
    0x75A0: "AMD Instinct MI350X",
    0x75A3: "AMD Instinct MI355X",
}


def rocm_gpus(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Fields of HostFacts; nothing where the driver has no GPU that computes."""
    found: list[tuple[int, int, Gpu]] = []  # node, gpu id, GPU
    for name in sorted(machine.names(_NODES), key=lambda n: (len(n), n)):
        folder = f"{_NODES}/{name}"
        properties = _properties(machine.read(f"{folder}/properties"))
        if not properties.get("simd_count") or not name.isdigit():
            continue  # a processor
        gpu_id = machine.number(f"{folder}/gpu_id") or 0
        found.append((int(name), gpu_id, _gpu(machine, len(found), properties, gpu_id)))
    if not found:
        return
    linked = [replace(gpu, links=_links(machine, node, found)) for node, _, gpu in found]
    version = machine.line("/opt/rocm/.info/version")
    driver = machine.line("/sys/module/amdgpu/version")
    if not machine.exists("/dev/kfd"):
        said = "/dev/kfd is not here: in a container, start it with --device /dev/kfd --device /dev/dri"
        yield {"platform": "none", "gpus": (), "failures": (ProbeFailure("AMD GPUs", said),), "rocm": version}
        return
    shown, setting = _visible(machine, linked)
    hidden = tuple(g for g in linked if g not in shown)
    yield {
        "platform": "rocm" if shown else "none",
        "gpus": shown,
        "gpus_hidden": hidden,
        "gpus_hidden_by": setting if hidden else None,
        "driver": driver,
        "rocm": version,
    }


def _properties(text: str | None) -> dict[str, int]:
    out = {}
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            out[name] = int(value)
    return out


def _gpu(machine: Machine, index: int, properties: Mapping[str, int], gpu_id: int) -> Gpu:
    device = f"/sys/class/drm/renderD{properties.get('drm_render_minor', -1)}/device"
    total = machine.number(f"{device}/mem_info_vram_total")
    used = machine.number(f"{device}/mem_info_vram_used")
    pci = properties.get("device_id", 0)
    name = machine.line(f"{device}/product_name") or _NAMES.get(pci) or f"AMD GPU {pci:#06x}"
    node = machine.number(f"{device}/numa_node")
    load = machine.number(f"{device}/gpu_busy_percent")
    power = None
    for monitor in machine.names(f"{device}/hwmon"):
        power = machine.number(f"{device}/hwmon/{monitor}/power1_cap") or power  # microwatts
    unique = properties.get("unique_id")
    return Gpu(
        index=index,
        name=name,
        sm=None,
        arch=_arch(properties.get("gfx_target_version", 0)),
        memory_gib=total / GIB if total else None,
        free_gib=max(total - used, 0) / GIB if total and used is not None else None,
        processes=_processes(machine, gpu_id),
        uuid=f"GPU-{unique:016x}" if unique else None,
        utilization=load if load is not None and 0 <= load <= 100 else None,
        power_limit_w=power / 1e6 if power else None,
        numa_node=node if node is not None and node >= 0 else None,
        bus=_bus(properties),
    )


def _arch(version: int) -> str | None:
    """90402 -> gfx942: major, minor and stepping, the latter two hexadecimal digits."""
    if not version:
        return None
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _bus(properties: Mapping[str, int]) -> str | None:
    if "location_id" not in properties:
        return None
    where, domain = properties["location_id"], properties.get("domain", 0)
    return f"{domain:04x}:{where >> 8 & 255:02x}:{where >> 3 & 31:02x}.{where & 7}"


def _processes(machine: Machine, gpu_id: int) -> tuple[GpuProcess, ...]:
    out = []
    for name in machine.names(_PROCESSES):
        used = machine.number(f"{_PROCESSES}/{name}/vram_{gpu_id}")
        if not name.isdigit() or not used:
            continue
        found = who(machine, int(name))
        out.append(GpuProcess(int(name), used / GIB, found.command, found.user, found.started, found.parent))
    return tuple(sorted(out, key=lambda p: -p.used_gib))


def _links(machine: Machine, node: int, found: list[tuple[int, int, Gpu]]) -> tuple[str, ...]:
    if len(found) < 2:
        return ()
    kinds: dict[int, int] = {}
    for folder in ("io_links", "p2p_links"):
        for name in machine.names(f"{_NODES}/{node}/{folder}"):
            link = _properties(machine.read(f"{_NODES}/{node}/{folder}/{name}/properties"))
            if "node_to" in link:
                kinds.setdefault(link["node_to"], link.get("type", 0))
    return tuple(
        "X" if other == node else "XGMI" if kinds.get(other) == _XGMI else "PCIe" if other in kinds else "?"
        for other, _, _ in found
    )


def _visible(machine: Machine, gpus: list[Gpu]) -> tuple[tuple[Gpu, ...], str | None]:
    """ROCR_VISIBLE_DEVICES chooses first, HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES) among the rest."""
    from mtpdoctor.host.visible import chosen

    left, settings = list(gpus), []
    for names in (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")):
        name = next((n for n in names if n in machine.environ), None)
        if name is None:
            continue
        places = chosen(machine.environ[name], len(left), [g.uuid for g in left])
        settings.append(f"{name}={machine.environ[name]}")
        left = [left[i] for i in places] if places is not None else left
    return tuple(left), " ".join(settings) or None
