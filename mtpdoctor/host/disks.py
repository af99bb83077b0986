"""Free space where a launch writes or reads much: model, download cache, kernel caches, temporary files."""

from __future__ import annotations

import getpass
import os
import queue
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.host.machine import GIB, Machine
from mtpdoctor.host.types import Disk, ProbeFailure


def folders(machine: Machine, model: str | None = None) -> dict[str, str]:
    """Purpose -> folder, as the libraries choose it from the environment."""
    get = machine.environ.get
    home = get("HOME") or os.path.expanduser("~")
    cache = get("XDG_CACHE_HOME") or f"{home}/.cache"
    hub = get("HF_HOME") or f"{cache}/huggingface"
    temporary = get("TMPDIR") or "/tmp"
    out = {"model": os.path.abspath(model)} if model else {}
    out["Hugging Face cache"] = get("HF_HUB_CACHE") or get("HUGGINGFACE_HUB_CACHE") or f"{hub}/hub"
    if get("SGLANG_USE_MODELSCOPE") or get("MODELSCOPE_CACHE"):
        out["ModelScope cache"] = get("MODELSCOPE_CACHE") or f"{cache}/modelscope/hub"
    out["Triton cache"] = get("TRITON_CACHE_DIR") or f"{get('TRITON_HOME') or home}/.triton/cache"
    out["torch.compile cache"] = (
        get("TORCHINDUCTOR_CACHE_DIR") or f"{temporary}/torchinductor_{_user(machine)}"
    )
    out["torch extensions"] = get("TORCH_EXTENSIONS_DIR") or f"{cache}/torch_extensions"
    out["FlashInfer cache"] = f"{get('FLASHINFER_WORKSPACE_BASE') or home}/.cache/flashinfer"
    out["DeepGEMM cache"] = (
        get("SGLANG_DG_CACHE_DIR") or get("DG_JIT_CACHE_DIR") or f"{home}/.cache/deep_gemm"
    )
    out["temporary files"] = temporary
    return {purpose: os.path.expanduser(path) for purpose, path in out.items()}


def _user(machine: Machine) -> str:
    try:
        return machine.environ.get("USER") or getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have them
        return "user"


def probe_disks(
    machine: Machine, model: str | None = None, seconds: float = 0.8
) -> Iterator[Mapping[str, Any]]:
    """Field ``disks``; each folder is asked beside the others, and one without an answer in ``seconds`` is a
    failure: a network file system whose server is gone never answers."""
    wanted = folders(machine, model)
    mounts = _mounts(machine)
    answers: queue.SimpleQueue[tuple[str, Disk | None]] = queue.SimpleQueue()
    for purpose, path in wanted.items():
        task = threading.Thread(
            target=lambda p=purpose, f=path: answers.put((p, _disk(machine, p, f, mounts))), daemon=True
        )
        task.start()
    found: dict[str, Disk | None] = {}
    until = time.monotonic() + seconds
    while len(found) < len(wanted):
        try:
            purpose, disk = answers.get(timeout=max(until - time.monotonic(), 0))
        except queue.Empty:
            break
        found[purpose] = disk
    silent = tuple(
        ProbeFailure(
            f"disk of {path}", f"the file system of the {purpose} does not answer: a dead network mount?"
        )
        for purpose, path in wanted.items()
        if purpose not in found
    )
    yield {"disks": tuple(d for p in wanted if (d := found.get(p)) is not None)}
    if silent:
        yield {"failures": silent}


def _disk(machine: Machine, purpose: str, path: str, mounts: Mapping[str, str]) -> Disk | None:
    """Asked of the nearest folder that is there: caches are made when they are first needed."""
    place = path
    while True:
        try:
            total, free = machine.sizes(place)
            break
        except OSError:
            above = os.path.dirname(place)
            if above == place:
                return None
            place = above
    real = place if machine.root else os.path.realpath(place)
    mount = max((m for m in mounts if real == m or real.startswith(m.rstrip("/") + "/")), key=len, default="")
    return Disk(path, purpose, free / GIB, total / GIB, mounts.get(mount))


def _mounts(machine: Machine) -> dict[str, str]:
    out = {}
    for line in (machine.read("/proc/self/mountinfo") or "").splitlines():
        m = re.match(r"\S+ \S+ \S+ \S+ (\S+) .*? - (\S+)", line)
        if m:
            out[re.sub(r"\\(\d{3})", lambda o: chr(int(o[1], 8)), m[1])] = m[2]
    return out
