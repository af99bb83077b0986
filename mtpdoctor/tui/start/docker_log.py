"""A container's log, fetched into a private file so that it can be read like any other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from mtpdoctor.errors import UserError
from mtpdoctor.tui.files import write_private

_LIMIT = 60.0  # seconds
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


def fetch_container_log(name: str) -> str:
    """Path of a private file in the state folder with what ``docker logs NAME`` printed. Raises UserError."""
    docker = shutil.which("docker")
    if docker is None or not _NAME.match(name):
        raise UserError(
            f"cannot ask docker for the log of {name!r}", hint=f"docker logs {name} > server.log 2>&1"
        )
    path = write_private(os.path.join("containers", f"{name}.log"), "")
    try:
        with path.open("wb") as file:
            done = subprocess.run(
                [docker, "logs", name],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=_LIMIT,
                check=False,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise UserError(f"docker logs {name} failed: {error}") from None
    if done.returncode != 0:
        raise UserError(f"docker logs {name} failed with exit code {done.returncode}")
    return str(path)
