"""Making untrusted log text harmless: escape sequences dropped, control characters made visible.

Escape sequences and NUL bytes are dropped *on bytes* (``strip_bytes``), the same way for one line as
for a whole chunk, so that a literal split by a colour code is found where the clean text has it. The quotes
that word processors, chats and g++ print are read as the plain ones there too; within plain ones they stay: a program
quotes what it was given, and was given them.
Other control characters become U+FFFD, bidi controls and line separators ``<U+202E>``: neither can
join what stood apart. Tabs stay.
"""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy

# CSI; terminated strings (OSC, DCS, SOS, PM, APC); two-character escapes. The contents of an
# unterminated string stay visible: it must not swallow the rest of a log line.
_ESCAPES = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?"
    r"|[\]PX^_][^\x07\x1b\r\n]{0,4096}(?:\x07|\x1b\\)"
    r"|[\]PX^_]"
    r"|[ -/]*[0-~]?)"
)
_ESCAPE_BYTES = lazy(_ESCAPES.encode())
_ESCAPE_TEXT = lazy(_ESCAPES)
_QUOTES = b"\xe2\x80"  # how the typographic quotes begin in UTF-8
_TYPOGRAPHIC = lazy(rb"(?<!['\"])\xe2\x80([\x98\x99\x9c\x9d])(?!['\"])")
_TYPOGRAPHIC_TEXT = lazy("(?<!['\"])[\u2018\u2019\u201c\u201d](?!['\"])")
_STRANGE = lazy(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _shown(m: re.Match[str]) -> str:
    c = m[0]
    return f"<U+{ord(c):04X}>" if "\u0600" < c < "\ud800" else "\ufffd"


def strip_bytes(data: bytes) -> bytes:
    """``data`` without escape sequences and NUL bytes, its quotes plain; ``\\n`` and ``\\r`` are never touched."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data:
        data = _ESCAPE_BYTES.sub(b"", data)
    if _QUOTES in data:
        lines = data.split(b"\n") if b'{"' in data else [data]
        data = b"\n".join(_TYPOGRAPHIC.sub(_in_json if b'{"' in line else _plain, line) for line in lines)
    return data


def _plain(m: re.Match[bytes]) -> bytes:
    return b"'" if m[1] < b"\x9c" else b'"'


def _in_json(m: re.Match[bytes]) -> bytes:
    """A double one would end the text; there ``plain_quotes`` comes after the parser."""
    return b"'" if m[1] < b"\x9c" else m[0]


def strip_text(text: str) -> str:
    """The same for text that was escaped once more (JSON messages)."""
    if "\0" in text:
        text = text.replace("\0", "")
    if "\x1b" in text:
        text = _ESCAPE_TEXT.sub("", text)
    return text


def plain_quotes(text: str) -> str:
    """``text`` with plain quotes for typographic ones; for what a JSON parser has given back."""
    if text.isascii():
        return text
    return _TYPOGRAPHIC_TEXT.sub(lambda m: "'" if m[0] < "\u201c" else '"', text)


def harmless(text: str) -> str:
    """``text`` with every control character but the tab made visible. ``\\n`` and ``\\r`` must be gone
    before."""
    if text.isprintable():
        return text
    return _STRANGE.sub(_shown, text)


def decode(data: bytes) -> str:
    """Raw bytes of one line as text; ``\\r`` is left in."""
    return strip_bytes(data).decode("utf-8", "replace")
