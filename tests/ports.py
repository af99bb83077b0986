"""Ports for servers of tests, which nobody else gets meanwhile."""

from __future__ import annotations

import socket
import sys

_held: list[socket.socket] = []


def free_port(family: socket.AddressFamily = socket.AF_INET) -> int:
    """A port of the loopback that a server may listen at, and at which nobody listens.

    It stays bound here as long as this process lives: Linux lets another socket listen at it all the same (both with
    SO_REUSEADDR), and gives it to nobody who asks for any free port.
    """
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("::1" if family is socket.AF_INET6 else "127.0.0.1", 0))
    port = int(held.getsockname()[1])
    if sys.platform == "linux":
        _held.append(held)
    else:
        held.close()
    return port
