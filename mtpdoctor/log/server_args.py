"""The ``server_args=`` line of a log, as data.

Releases up to 0.5.18 print ``ServerArgs(name=value, ...)``, later ones a dictionary. The line may be cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from mtpdoctor.log.literals import literal
from mtpdoctor.patterns import lazy

SECRETS = lazy(r"api_key|password|secret|token$|_key$|watermark", re.I)
_START = lazy(r"server_args=(ServerArgs\(|\{)")
_NAME = lazy(r"[A-Za-z_]\w*")
_LEFT_OUT = lazy(r" \.\.\.\[\d+ characters left out\]\.\.\. ")
_NEXT_FIELD = lazy(r", (?=[a-z]\w*=)")
_NEXT_KEY = lazy(r", (?='[a-z]\w*': )")
_TOKEN = lazy(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[()\[\]{},'\"]")
_CONSTANTS = {"None": None, "True": True, "False": False}
MASK = "***"


@lru_cache(maxsize=16)
def parse_server_args(text: str) -> Mapping[str, Any] | None:
    """Field -> value of a ``server_args=`` line; None when ``text`` holds no such thing.

    Values are numbers, text, booleans, None, lists, tuples and dictionaries; what is none of these (enum
    members, nested objects) stays text as printed. Fields behind a cut are left out. Secrets read ``***``.
    """
    m = _START.search(text)
    if not m:
        return None
    is_call = m[1] != "{"
    out: dict[str, Any] = {}
    pieces = _LEFT_OUT.split(text)
    parts = _parts(pieces[0], m.end())
    for piece in pieces[1:]:  # a very long line, its middle left out: go on at the next whole field
        again = (_NEXT_FIELD if is_call else _NEXT_KEY).search(piece)
        parts += _parts(piece, again.end()) if again else []
    for part, whole in parts:
        name, value = _pair(part, is_call)
        if name is None or not whole or name in out:
            continue
        if SECRETS.search(name) and value not in (None, ""):
            value = MASK
        out[name] = value
    return MappingProxyType(out)


def _pair(part: str, is_call: bool) -> tuple[str | None, Any]:
    part = part.strip()
    if is_call:
        m = _NAME.match(part)
        if not m or part[m.end() : m.end() + 1] != "=":
            return None, None
        return m[0], _value(part[m.end() + 1 :])
    m = re.match(r"(['\"])(\w+)\1\s*:\s*", part)
    return (m[2], _value(part[m.end() :])) if m else (None, None)


def _value(text: str) -> Any:
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    if text[:1] == "'" and "\\" not in text and text.find("'", 1) == len(text) - 1:
        return text[1:-1]
    if len(text) > 100_000:
        return text[:100_000]
    try:
        return literal(text)
    except ValueError:
        pass
    m = re.match(r"<\w+(?:\.\w+)+: (.*)>$", text, re.S)  # an enum member, by its value
    return _value(m[1]) if m else text


def _parts(text: str, start: int) -> list[tuple[str, bool]]:
    """The comma-separated parts from ``start`` up to the closing bracket; False marks a part that was cut."""
    parts: list[tuple[str, bool]] = []
    depth = 0
    begin = start
    for m in _TOKEN.finditer(text, start):
        token = m[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            if not depth:
                parts.append((text[begin : m.start()], True))
                return parts
            depth -= 1
        elif token == ",":
            if not depth:
                parts.append((text[begin : m.start()], True))
                begin = m.end()
        elif len(token) == 1:  # a quote that does not end
            break
    parts.append((text[begin:], False))
    return parts
