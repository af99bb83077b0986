"""Raw bytes in the form in which literals are looked for, and literals in that form.

Plain logs: escape sequences and NUL bytes off. JSON records keep their escaping, so literals are
looked for in the ways JSON writers escape them; the decoded line decides afterwards.
"""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy

_SAFE_RUN = lazy(r"[ !#-%'-.0-;=?-\[\]-~]+")  # no JSON writer escapes these
_JSON_ESCAPES = lazy(
    rb"\\u001[bB](?:\[[0-?]*[ -/]*[@-~]?|\][^\"\\]{0,4096}(?:\\u0007|\\u001[bB]\\\\)|[ -/]*[0-Z^-~]?)"
)
_BYTE_LIST = lazy(rb'"MESSAGE"\s*:\s*\[([\d,\s]{1,2000000})\]')


def search_keys(literal: str, json_levels: int) -> tuple[bytes, ...]:
    """What to look for in the raw bytes where ``literal`` is wanted in the text; none when that can
    not be said. ``json_levels``: how many times the text was written as JSON."""
    if not json_levels:
        return (literal.encode("utf-8", "replace"),)
    if json_levels > 1:
        runs = _SAFE_RUN.findall(literal)
        return (max(runs, key=len).encode(),) if runs else ()
    import json

    plain = json.dumps(literal, ensure_ascii=False)[1:-1]
    forms = {plain, json.dumps(literal)[1:-1]}
    if any(c in literal for c in "<>&"):  # Go, so docker: \u003c
        forms |= {re.sub("[<>&]", lambda m: f"\\u{ord(m[0]):04x}", form) for form in forms}
    if "/" in literal:
        forms |= {form.replace("/", "\\/") for form in forms}
    return tuple(sorted(form.encode("utf-8", "replace") for form in forms))


def searchable(data: bytes, json: bool) -> bytes:
    """``data`` (whole lines) with what may split a literal taken out; newlines stay where they are."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data or b"\xe2\x80" in data:  # colours, typographic quotes
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
    text = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"MESSAGE":"' + text + b'"'
