"""Which of this machine's own addresses a request would be sent to a proxy for.

As the package ``requests`` reads the environment, which SGLang uses to ask its own server whether it is
ready: ``http_proxy`` or ``all_proxy``, unless ``no_proxy`` names the address (there is no exception for
local ones). The lower-case name goes before the upper-case one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

LOCAL = ("127.0.0.1", "localhost", "0.0.0.0")


def caught_by_proxy(env: Mapping[str, str]) -> list[str]:
    """Those of ``LOCAL`` that go through the proxy; empty without one."""
    if not _first(env, "http_proxy") and not _first(env, "all_proxy"):
        return []
    exempt = [word.strip() for word in _first(env, "no_proxy").split(",") if word.strip()]
    return [address for address in LOCAL if not any(_names(word, address) for word in exempt)]


def _first(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.upper()) or ""


def _names(word: str, address: str) -> bool:
    if word == "*":
        return True
    if address[0].isdigit():
        if "/" not in word:
            return word == address
        try:
            return ipaddress.ip_address(address) in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    return address.endswith(word.lstrip("."))
