"""A light look at this machine for a check: what a launch depends on and some milliseconds can tell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mtpdoctor.host.nvml import gpus_here
from mtpdoctor.host.types import HostFacts
from mtpdoctor.records import replace


def host_here(
    nvml: Any = None, environ: Mapping[str, str] = os.environ, machine: Any = None
) -> HostFacts | None:
    """GPUs, memory, /dev/shm, container and environment; no process is started and nothing is waited for.

    None when there is no NVIDIA driver: then a launch is hardly meant for this machine, and what it has
    says nothing. ``machine`` is this one (``host.machine.Machine``) unless given. ``host.probe`` looks at
    everything, with time limits.
    """
    host = gpus_here(nvml, environ)
    if host is None:
        return None
    from mtpdoctor.host.container import container_kind
    from mtpdoctor.host.environment import relevant
    from mtpdoctor.host.machine import Machine
    from mtpdoctor.host.system import probe_memory

    place = Machine(environ=environ) if machine is None else machine
    kind = container_kind(place)
    fields: dict[str, Any] = {"container": kind is not None, "container_kind": kind, "env": relevant(environ)}
    for more in probe_memory(place):
        fields |= more
    return replace(host, **fields)
