"""The machine under the GPUs: processor, memory, shared memory, limits, container, kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mtpdoctor.host.cgroup import cgroup_limits
from mtpdoctor.host.container import container_kind
from mtpdoctor.host.machine import GIB, Machine

# Instruction sets that kernels for the CPU ask for
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "sve", "sve2", "bf16")
# Arm names no model; implementer and part as in the kernel's cputype.h
_ARM = {
    ("0x41", "0xd0c"): "Arm Neoverse N1",
    ("0x41", "0xd40"): "Arm Neoverse V1",
    ("0x41", "0xd49"): "Arm Neoverse N2",
    ("0x41", "0xd4f"): "Arm Neoverse V2",
    ("0x4e", "0x004"): "NVIDIA Carmel",
}
_LIMITS = {
    "Max open files": "nofile",
    "Max locked memory": "memlock",
    "Max processes": "nproc",
    "Max stack size": "stack",
    "Max address space": "as",
    "Max file size": "fsize",
    "Max core file size": "core",
}


def probe_system(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Name, kernel, kind of container, WSL, processor, NUMA nodes."""
    kind = container_kind(machine)
    kernel = machine.line("/proc/sys/kernel/osrelease") or _kernel(machine)
    version = (machine.line("/proc/version") or "").lower()
    yield {
        "name": machine.line("/proc/sys/kernel/hostname") or _host_name(machine),
        "system": _system(machine, kernel),
        "machine": machine.arch,
        "container": kind is not None,
        "container_kind": kind,
        "wsl": "microsoft" in version or "microsoft" in (kernel or "").lower(),
        **_processor(machine),
        "numa_nodes": _numa_nodes(machine),
    }


def _host_name(machine: Machine) -> str | None:
    import socket

    return None if machine.root else socket.gethostname()


def _kernel(machine: Machine) -> str | None:
    import os

    return None if machine.root or not hasattr(os, "uname") else os.uname().release


def _system(machine: Machine, kernel: str | None) -> str | None:
    import platform

    name = None
    for line in (machine.read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            name = line.partition("=")[2].strip().strip("\"'")
    family = "Linux" if machine.root else platform.system()
    return ", ".join(filter(None, (name, f"{family} {kernel}" if kernel else None))) or None


def _processor(machine: Machine) -> dict[str, Any]:
    text = machine.read("/proc/cpuinfo") or ""

    def first(field: str) -> str | None:
        m = re.search(rf"^{field}\s*:\s*(.+)$", text, re.MULTILINE)
        return " ".join(m[1].split()) if m else None

    name = first("model name") or _ARM.get((first("CPU implementer") or "", first("CPU part") or ""))
    flags = set((first("flags") or first("Features") or "").split())
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", machine.read("/proc/self/status") or "", re.MULTILINE)
    return {
        "cpu": name,
        "cpus": _count(allowed[1])
        if allowed
        else len(re.findall(r"^processor\s*:", text, re.MULTILINE)) or None,
        "cpu_features": tuple(f for f in _FEATURES if f in flags),
    }


def _count(ranges: str) -> int:
    """How many numbers "0-63,128" names."""
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += int(last) - int(first) + 1 if last.isdigit() else 1
    return total


def _numa_nodes(machine: Machine) -> int | None:
    """Nodes that have processors (GPU memory can be a node too)."""
    folder = "/sys/devices/system/node"
    nodes = [n for n in machine.names(folder) if re.fullmatch(r"node\d+", n)]
    return sum(1 for n in nodes if machine.line(f"{folder}/{n}/cpulist")) or None


def probe_memory(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """RAM, swap, /dev/shm, and what a control group leaves of memory and processors. GiB."""
    ram = _ram(machine)
    yield ram
    try:
        total, free = machine.sizes("/dev/shm")
        yield {"shm_gib": total / GIB, "shm_free_gib": free / GIB}
    except OSError:
        pass
    limits = cgroup_limits(machine)
    if limits.memory is not None and limits.memory / GIB >= ram.get("ram_gib", math.inf):
        limits = replace(limits, memory=None, memory_used=None)  # more than there is limits nothing
    yield {
        "cgroup_version": limits.version,
        "cgroup_memory_gib": limits.memory / GIB if limits.memory is not None else None,
        "cgroup_memory_used_gib": limits.memory_used / GIB if limits.memory_used is not None else None,
        "cgroup_cpus": limits.cpus,
    }


def _ram(machine: Machine) -> dict[str, float]:
    text = machine.read("/proc/meminfo")
    if text is None:  # no Linux
        try:
            psutil = machine.process_library()
            memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        except (ImportError, OSError):
            return {}
        return {
            "ram_gib": memory.total / GIB,
            "ram_free_gib": memory.available / GIB,
            "swap_gib": swap.total / GIB,
        }
    kib = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    names = {"ram_gib": "MemTotal", "ram_free_gib": "MemAvailable", "swap_gib": "SwapTotal"}
    return {field: kib[name] * 1024 / GIB for field, name in names.items() if name in kib}


def probe_limits(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Soft limits (ulimit) of this process; bytes where they are sizes, None: unlimited."""
    out: dict[str, float | None] = {}
    for line in (machine.read("/proc/self/limits") or "").splitlines():
        for title, name in _LIMITS.items():
            if line.startswith(title):
                words = line[len(title) :].split()
                if words:
                    out[name] = None if words[0] == "unlimited" else float(words[0])
    yield {"limits": out}
