"""Making untrusted text safe to show, and measuring it as a terminal does. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Whole escape sequences go, not only their first byte: "\x1b[31mred" becomes "red".
_ESCAPE = (
    r"(?:\x1b[\[]|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, APC...
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]"  # charset and two-byte sequences
)
# Controls (C0 but tab and line feed, DEL, C1), format characters (bidi, zero width, tags), line and
# paragraph separators, lone surrogates, noncharacters.
_UNSAFE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
)
_AS_SPACE = "\u2028\u2029\x0b\x0c\x85"


def safe(text: str) -> str:
    """``text`` without terminal escapes, control, bidi or invisible format characters.

    Tabs and line feeds stay. Idempotent. Lone surrogates (undecodable bytes) become U+FFFD, so the
    result can always be encoded.
    """
    if text.isascii() and text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return _compiled(_UNSAFE).sub(_replace, _compiled(_ESCAPE).sub("", text))


@lru_cache(maxsize=4)
def _compiled(regex: str) -> re.Pattern[str]:  # slow to compile, and most texts never need it
    return re.compile(regex)


def _replace(m: re.Match[str]) -> str:
    char = m[0]
    if "\ud800" <= char <= "\udfff" or char in "\ufffe\uffff":
        return "\ufffd"
    return " " if char in _AS_SPACE else ""


def one_line(text: str) -> str:
    """``safe(text)`` on one line: tabs and line feeds are spaces."""
    return safe(text).replace("\t", " ").replace("\n", " ")


def char_width(char: str) -> int:
    """Terminal columns of one character: 0 for combining marks, 2 for wide ones, else 1."""
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def width(text: str) -> int:
    """Terminal columns of a text without line feeds."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def cut(text: str, columns: int) -> tuple[str, str]:
    """Splits ``text`` so that the first part fits ``columns``; never empty-handed on a non-empty text."""
    if text.isascii():
        columns = max(columns, 1)
        return text[:columns], text[columns:]
    used = 0
    for i, char in enumerate(text):
        used += char_width(char)
        if used > columns and i:
            return text[:i], text[i:]
    return text, ""


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most ``columns`` terminal columns, broken at spaces; longer words are cut.

    Line feeds of ``text`` are kept as breaks. A single character wider than ``columns`` stands alone.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_wrap_paragraph(paragraph, max(columns, 1)))
    return lines


def _wrap_paragraph(paragraph: str, columns: int) -> Iterator[str]:
    line, used = "", 0
    for word in paragraph.split():
        size = width(word)
        if line and used + 1 + size <= columns:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            yield line
        while size > columns:
            head, word = cut(word, columns)
            if not word:
                word = head
                break
            yield head
            size = width(word)
        line, used = word, size
    yield line
