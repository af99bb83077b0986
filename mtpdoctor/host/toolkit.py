"""The CUDA compiler that just-in-time kernels would be built with."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.host.machine import Machine
from mtpdoctor.host.types import ProbeFailure


def probe_nvcc(machine: Machine, seconds: float = 1.0) -> Iterator[Mapping[str, Any]]:
    """Fields ``nvcc`` ("12.8") and ``nvcc_path``: CUDA_HOME's, else PATH's, else /usr/local/cuda's.

    The toolkit's version.json tells the release; a compiler without it is asked for it.
    """
    path = _find(machine)
    if path is None:
        return
    yield {"nvcc_path": path}
    release = _told(machine, path)
    if release is None:
        try:
            m = re.search(r"release (\d+\.\d+)", machine.run([path, "--version"], seconds))
        except (OSError, subprocess.SubprocessError) as error:
            yield {"failures": (ProbeFailure("nvcc", f"{path} --version fails: {error}"),)}
            return
        release = m[1] if m else None
    if release is not None:
        yield {"nvcc": release}


def _find(machine: Machine) -> str | None:
    get = machine.environ.get
    homes = [h for h in (get("CUDA_HOME"), get("CUDA_PATH")) if h]
    places = [f"{h.rstrip('/')}/bin" for h in homes]
    places += [p for p in (get("PATH") or "").split(os.pathsep) if p.startswith("/")]
    for folder in (*places, "/usr/local/cuda/bin"):
        file = machine.path(f"{folder}/nvcc")
        try:
            if file.is_file() and os.access(file, os.X_OK):
                return f"{folder}/nvcc"
        except OSError:
            continue
    return None


def _told(machine: Machine, path: str) -> str | None:
    home = os.path.dirname(os.path.dirname(path if machine.root else os.path.realpath(path)))
    try:
        said = json.loads(machine.read(f"{home}/version.json") or "null")
        m = re.match(r"(\d+\.\d+)", (said.get("cuda_nvcc") or said["cuda"])["version"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return m[1] if m else None
