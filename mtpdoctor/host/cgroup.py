"""Limits that a container or unit sets on memory and processors, through control groups v1 and v2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mtpdoctor.host.machine import Machine

_NO_LIMIT = 2**60  # v1 writes "no limit" as the largest number of whole pages


@dataclass(frozen=True, slots=True)
class Limits:
    """The tightest limits above this process; None: none, or not known."""

    version: int | None = None
    memory: int | None = None  # bytes
    memory_used: int | None = None  # bytes, of the group that sets the limit, file cache left out
    cpus: float | None = None


def cgroup_limits(machine: Machine) -> Limits:
    """Every group from the process's own up to the top counts: the tightest limit wins."""
    folders = _folders(machine)
    if not folders:
        return Limits()
    memory: int | None = None
    used: int | None = None
    cpus: float | None = None
    version = 2 if "memory" not in folders and "" in folders else 1
    memory_of = folders.get("memory") or folders.get("")
    for folder in _upwards(memory_of):
        limit = machine.number(f"{folder}/memory.max" if version == 2 else f"{folder}/memory.limit_in_bytes")
        if limit is not None and limit < _NO_LIMIT and (memory is None or limit < memory):
            memory = limit
            used = _used(machine, folder, version)
    for folder in _upwards(folders.get("cpu") or folders.get("")):
        quota = _quota(machine, folder)
        if quota is not None and (cpus is None or quota < cpus):
            cpus = quota
    return Limits(version, memory, used, cpus)


def _used(machine: Machine, folder: str, version: int) -> int | None:
    """Without the file cache that the kernel can drop at any time, as container tools count it."""
    used = machine.number(f"{folder}/memory.current" if version == 2 else f"{folder}/memory.usage_in_bytes")
    if used is None:
        return None
    name = "inactive_file" if version == 2 else "total_inactive_file"
    for line in (machine.read(f"{folder}/memory.stat") or "").splitlines():
        field, _, value = line.partition(" ")
        if field == name and value.isdigit():
            return max(used - int(value), 0)
    return used


def _quota(machine: Machine, folder: str) -> float | None:
    words = (machine.line(f"{folder}/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    quota = machine.number(f"{folder}/cpu.cfs_quota_us")
    period = machine.number(f"{folder}/cpu.cfs_period_us")
    return quota / period if quota is not None and period and quota > 0 else None


def _upwards(place: tuple[str, str] | None) -> Iterator[str]:
    """The folder of the group, then those above it up to the mount point."""
    if place is None:
        return
    mount, group = place
    while group and group != "/":
        yield mount + group
        group = group.rpartition("/")[0]
    yield mount


def _folders(machine: Machine) -> dict[str, tuple[str, str]]:
    """Controller -> (mount point, the process's group below it); v2 stands under ""."""
    groups = _groups(machine)
    out = {}
    for line in (machine.read("/proc/self/mountinfo") or "").splitlines():
        m = re.match(r"\S+ \S+ \S+ (\S+) (\S+) .*? - (cgroup2?) \S+ (\S+)", line)
        if m is None:
            continue
        root, mount, kind, options = m.groups()
        controllers = [""] if kind == "cgroup2" else options.split(",")
        for name in controllers:
            if name in groups:
                out[name] = (mount, _below(groups[name], root))
    return out


def _below(group: str, root: str) -> str:
    """The group as it is seen below a mount of ``root``: a container sees its own group as the top."""
    if root == "/" or not root:
        return group
    return group[len(root) :] if group == root or group.startswith(root + "/") else "/"


def _groups(machine: Machine) -> dict[str, str]:
    out = {}
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for name in parts[1].split(","):
                out[name] = parts[2] if "/.." not in parts[2] else "/"
    return out
