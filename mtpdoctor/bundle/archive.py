"""Writing a bundle: the same bytes for the same files, never over something that is there."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

from mtpdoctor.bundle.types import FOLDER, Bundle
from mtpdoctor.errors import UserError


def archive_bytes(bundle: Bundle) -> bytes:
    """The ``.tar.gz``: no times, owners or names of this machine in it."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(bundle.entries, key=lambda e: e.name):
            info = tarfile.TarInfo(f"{FOLDER}/{entry.name}")
            info.size, info.mode, info.mtime = len(entry.data), 0o644, 0
            tar.addfile(info, io.BytesIO(entry.data))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as out:
        out.write(raw.getvalue())
    return packed.getvalue()


def refuse_existing(path: str, force: bool) -> None:
    """Raises UserError where something is at ``path`` and must not be replaced."""
    target = Path(path)
    if target.is_dir():
        raise UserError(f"{path} is a folder", hint="name the archive itself in --out")
    if os.path.lexists(target) and not force:
        raise UserError(f"{path} is there already", hint="name another file in --out, or add --force")


def write_archive(data: bytes, path: str, *, force: bool) -> None:
    """As a whole or not at all, readable by the owner alone. Raises UserError when it cannot be written."""
    refuse_existing(path, force)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(data)
        if force:
            os.replace(beside, path)
        else:
            os.link(beside, path)  # fails where somebody was faster
            os.unlink(beside)
    except OSError as error:
        if os.path.exists(beside):
            os.unlink(beside)
        raise UserError(
            f"cannot write {path}: {error.strerror or error}", hint="name a file in --out"
        ) from None
