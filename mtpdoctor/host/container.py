"""Is this a container, and of which kind? Signs that runtimes leave; no privilege needed."""

from __future__ import annotations

import re

from mtpdoctor.host.machine import Machine

_CGROUP = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("garden", "garden"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
)
_KINDS = {"oci": "container", "docker": "docker", "podman": "podman", "lxc": "lxc"}


def container_kind(machine: Machine) -> str | None:
    """ "kubernetes", "docker", "podman", "containerd", "lxc", "apptainer", "container" ...; None outside."""
    environ = machine.environ
    if environ.get("KUBERNETES_SERVICE_HOST") or machine.exists("/var/run/secrets/kubernetes.io"):
        return "kubernetes"
    if (
        environ.get("APPTAINER_CONTAINER")
        or environ.get("SINGULARITY_CONTAINER")
        or machine.exists("/.singularity.d")
    ):
        return "apptainer"
    if machine.exists("/run/.containerenv"):
        return "podman"
    if machine.exists("/.dockerenv"):
        return "docker"
    for line in (machine.read("/proc/1/cgroup") or "").splitlines():
        path = line.rpartition(":")[2]
        for word, kind in _CGROUP:
            if re.search(rf"(?:^|[/.:_-]){word}(?:$|[/.:_-])", path):
                return kind
    named = environ.get("container") or _of_init(machine)
    if named:
        return _KINDS.get(
            named, named if named.isascii() and named.replace("-", "").isalnum() else "container"
        )
    overlay = re.search(
        r" / / \S+ [^-]*- overlay (?:overlay|\S+) \S*(docker|containerd|containers/storage)",
        machine.read("/proc/self/mountinfo") or "",
    )
    if overlay:
        return {"containers/storage": "podman"}.get(overlay[1], overlay[1])
    return None


def _of_init(machine: Machine) -> str | None:
    """``container=`` in the environment of process 1, where that may be read."""
    for entry in (machine.read("/proc/1/environ") or "").split("\x00"):
        if entry.startswith("container="):
            return entry.partition("=")[2] or None
    return None
