"""Facts that follow from several fields of a host: what fits what, who holds what, what is short.

A value of None means *known to be absent* ("no process is left over"); what is not known is left out.
Thresholds are knowledge and stand in the rules, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpdoctor.host.proxy import caught_by_proxy
from mtpdoctor.host.requirements import requirement_facts
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts, PythonEnvironment

KERNELS = ("sglang-kernel", "sgl-kernel")  # the second is its name until SGLang 0.5.9
_MOST_PROCESSES = 64  # those that hold most: a command with thousands of numbers helps nobody
_SGLANG = ("sglang::", "sglang.launch_server", "sglang.srt", "sglang serve", "sgl_diffusion")


def derived_facts(host: HostFacts) -> dict[str, Any]:
    """Facts ``host.*`` beyond the plain ones; see docs/knowledge-format.md for the names."""
    out: dict[str, Any] = {}
    out |= _gpus(host)
    out |= _machine(host)
    out |= _failures(host)
    if host.env or host.pythons is not None:
        out |= {"host.proxy.catches": caught_by_proxy(host.env) or None}
    if host.pythons is not None:
        out["host.python.has_sglang"] = any("sglang" in python.packages for python in host.pythons)
    if host.python is not None:
        out |= _python(host.python, host)
    return out


# --- GPUs -------------------------------------------------------------------------------------------


def _gpus(host: HostFacts) -> dict[str, Any]:
    out: dict[str, Any] = {"host.gpu.hidden": len(host.gpus_hidden)}
    if host.gpus_hidden_by:
        out["host.gpu.hidden_by"] = host.gpus_hidden_by
    if host.pci_gpus is not None:
        out["host.gpu.on_pci"] = len([g for g in host.pci_gpus if g.vendor == "NVIDIA"])
        drivers = sorted({g.driver or "none" for g in host.pci_gpus if g.vendor == "NVIDIA"})
        out["host.gpu.pci_drivers"] = drivers or None
    gpus = host.gpus or ()
    if not gpus:
        return out
    kinds = list(dict.fromkeys(g.name or f"SM{g.sm}" for g in gpus))
    out["host.gpu.kinds"] = kinds
    out["host.gpu.kind_count"] = len(kinds)
    for name, values, of in (
        ("mig", [g.mig for g in gpus], any),
        ("persistence", [g.persistence for g in gpus], all),
    ):
        if None not in values:
            out[f"host.gpu.{name}"] = of(values)
    errors = [g.ecc_errors for g in gpus if g.ecc_errors is not None]
    if errors:
        out["host.gpu.ecc_errors"] = max(errors)
    modes = {g.compute_mode for g in gpus if g.compute_mode}
    if modes:
        out["host.gpu.compute_mode"] = min(modes, key=("prohibited", "exclusive", "default").index)
    peers = [p for g in gpus for i, p in enumerate(g.peers) if i != g.index]
    if len(gpus) > 1 and peers and None not in peers:
        out["host.gpu.p2p"] = all(peers)
    return out | _memory(host, gpus)


def _memory(host: HostFacts, gpus: tuple[Gpu, ...]) -> dict[str, Any]:
    """Who holds GPU memory."""
    used = {g.index: u for g in gpus if (u := _used(g)) is not None}
    if not used:
        return {}
    out: dict[str, Any] = {"host.gpu.held_gib": round(max(used.values()), 1)}
    if not any(g.processes or g.reserved_gib is not None for g in gpus):
        return out  # a light look at the GPUs, which did not ask for processes
    whole = [g for g in gpus if g.index in used and all(p.used_gib for p in g.processes)]
    if len(whole) == len(gpus):  # a process whose share is not told makes the rest unknown
        left = [used[g.index] - sum(p.used_gib for p in g.processes) for g in gpus]
        out["host.gpu.unexplained_gib"] = round(max(0.0, *left), 1)
    ours = {1} if _is_first_process_a_server(host) else set()
    holders = _holders(gpus)
    leftovers = [h for h in holders if h[0].parent == 1 and 1 not in ours and _is_sglang(h[0])]
    others = [h for h in holders if h not in leftovers]
    for name, some in (("leftover", leftovers), ("other", others)):
        some = sorted(some, key=lambda held: -sum(gib for _, gib in held[1]))[:_MOST_PROCESSES]
        out[f"host.gpu.{name}s"] = [_said(*h) for h in some] or None
        out[f"host.gpu.{name}_pids"] = [h[0].pid for h in some] or None
    return out


def _used(gpu: Gpu) -> float | None:
    if gpu.memory_gib is None or gpu.free_gib is None:
        return None
    return max(0.0, gpu.memory_gib - gpu.free_gib - (gpu.reserved_gib or 0.0))


def _holders(gpus: Iterable[Gpu]) -> list[tuple[GpuProcess, tuple[tuple[int, float], ...]]]:
    """Every process once, with what it holds of which GPU."""
    held: dict[int, list[tuple[int, float]]] = {}
    first: dict[int, GpuProcess] = {}
    for gpu in gpus:
        for process in gpu.processes:
            first.setdefault(process.pid, process)
            held.setdefault(process.pid, []).append((gpu.index, process.used_gib))
    return [(first[pid], tuple(shares)) for pid, shares in held.items()]


def _said(process: GpuProcess, shares: tuple[tuple[int, float], ...]) -> str:
    gpus = ", ".join(f"{gib:.1f} GiB of GPU {gpu}" if gib else f"GPU {gpu}" for gpu, gib in shares)
    name = process.command[:80] or "not visible here"
    user = f" of {process.user}" if process.user else ""
    return f"pid {process.pid}{user} ({name}): {gpus}"


def _is_sglang(process: GpuProcess) -> bool:
    return any(word in process.command for word in _SGLANG)


def _is_first_process_a_server(host: HostFacts) -> bool:
    """In a container the server itself may be process 1: then its children have lost nobody."""
    return any(port.pid == 1 and "sglang" in (port.command or "") for port in host.ports or ())


# --- the machine ------------------------------------------------------------------------------------


def _machine(host: HostFacts) -> dict[str, Any]:
    count = len(host.gpus or ())
    plain: dict[str, Any] = {
        "host.cpus": host.cpus,
        "host.ram_free_gib": host.ram_free_gib,
        "host.swap_gib": host.swap_gib,
        "host.shm_free_gib": host.shm_free_gib,
        "host.cgroup_memory_gib": host.cgroup_memory_gib,
        "host.cgroup_cpus": host.cgroup_cpus,
        "host.numa_nodes": host.numa_nodes,
        "host.wsl": host.wsl,
        "host.nvcc": host.nvcc,
        "host.machine": host.machine,
    }
    out = {name: value for name, value in plain.items() if value is not None}
    out |= {f"host.limit.{name}": value for name, value in host.limits.items()}
    memory = [m for m in (host.ram_gib, host.cgroup_memory_gib) if m is not None]
    if count and memory:
        out["host.memory_per_gpu_gib"] = round(min(memory) / count, 1)
    cpus = [c for c in (host.cpus, host.cgroup_cpus) if c is not None]
    if count and cpus:
        out["host.cpus_per_gpu"] = round(min(cpus) / count, 1)
    if host.disks:
        fullest = min(host.disks, key=lambda disk: disk.free_gib)
        out |= {
            "host.disk.path": fullest.path,
            "host.disk.purpose": fullest.purpose,
            "host.disk.free_gib": round(fullest.free_gib, 1),
            "host.disk.total_gib": round(fullest.total_gib, 1),
        }
    cuda = _major(host.cuda_driver)
    return out | ({"host.cuda_driver_major": cuda} if cuda is not None else {})


def _failures(host: HostFacts) -> dict[str, Any]:
    said = [f"{failure.probe}: {failure.said}" for failure in host.failures]
    if not said:
        return {"host.failures": None} if host.pythons is not None else {}
    return {"host.failures": said}


# --- the environment --------------------------------------------------------------------------------


def _python(python: PythonEnvironment, host: HostFacts) -> dict[str, Any]:
    if "sglang" not in python.packages:
        return {"host.python.executable": python.executable}
    torch, kernel = _major(python.torch_cuda), _major(python.kernel_cuda)
    plain: dict[str, Any] = {
        "host.python.executable": python.executable,
        "host.python.version": python.version,
        "host.python.requires": python.requires_python,
        "host.torch.cuda": python.torch_cuda,
        "host.torch.cuda_major": torch,
        "host.torch.sms": list(python.torch_sms) or None,
        "host.kernel.cuda": python.kernel_cuda,
        "host.kernel.cuda_major": kernel,
        "host.kernel.sms": list(python.kernel_sms) or None,
    }
    name = next((n for n in KERNELS if n in python.packages), None)
    if name is not None:
        plain |= {"host.kernel.name": name, "host.kernel.version": python.packages[name]}
        pin = python.requires.get("sglang", {}).get(name)
        plain["host.kernel.pin"] = name + pin if pin else None
    sms = {g.sm for g in host.gpus or () if g.sm is not None}
    for package, has in (("torch", python.torch_sms), ("kernel", python.kernel_sms)):
        if sms and has:
            plain[f"host.{package}.fits_gpu"] = all(runs_on(sm, has) for sm in sms)
    out = {name: value for name, value in plain.items() if value is not None}
    out["host.python.shadows"] = list(python.shadows) or None
    out["host.python.duplicates"] = sorted(python.duplicates) or None
    out["host.python.copies"] = _copies(python) or None
    return out | requirement_facts(python)


def _copies(python: PythonEnvironment) -> list[str]:
    folders: Mapping[str, tuple[str, ...]] = python.duplicate_folders
    versions = python.duplicates.get("sglang", ())
    places = folders.get("sglang", ())
    return [f"{v} in {places[i]}" if i < len(places) else v for i, v in enumerate(versions)]


def runs_on(sm: int, compiled: Iterable[int]) -> bool:
    """Whether code compiled for one of these architectures runs on a GPU: the same major number, and not
    a later minor one. Code for one architecture only (90a) is not told apart, so this errs towards yes."""
    return any(c // 10 == sm // 10 and c <= sm for c in compiled)


def _major(version: str | None) -> int | None:
    head = (version or "").partition(".")[0]
    return int(head) if head.isdigit() else None
