"""Files that the interactive doctor writes for its user, in the state folder."""

from __future__ import annotations

import os
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.paths import state_folder


def write_private(name: str, text: str) -> Path:
    """Writes ``text`` to a file that only its owner can read. Raises UserError."""
    path = state_folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    return path
