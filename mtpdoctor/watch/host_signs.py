"""What the host tells about a launch that stands still: locks, downloads, storage, connections, memory.

Each sign is one line that begins with a word of its own (``build lock``, ``lock held``, ``download``, ``weights on``,
``connecting``, ``interface``, ``iommu``, ``host memory``): the knowledge of hangs goes by these words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line

if TYPE_CHECKING:
    import psutil

OLD_LOCK_S = 120.0  # a build that still runs touches its folder more often
_REMOTE = (
    "nfs",
    "nfs4",
    "lustre",
    "cifs",
    "smb3",
    "ceph",
    "gpfs",
    "beegfs",
    "9p",
    "virtiofs",
    "afs",
    "wekafs",
)
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_ENTRIES = 4000  # of a cache folder that are looked at


def signs(pids: Iterable[int]) -> tuple[str, ...]:
    """One line each. Reads /proc and cache folders only; what cannot be read gives no sign."""
    import psutil

    processes = []
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            processes += [process, *process.children(recursive=True)]
    own = {p.pid for p in processes}
    environment = _environment(processes)
    found: list[str] = []
    for part in (
        _build_locks(environment),
        _held_locks(own, environment),
        _downloads(environment),
        _storage(processes),
        _connecting(processes),
        _interfaces(environment),
        _iommu(),
        _memory(),
    ):
        with suppress(OSError, psutil.Error, ValueError):
            found += [one_line(mask_secrets(sign))[:300] for sign in part]
    return tuple(dict.fromkeys(found))


def _environment(processes: Iterable[psutil.Process]) -> Mapping[str, str]:
    """Of the first process that lets it be read; else our own."""
    import psutil

    for process in processes:
        with suppress(psutil.Error, OSError):
            if environment := process.environ():
                return environment
    return os.environ


def _cache(environment: Mapping[str, str], *below: str) -> Path:
    home = environment.get("HOME") or str(Path.home())
    return Path(environment.get("XDG_CACHE_HOME") or Path(home, ".cache"), *below)


def _walk(folder: Path, depth: int) -> Iterator[os.DirEntry[str]]:
    """Files below a folder, a bounded number of them."""
    left, todo = _ENTRIES, [(str(folder), depth)]
    while todo and left > 0:
        at, deeper = todo.pop()
        try:
            entries = list(os.scandir(at))
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if entry.is_dir(follow_symlinks=False):
                if deeper > 0:
                    todo.append((entry.path, deeper - 1))
            else:
                yield entry


def _age(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def _build_locks(environment: Mapping[str, str]) -> Iterator[str]:
    """PyTorch's extension builder takes its lock by creating a file called ``lock``, and a killed one leaves it.

    The builders of FlashInfer and TVM FFI lock a file that stays there for ever: the kernel tells who holds it."""
    named = environment.get("TORCH_EXTENSIONS_DIR")
    folders = [Path(named)] if named else []
    folders.append(_cache(environment, "torch_extensions"))
    for folder in folders:
        for entry in _walk(folder, 4):
            if entry.name == "lock":
                age = time.time() - entry.stat().st_mtime
                if age > OLD_LOCK_S:
                    yield f"build lock {entry.path} is {_age(age)} old"


def _held_locks(own: set[int], environment: Mapping[str, str]) -> Iterator[str]:
    """Locks on files of the caches, by the kernel's list: who holds them, if it is not this launch."""
    import psutil

    holders: dict[int, int] = {}
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if "->" in words or len(words) < 6:
            continue
        holders[int(words[5].rpartition(":")[2])] = int(words[4])
    if not holders:
        return
    hub = environment.get("HF_HUB_CACHE") or Path(
        environment.get("HF_HOME") or _cache(environment, "huggingface"), "hub"
    )
    caches = [_cache(environment, name) for name in ("flashinfer", "tvm-ffi", "sglang")]
    for folder in (Path(hub, ".locks"), *caches):
        for entry in _walk(folder, 3):
            if not entry.name.endswith((".lock", "lock")):
                continue
            holder = holders.get(entry.inode())
            if holder and holder > 0 and holder not in own and psutil.pid_exists(holder):
                yield f"lock held by pid {holder}: {entry.path}"


def _downloads(environment: Mapping[str, str]) -> Iterator[str]:
    """Parts of downloads that have not grown for a while, and are new enough to belong to this launch."""
    hub = environment.get("HF_HUB_CACHE") or Path(
        environment.get("HF_HOME") or _cache(environment, "huggingface"), "hub"
    )
    parts = [e for e in _walk(Path(hub), 3) if e.name.endswith(".incomplete")]
    for entry in parts[:64]:
        about = entry.stat()
        still = time.time() - about.st_mtime
        if 60 < still < 6 * 3600:
            yield f"download {entry.name[:20]}… is at {about.st_size / 2**30:.2f} GiB and has not grown for {_age(still)}"


def _storage(processes: Iterable[psutil.Process]) -> Iterator[str]:
    """The file systems that opened or mapped weight files lie on, where they are remote."""
    mounts = []
    for line in Path("/proc/mounts").read_text().splitlines():
        words = line.split()
        if len(words) > 2 and (words[2] in _REMOTE or words[2].startswith("fuse.")):
            mounts.append((words[1].replace("\\040", " "), words[2]))
    if not mounts:
        return
    mounts.sort(key=lambda mount: -len(mount[0]))
    for process in processes:
        opened = set()
        with suppress(OSError):
            for fd in os.scandir(f"/proc/{process.pid}/fd"):
                with suppress(OSError):
                    opened.add(os.readlink(fd.path))
        with suppress(OSError):
            for fd in list(os.scandir(f"/proc/{process.pid}/map_files"))[:_ENTRIES]:
                with suppress(OSError):
                    opened.add(os.readlink(fd.path))
        for path in opened:
            if path.endswith(_WEIGHTS):
                for mount, kind in mounts:
                    if path.startswith(mount.rstrip("/") + "/"):
                        yield f"weights on {kind}, mounted at {mount}"
                        break


def _connecting(processes: Iterable[psutil.Process]) -> Iterator[str]:
    """Connections that nobody has answered yet."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            connections = getattr(process, "net_connections", None) or process.connections
            for connection in connections(kind="tcp"):
                if connection.status == psutil.CONN_SYN_SENT and connection.raddr:
                    yield f"connecting to {connection.raddr[0]}:{connection.raddr[1]}, and nobody answers"


def _interfaces(environment: Mapping[str, str]) -> Iterator[str]:
    """A network interface that is named in the environment and is not there (or is down)."""
    import psutil

    up = {name for name, about in psutil.net_if_stats().items() if about.isup}
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = environment.get(name, "")
        if not value or value.startswith("^"):
            continue
        for word in value.lstrip("=").split(","):
            exact = value.startswith("=") or name.startswith("GLOO")
            if not any(i == word or (not exact and i.startswith(word)) for i in up):
                yield f"interface {word!r} of {name} is not up here (there are {', '.join(sorted(up))})"


def _iommu() -> Iterator[str]:
    """The IOMMU translates between GPUs: what makes writes from one GPU into another go astray."""
    words = Path("/proc/cmdline").read_text().split()
    on = [w for w in words if w in ("intel_iommu=on", "amd_iommu=on", "amd_iommu=force")]
    if on and "iommu=pt" not in words:
        yield f"iommu is on ({on[0]}) and not passed through (no iommu=pt)"


def _memory() -> Iterator[str]:
    import psutil

    memory = psutil.virtual_memory()
    if memory.available < 0.02 * memory.total:
        yield f"host memory: {memory.available / 2**30:.1f} of {memory.total / 2**30:.0f} GiB are free"
    with suppress(OSError, ValueError):
        most = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        files = next(
            int(line.split()[1])
            for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines()
            if line.startswith("inactive_file ")
        )
        if most - used + files < 0.02 * most:
            yield f"host memory: the container's limit of {most / 2**30:.0f} GiB is reached"
