"""Everything NVML tells about the GPUs: processes, links between them, modes. Sysfs adds the NUMA node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtpdoctor.host.container import container_kind
from mtpdoctor.host.machine import GIB, Machine
from mtpdoctor.host.nvml import Entry, attempt, cuda_version, entry, text, visible
from mtpdoctor.host.processes import Who, uses_device, who
from mtpdoctor.host.types import Gpu, GpuProcess, ProbeFailure

# Nearest common part of the PCI tree, as nvidia-smi names it. https://docs.nvidia.com/deploy/nvml-api/
_ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}
_NOT_TOLD = 2**64 - 1
_MAX_LINKS = 18
# Errors of nvmlInit that say what to do
_ADVICE = {
    4: "this user may not use /dev/nvidia*",
    9: "the kernel module nvidia is not loaded: modprobe nvidia, or install the driver",
    12: "libnvidia-ml.so is not here: in a container, start it with --gpus all (or the NVIDIA runtime)",
    18: "the driver was updated under the running kernel module: reboot, or unload and load the module nvidia",
}
LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED = 12, 9


def nvidia_gpus(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Fields of HostFacts, the plain ones first, so that they are there when a later call hangs.

    Nothing when there is no driver and no sign of an NVIDIA GPU.
    """
    try:
        nvml = machine.gpu_library()
    except ImportError:
        if _signs(machine):
            said = "the Python package nvidia-ml-py is not installed beside the doctor"
            yield {"failures": (ProbeFailure("NVIDIA driver", said),)}
        return
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        yield from _no_driver(machine, error)
        return
    try:
        yield from _asked(machine, nvml)
    except nvml.NVMLError as error:
        yield {"failures": (ProbeFailure("NVIDIA driver", str(error)),)}
    finally:
        attempt(nvml, lambda: nvml.nvmlShutdown())


def _no_driver(machine: Machine, error: Any) -> Iterator[Mapping[str, Any]]:
    code = getattr(error, "value", None)
    if code in (LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED) and not _signs(machine):
        return
    advice = _ADVICE.get(code) if isinstance(code, int) else None
    said = f"{error}; {advice}" if advice else str(error)
    # CUDA needs the same driver: a launch from here finds no GPU either.
    yield {"platform": "none", "gpus": (), "failures": (ProbeFailure("NVIDIA driver", said),)}


def _signs(machine: Machine) -> bool:
    """NVIDIA hardware is there, whether or not it can be used."""
    from mtpdoctor.host.pci import pci_gpus

    return (
        machine.exists("/dev/nvidiactl")
        or machine.exists("/proc/driver/nvidia/version")
        or any(g.vendor == "NVIDIA" for g in pci_gpus(machine))
    )


def _asked(machine: Machine, nvml: Any) -> Iterator[Mapping[str, Any]]:
    driver = attempt(nvml, lambda: text(nvml.nvmlSystemGetDriverVersion()))
    fields: dict[str, Any] = {"driver": driver, "cuda_driver": cuda_version(nvml)}
    every, failures = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            every.append(entry(nvml, index))
        except nvml.NVMLError as error:
            said = f"{error}; the kernel log (dmesg, lines with Xid) says why. CUDA may fail for all GPUs"
            failures.append(ProbeFailure(f"GPU {index}", said))
    if failures:
        yield {"failures": tuple(failures)}
    yield fields | _shares(tuple(every), machine)
    detailed = tuple(_detailed(machine, nvml, e) for e in every)
    yield _shares(detailed, machine)
    yield _shares(_linked(nvml, detailed), machine)


def _shares(every: tuple[Entry, ...], machine: Machine) -> dict[str, Any]:
    """Visible and hidden GPUs; links and peers of a GPU name those of its own share only."""
    setting = machine.environ.get("CUDA_VISIBLE_DEVICES")
    shown = visible(every, setting)
    if shown is None:
        said = f"CUDA_VISIBLE_DEVICES={setting} names GPUs by UUID, and the driver tells none"
        return {"platform": "cuda", "failures": (ProbeFailure("visible GPUs", said),)}
    seen = {id(e) for e in shown} | {id(e) for e in every if any(p is s for p in e.parts for s in shown)}
    hidden = [e for e in every if id(e) not in seen]
    return {
        "platform": "cuda" if shown else "none",
        "gpus": tuple(_within(e.gpu, shown, every) for e in shown),
        "gpus_hidden": tuple(_within(e.gpu, hidden, every) for e in hidden),
        "gpus_hidden_by": f"CUDA_VISIBLE_DEVICES={setting}" if hidden and setting is not None else None,
    }


def _within(gpu: Gpu, share: Sequence[Entry], every: Sequence[Entry]) -> Gpu:
    places = [
        next((i for i, e in enumerate(every) if e.gpu.index == other.gpu.index), None) for other in share
    ]
    if not gpu.links or any(p is None or p >= len(gpu.links) for p in places):
        return replace(gpu, links=(), peers=())
    kept = [p for p in places if p is not None]
    return replace(
        gpu,
        links=tuple(gpu.links[p] for p in kept),
        peers=tuple(gpu.peers[p] for p in kept) if gpu.peers else (),
    )


def _detailed(machine: Machine, nvml: Any, whole: Entry) -> Entry:
    handle = whole.handle

    def ask(name: str, *arguments: Any) -> Any:
        return attempt(nvml, lambda: getattr(nvml, name)(handle, *arguments))

    bus = _bus(ask("nvmlDeviceGetPciInfo"))
    power = ask("nvmlDeviceGetEnforcedPowerLimit")
    ecc = ask("nvmlDeviceGetEccMode")
    mode = ask("nvmlDeviceGetComputeMode")
    memory = ask("nvmlDeviceGetMemoryInfo", getattr(nvml, "nvmlMemory_v2", None))
    reserved = getattr(memory, "reserved", None)
    persistence = ask("nvmlDeviceGetPersistenceMode")
    load = ask("nvmlDeviceGetUtilizationRates")
    gpu = replace(
        whole.gpu,
        processes=_processes(machine, nvml, handle),
        utilization=getattr(load, "gpu", None),
        power_limit_w=power / 1000 if power else None,
        persistence=None if persistence is None else persistence == 1,
        ecc=None if ecc is None else ecc[0] == 1,
        ecc_errors=ask("nvmlDeviceGetTotalEccErrors", 1, 0) if ecc and ecc[0] == 1 else None,
        numa_node=_numa_node(machine, bus),
        bus=bus,
        reserved_gib=reserved / GIB if isinstance(reserved, int) else None,
        compute_mode=_COMPUTE_MODES.get(mode) if mode is not None else None,
    )
    parts = tuple(
        replace(p, gpu=replace(p.gpu, processes=_processes(machine, nvml, p.handle), bus=bus))
        for p in whole.parts
    )
    return Entry(gpu, handle, parts)


def _bus(info: Any) -> str | None:
    """``0000:1b:00.0``, as sysfs writes the address (NVML has eight digits of domain, in capitals)."""
    raw = getattr(info, "busId", None)
    if raw is None:
        return None
    domain, _, rest = text(raw).lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else None


def _numa_node(machine: Machine, bus: str | None) -> int | None:
    node = machine.number(f"/sys/bus/pci/devices/{bus}/numa_node") if bus else None
    return node if node is not None and node >= 0 else None  # -1: the firmware does not say


def _processes(machine: Machine, nvml: Any, handle: Any) -> tuple[GpuProcess, ...]:
    used: dict[int, int] = {}
    for ask in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        for process in attempt(nvml, lambda a=ask: getattr(nvml, a)(handle)) or ():  # type: ignore[misc]
            size = process.usedGpuMemory
            size = 0 if size is None or size == _NOT_TOLD else size
            used[process.pid] = max(used.get(process.pid, 0), size)
    # In a container the driver may name processes by their number on the host: such a number can be
    # another process in here.
    inside = container_kind(machine) is not None
    out = []
    for pid, size in sorted(used.items(), key=lambda item: -item[1]):
        known = not inside or uses_device(machine, pid, "/dev/nvidia", "/dev/dxg") is not False
        found = who(machine, pid) if known else Who()
        out.append(GpuProcess(pid, size / GIB, found.command, found.user, found.started, found.parent))
    return tuple(out)


# -- links -----------------------------------------------------------------------------------------
def _linked(nvml: Any, every: tuple[Entry, ...]) -> tuple[Entry, ...]:
    if len(every) < 2:
        return every
    wires = [_wires(nvml, e.handle) for e in every]
    out = []
    for i, one in enumerate(every):
        links = tuple(_link(nvml, every, wires, i, j) for j in range(len(every)))
        peers = tuple(
            None if i == j else _peer(nvml, one.handle, other.handle) for j, other in enumerate(every)
        )
        out.append(replace(one, gpu=replace(one.gpu, links=links, peers=peers)))
    return tuple(out)


def _wires(nvml: Any, handle: Any) -> tuple[int, dict[str, int]]:
    """Active NVLinks of a GPU: how many go to a switch, and how many to each GPU by its PCI address."""
    switch = 0
    direct: dict[str, int] = {}
    for link in range(_MAX_LINKS):
        state = attempt(nvml, lambda n=link: nvml.nvmlDeviceGetNvLinkState(handle, n))  # type: ignore[misc]
        if state is None:
            break
        if state != 1:
            continue
        kind = attempt(nvml, lambda n=link: nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, n))  # type: ignore[misc]
        remote = attempt(nvml, lambda n=link: nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, n))  # type: ignore[misc]
        if kind == 2:
            switch += 1
        elif (bus := _bus(remote)) is not None:
            direct[bus] = direct.get(bus, 0) + 1
    return switch, direct


def _link(
    nvml: Any, every: Sequence[Entry], wires: Sequence[tuple[int, dict[str, int]]], i: int, j: int
) -> str:
    if i == j:
        return "X"
    count = min(wires[i][0], wires[j][0]) or wires[i][1].get(every[j].gpu.bus or "", 0)
    if count:
        return f"NV{count}"
    level = attempt(nvml, lambda: nvml.nvmlDeviceGetTopologyCommonAncestor(every[i].handle, every[j].handle))
    return _ANCESTORS.get(level, "?") if level is not None else "?"


def _peer(nvml: Any, one: Any, other: Any) -> bool | None:
    said = attempt(nvml, lambda: nvml.nvmlDeviceGetP2PStatus(one, other, 0))  # 0: reads
    return None if said is None else said == 0
