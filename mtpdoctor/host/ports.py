"""TCP ports that somebody listens on, through psutil."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.host.machine import Machine
from mtpdoctor.host.processes import who
from mtpdoctor.host.types import Port


def probe_ports(machine: Machine) -> Iterator[Mapping[str, Any]]:
    """Field ``ports``, by number. Whose port it is shows only for processes that this user may look into.

    Raises ImportError without psutil, and its errors.
    """
    psutil = machine.process_library()
    found: dict[tuple[int, str], int | None] = {}
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr:
            place = (connection.laddr.port, connection.laddr.ip)
            found[place] = found.get(place) or connection.pid
    commands = {pid: who(machine, pid).command or None for pid in set(found.values()) if pid is not None}
    yield {
        "ports": tuple(
            Port(number, address, pid, commands.get(pid) if pid is not None else None)
            for (number, address), pid in sorted(found.items())
        )
    }
