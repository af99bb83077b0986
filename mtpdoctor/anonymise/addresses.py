"""IP addresses in free text, told from versions (12.8.0.1), C++ names (c10::Error), times and slices."""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpdoctor.patterns import lazy

Put = Callable[[str, str], str]  # kind, value -> what stands there instead

_V4 = lazy(r"(?<![\w.])((?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3})(?![\w]|\.\d)")
_V6 = lazy(
    r"(?<![\w:.])((?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(%[\w.-]+)?(?![\w:]|\.\d)"
)  # fmt: skip
# uvicorn writes clients as ADDRESS:PORT, of version 6 too
_V6_PORT = lazy(r"(?<![\w:.])((?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4})(:\d{1,5})(?= - \")")
_MAC = lazy(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:-])")

# what stands right before a version, and right behind one
_VERSION_BEFORE = lazy(
    r"(?:[=<>~!]=\s*|(?<![\w])[vV]|[A-Za-z_]-|\.so\.|\bv?ersions?[\"']?\W{0,4}(?:is |of )?"
    r"|\b(?:cuda|cudnn|cublas|cufft|curand|cusolver|cusparse\w*|nvjitlink|nccl|tensorrt|driver|version|release|toolkit|sglang"
    r"|torch|triton|flashinfer|transformers|python)[\w-]*[\"']?\W{0,4}(?:is |of |to |version |release )?"
    r"|\b[a-z][\w.-]*cu\d+(?:[ \t]+|[-=:\"' ]+))$",
    re.I,
)
_VERSION_AFTER = lazy(
    r"(?:-(?:py\d|cp\d|(?!\d+\.\d+\.\d+\.\d)\d+\.|linux|any)|\+\w|\.(?:dist-info|whl|egg|tar|post|dev|rc)|(?:rc|post|dev)\d)"
)
_VERSION_WORDS = lazy(
    r"version|\bcuda|cudnn|cublas|nccl\b|toolkit|driver|wheel|package|requir|install|release|nvidia-|tensorrt|collecting"
    r"|satisf|incompatible|upgrade|\bpip\b",
    re.I,
)
_ADDRESS_BEFORE = lazy(
    r"(?:://|@|\bip(?:v4)?[\"']?\s*[=:(]?\s*[\"']?|addr(?:ess|s|esses)?[\"']?\s*[=:(]?\s*\(?[\"']?|hosts?[\"']?\s*[=:]\s*[\"']?"
    r"|\bnode[\"']?\s*[=:]\s*[\"']?|\b(?:from|to|at|on|by|peer|client|server|master|worker|gateway|via|src|dst|connect(?:ing|ed)?) "
    r"[\"'(\[]?)$",
    re.I,
)
_PORT_AFTER = lazy(r"\]?(?::\d{1,5}(?![\d.])|<\d+)|/\d{1,2}(?![\w.])")


def redact_addresses(text: str, put: Put) -> str:
    """``text`` with the addresses of machines replaced; loopback, "any" and masks stay, a diagnosis needs them."""
    if "." in text:
        text = _V4.sub(lambda m: put("ip", m[1]) if is_address(m) else m[0], text)
    if ":" in text:
        text = _MAC.sub(lambda m: put("mac", m[0].lower()), text)
        text = _V6_PORT.sub(lambda m: _v6(m, put), text)
        text = _V6.sub(lambda m: _v6(m, put), text)
    return text


def is_address(m: re.Match[str]) -> bool:
    """Is the dotted quad an address, and one of a machine?"""
    quad = m[1]
    a, b, *_ = (int(part) for part in quad.split("."))
    if a in (0, 127, 255) or any(len(part) > 1 and part[0] == "0" for part in quad.split(".")):
        return False
    if quad == "169.254.169.254":  # every cloud's metadata service
        return False
    before, after = m.string[max(m.start() - 60, 0) : m.start()], m.string[m.end() : m.end() + 16]
    if _VERSION_AFTER.match(after) or (_VERSION_BEFORE.search(before) and not _PORT_AFTER.match(after)):
        return False
    if _PORT_AFTER.match(after) or _ADDRESS_BEFORE.search(before) or is_private(a, b):
        return True
    return a > 25 or not _VERSION_WORDS.search(before)


def is_private(a: int, b: int) -> bool:
    return (
        a == 10
        or (a, b) in ((192, 168), (169, 254))
        or (a == 172 and 16 <= b < 32)
        or (a == 100 and 64 <= b < 128)
    )


def _v6(m: re.Match[str], put: Put) -> str:
    import ipaddress

    text = m[1]
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return m[0]
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return m[0]
    groups = [g for g in text.split(":") if g]
    bracketed = m.string[m.start() - 1 : m.start()] == "[" and m.string[m.end() : m.end() + 1] == "]"
    known = address.is_private or address.is_link_local or (address.is_global and groups[0][0] in "23")
    if not (len(groups) == 8 or (bracketed and len(groups) > 1) or (known and len(groups[0]) == 4)):
        return m[0]  # "at::" of C++, "[::2]" of Python
    return put("ip", str(address)) + (m[2] or "")
