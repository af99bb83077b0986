"""What there is to look at on this machine: kept runs, logs here, running servers, containers, samples.

No Textual here. Every search has a limit of time and number, none raises, and nothing found is opened.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtpdoctor.paths import samples_folder, state_folder

_MOST = 8  # of a kind
_DOCKER_LIMIT = 3.0  # seconds
_ENDINGS = (".log", ".out", ".err", ".log.gz", ".log.zst", ".log.xz", ".log.bz2")
_SCAN_LIMIT = 4000  # names of a folder that are looked at


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be opened. ``paths`` are log files; a server whose output goes to no file has none,
    and ``why`` says what to do instead."""

    kind: str  # "run" | "here" | "process" | "container" | "sample"
    title: str
    detail: str  # size and age, pid, state
    paths: tuple[str, ...] = ()
    why: str = ""
    at: float = 0.0  # of a file: when it was written last, seconds since the epoch
    of: int = 0  # how many of this kind there are, where not all are offered


@dataclass(frozen=True, slots=True)
class Places:
    """Where is looked. A field that is None is left out: tests name their own."""

    runs: Path | None
    here: Path | None
    samples: Path | None
    processes: Callable[[], Sequence[Found]] | None
    containers: Callable[[], Sequence[Found]] | None
    now: float | None = None  # seconds since the epoch; None: ages are not told

    @staticmethod
    def usual() -> Places:
        return Places(
            state_folder() / "runs", Path.cwd(), samples_folder(), running_servers, containers, time.time()
        )


def find(places: Places) -> tuple[Found, ...]:
    """Everything, the likeliest first."""
    kept = newest(places.runs, "run", places.now, deep=True) if places.runs is not None else []
    here = newest(places.here, "here", places.now) if places.here is not None else []
    # which of both is newer is likelier to be what the person has in mind
    out = here + kept if here and (not kept or here[0].at > kept[0].at) else kept + here
    if places.processes is not None:
        out += places.processes()
    if places.containers is not None:
        out += places.containers()
    if places.samples is not None:
        out += samples(places.samples)
    return tuple(out)


def newest(folder: Path, kind: str, now: float | None, *, deep: bool = False) -> list[Found]:
    """The newest log files of a folder (``deep``: and of the folders in it)."""
    logs: list[tuple[float, int, str]] = []
    for path in _files(folder, deep):
        if path.endswith(_ENDINGS):
            try:
                info = os.stat(path)
            except OSError:
                continue
            if info.st_size:
                logs.append((info.st_mtime, info.st_size, path))
    logs.sort(reverse=True)
    return [
        Found(
            kind,
            os.path.relpath(path, folder),
            _detail(size, None if now is None else now - at),
            (path,),
            at=at,
            of=len(logs) if len(logs) > _MOST else 0,
        )
        for at, size, path in logs[:_MOST]
    ]


def _files(folder: Path, deep: bool) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for i, entry in enumerate(entries):
                if i >= _SCAN_LIMIT:
                    return
                if entry.is_file():
                    yield entry.path
                elif deep and entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path), False)
    except OSError:
        return


def _detail(size: int, age: float | None) -> str:
    return size_in_words(size) if age is None else f"{size_in_words(size)}, {age_in_words(age)}"


def size_in_words(size: int) -> str:
    """Bytes: "812 B", "3.4 KiB", "1.0 GiB"."""
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def age_in_words(seconds: float) -> str:
    """ "just now", "5 min ago", "3 h ago", "12 days ago"."""
    if seconds < 60:
        return "just now"
    for unit, size, limit in (("min", 60, 3600), ("h", 3600, 2 * 86400)):
        if seconds < limit:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds // 86400)} days ago"


def running_servers() -> list[Found]:
    """SGLang servers of this machine, and the file that each writes its output to."""
    try:
        import psutil
    except ImportError:
        return []
    out: list[Found] = []
    for process in psutil.process_iter(["pid", "cmdline", "create_time"]):
        words = process.info.get("cmdline") or []
        if not is_server(words):
            continue
        log = _output_of(process.info["pid"])
        started = process.info.get("create_time")
        age = f", started {age_in_words(time.time() - started)}" if started else ""
        out.append(
            Found(
                "process",
                _model_of(words),
                f"pid {process.info['pid']}{age}",
                (log,) if log else (),
                "" if log else "its output goes to a terminal or a pipe: give the file it is kept in",
            )
        )
        if len(out) == _MOST:
            break
    return out


def is_server(words: Sequence[str]) -> bool:
    """Is this the command line of an SGLang server's main process?"""
    if "sglang.launch_server" in words:
        return (
            words.index("sglang.launch_server") > 0 and words[words.index("sglang.launch_server") - 1] == "-m"
        )
    return any(
        os.path.basename(word) == "sglang" and words[i + 1 : i + 2] == ["serve"]
        for i, word in enumerate(words[:3])
    )


def _model_of(words: Sequence[str]) -> str:
    for i, word in enumerate(words):
        if word in ("--model-path", "--model") and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(("--model-path=", "--model=")):
            return word.partition("=")[2]
    return "SGLang server"


def _output_of(pid: int) -> str | None:
    """The regular file that standard error (or output) of a process goes to. Linux only."""
    for stream in (2, 1):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{stream}")
            if os.path.isfile(path) and os.access(path, os.R_OK):
                return path
        except OSError:
            continue
    return None


def containers() -> list[Found]:
    """Docker containers that look like SGLang, running or ended; [] where Docker cannot be asked."""
    import shutil

    docker = shutil.which("docker")
    if docker is None:
        return []
    form = "{{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Command}}"
    try:
        done = subprocess.run(
            [docker, "ps", "--all", "--last", "30", "--no-trunc", "--format", form],
            capture_output=True,
            timeout=_DOCKER_LIMIT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return containers_of(done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else []


def containers_of(text: str) -> list[Found]:
    """The containers in what ``docker ps`` printed, tab between name, image, status, command."""
    out: list[Found] = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4 and "sglang" in f"{fields[1]} {fields[3]}".lower():
            name, image, status, _ = fields
            out.append(Found("container", name, f"{image}, {status}", why=f"docker logs {name}"))
    return out[:_MOST]


SAMPLES = (
    ("spec_no_buffer_with_radix.log", "speculation on a hybrid model refuses to start"),
    ("kv_pool_zero_gpu_filled_by_others.log", '"Not enough memory", and who holds it'),
    ("tokenizer_files_missing_zero_token_prefill.log", 'a "CUDA error" whose cause stands far above'),
    ("scheduler_killed_sigkill.log", "killed from outside: the victim says nothing"),
    ("flag_from_newer_version.log", "a flag of another release"),
    ("ready_mtp_accept_len_1.log", "healthy, but speculation gains nothing"),
)


def samples(folder: Path) -> list[Found]:
    return [
        Found("sample", name, says, (str(folder / name),))
        for name, says in SAMPLES
        if (folder / name).is_file()
    ]
