"""Untrusted values as words of a shell command, also where a template has quotes of its own around them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

_ALIVE = {"'": "'", '"': '"$`\\!'}  # what has a meaning, or ends them, within such quotes


def quoted(words: Sequence[str], quote: str) -> str:
    """``quote``: the one that is open where they are to stand, empty for none. The shell reads the very words."""
    if not quote:
        return " ".join(map(shlex.quote, words))
    text = " ".join(words)
    if not any(c in text for c in _ALIVE[quote]):
        return text
    return quote + shlex.quote(text) + quote  # ends the open quotes, and begins them again


def open_quote(text: str) -> str:
    """The quote that is still open at the end of a piece of a shell command; empty for none."""
    quote, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
    return quote
