"""Raw bytes in the form in which literals are looked for, and literals in that form.

Plain logs: escape sequences and NUL bytes off. JSON records keep their escaping: what is looked for
there is the longest run of a literal's characters that no JSON writer escapes; the decoded line
decides afterwards.
"""

from __future__ import annotations

import re

# Go's encoder (docker) escapes < > & too, some escape / and everything that is not ASCII
_SAFE_RUN = re.compile(r"[ !#-%'-.0-;=?-\[\]-~]+")
_JSON_ESCAPES = re.compile(
    rb"\\u001[bB](?:\[[0-?]*[ -/]*[@-~]?|\][^\"\\]{0,4096}(?:\\u0007|\\u001[bB]\\\\)|[ -/]*[0-Z^-~]?)"
)
_BYTE_LIST = re.compile(rb'"MESSAGE"\s*:\s*\[([\d,\s]{1,2000000})\]')


def search_key(literal: str) -> bytes:
    """The longest part of ``literal`` that stands unescaped in JSON; empty when there is none."""
    runs = _SAFE_RUN.findall(literal)
    return max(runs, key=len).encode() if runs else b""


def searchable(data: bytes, json: bool) -> bytes:
    """``data`` (whole lines) with what may split a literal taken out; newlines stay where they are."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data:
        from mtpdoctor.log.clean import strip_bytes

        data = strip_bytes(data)
    if json:
        if b"\\u0000" in data:
            data = data.replace(b"\\u0000", b"")
        if b'"MESSAGE"' in data and _BYTE_LIST.search(data):
            data = _BYTE_LIST.sub(_spelled, data)
        if b"\\u001" in data:
            data = _JSON_ESCAPES.sub(b"", data)
    return data


def _spelled(m: re.Match[bytes]) -> bytes:
    """journald's list of byte values as a string (escapes stripped as in a plain line)."""
    from mtpdoctor.log.clean import strip_bytes

    try:
        text = strip_bytes(bytes(int(n) for n in m[1].split(b",")))
    except ValueError:
        return m[0]
    return b'"MESSAGE":"' + text.replace(b"\n", b"\\n") + b'"'
