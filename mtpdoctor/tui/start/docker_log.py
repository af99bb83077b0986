"""A container's log, fetched into a private file so that it can be read like any other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile

from mtpdoctor.errors import UserError

_LIMIT = 60.0  # seconds
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


def fetch_container_log(name: str) -> str:
    """Path of a temporary file with what ``docker logs NAME`` printed. Raises UserError."""
    docker = shutil.which("docker")
    if docker is None or not _NAME.match(name):
        raise UserError(
            f"cannot ask docker for the log of {name!r}", hint=f"docker logs {name} > server.log 2>&1"
        )
    folder = tempfile.mkdtemp(prefix="mtpdoctor-")
    path = os.path.join(folder, f"{name}.log")
    try:
        with open(path, "wb") as file:
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
    return path
