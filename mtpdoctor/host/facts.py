"""A host as facts, under the names of docs/knowledge-format.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mtpdoctor.facts import Fact, Facts, Source

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts


def host_facts(host: HostFacts, where: str = "") -> Facts:
    """Facts ``host.*`` and ``env.*``; what is not known of the host is absent, never a default.

    GPU facts are those of the first GPU, where they do not say otherwise. ``host.package.NAME`` has the
    distribution's name in its normal form (lower case, ``-``); once the packages of an environment are
    known, one that is not among them is known to be absent. Source is ``user`` for a pretended host,
    else ``probe``.
    """
    values: dict[str, Any] = {
        "host.platform": host.platform,
        "host.driver": host.driver,
        "host.cuda_driver": host.cuda_driver,
        "host.ram_gib": host.ram_gib,
        "host.shm_gib": host.shm_gib,
        "host.container": host.container,
    }
    if host.gpus is not None:
        values["host.gpu.count"] = len(host.gpus)
    if host.gpus:
        first = host.gpus[0]
        values |= {
            "host.gpu.name": first.name or None,
            "host.gpu.sm": first.sm,
            "host.gpu.memory_gib": first.memory_gib,
            "host.gpu.free_gib": first.free_gib,
        }
    known = {name: value for name, value in values.items() if value is not None}
    known |= {f"host.package.{normal_name(name)}": version for name, version in host.packages.items()}
    known |= {f"env.{name}": value for name, value in host.env.items()}
    closed: set[str] = set()
    if not host.pretended:
        from mtpdoctor.host.derived import derived_facts

        known |= derived_facts(host)
        closed |= {"host.package."} if host.packages else set()
        closed |= {"env."} if host.env or host.pythons is not None else set()
    source = Source.USER if host.pretended else Source.PROBE
    where = where or ("pretended host" if host.pretended else "this host" if host.local else "saved host")
    return Facts({n: Fact(n, v, source, where) for n, v in known.items()}, closed=frozenset(closed))


def normal_name(distribution: str) -> str:
    """A distribution's name as indexes compare it: lower case, runs of ``-_.`` are one ``-`` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
