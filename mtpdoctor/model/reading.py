"""Reading files that nobody vouches for: only regular files, only so much of them, and errors in words."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

LFS_POINTER = b"version https://git-lfs"


class Unreadable(Exception):
    """A file that cannot be read; ``str()`` says why, without its name."""


def read_some(file: Path, limit: int, *, whole: bool = True) -> tuple[bytes, int]:
    """Up to ``limit`` first bytes of a regular file, and its size.

    Raises FileNotFoundError where there is none, and Unreadable for what is no regular file (a pipe
    would block), a loop of links, no permission, or (``whole``) a file that is longer than ``limit``.
    """
    try:
        # a pipe or a device opens at once and is seen for what it is
        number = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as e:
        raise Unreadable(_words(e)) from None
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("it is not a regular file")
        if whole and found.st_size > limit:
            raise Unreadable(f"it is {found.st_size / 2**20:,.0f} MiB long, over {limit // 2**20} MiB")
        parts, left = [], limit
        while left > 0 and (part := os.read(number, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), found.st_size
    except OSError as e:
        raise Unreadable(_words(e)) from None
    finally:
        os.close(number)


def parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object. Raises Unreadable with the place of what is wrong in it."""
    if data.startswith(LFS_POINTER):
        raise Unreadable("is a Git LFS pointer, not the file itself (git lfs pull)")
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as e:
        raise Unreadable(f"is not valid JSON: {e.msg}, line {e.lineno} column {e.colno}") from None
    except RecursionError:
        raise Unreadable("is not valid JSON: it is nested too deeply") from None
    except (UnicodeDecodeError, ValueError) as e:
        raise Unreadable(f"is not valid JSON: {e}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"holds a {type(found).__name__}, not an object")
    return found


def _words(e: Exception) -> str:
    return (e.strerror or str(e)) if isinstance(e, OSError) else str(e)
