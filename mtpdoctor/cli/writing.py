"""Writing a fixed launch file: only after a yes, with a backup, and never over somebody's change."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.text import safe


def write_fixed(path: str, before: str, after: str, *, diff: str, yes: bool) -> Path:
    """Replace the file at ``path`` by ``after`` and return the backup's path.

    ``before`` is the text the fix was made for: when the file holds anything else by now, nothing is
    written. Raises UserError then, when the person does not say yes, and when writing fails.
    """
    target = Path(path).resolve()
    _unchanged(target, before)
    if not yes:
        _ask(target, diff)
        _unchanged(target, before)
    backup = _backup_name(target)
    try:
        shutil.copy2(target, backup)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(after.encode("utf-8"))
            shutil.copymode(target, temporary)
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from None
    return backup


def _unchanged(target: Path, before: str) -> None:
    try:
        now = target.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {target}: {error.strerror or error}") from None
    if now != before.encode("utf-8"):
        raise UserError(f"{target} changed meanwhile; nothing was written", hint="run the command again")


def _ask(target: Path, diff: str) -> None:
    if not sys.stdin.isatty():
        raise UserError(
            f"{target} was not written: nobody is there to say yes", hint="look at the diff, then add --yes"
        )
    print(safe(diff), file=sys.stderr)
    print(f"Write this to {safe(str(target))}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError(f"{target} was not written")


def _backup_name(target: Path) -> Path:
    for number in range(1000):
        name = target.with_name(f"{target.name}.bak{number or ''}")
        if not name.exists():
            return name
    raise UserError(f"{target.parent} is full of backups of {target.name}", hint="remove old .bak files")
