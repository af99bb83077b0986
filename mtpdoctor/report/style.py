"""A thin layer of ANSI styles: few of them, readable on light and dark backgrounds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from mtpdoctor.records import dataclass

DEFAULT_WIDTH = 80
MIN_WIDTH = 40
MAX_WIDTH = 200

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
    "removed": "31",
    "mark": "1;4",  # bold and underlined shows without colour vision too
}


@dataclass(frozen=True, slots=True)
class Style:
    """Wraps text in a named style, or leaves it plain when ``color`` is off."""

    color: bool

    def __call__(self, name: str, text: str) -> str:
        if not self.color or not text:
            return text
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m"


def terminal(stream: TextIO, env: Mapping[str, str] | None = None) -> tuple[int, bool]:
    """Columns and whether to use colour for ``stream``.

    NO_COLOR (any value) turns colour off; else FORCE_COLOR (any value but 0) turns it on; else it is on
    for a terminal that is not TERM=dumb. Columns: COLUMNS, else the terminal's, else 80.
    """
    env = os.environ if env is None else env
    try:
        tty = stream.isatty()
    except ValueError:  # closed
        tty = False
    return _columns(stream, env, tty), _color(env, tty)


def _color(env: Mapping[str, str], tty: bool) -> bool:
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return env["FORCE_COLOR"] != "0"
    return tty and env.get("TERM") != "dumb"


def _columns(stream: TextIO, env: Mapping[str, str], tty: bool) -> int:
    given = env.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        columns = int(given)
    else:
        columns = _terminal_columns(stream) if tty else DEFAULT_WIDTH
    return max(MIN_WIDTH, min(columns, MAX_WIDTH))


def _terminal_columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError):  # no file descriptor, or one that is no terminal after all
        return DEFAULT_WIDTH
