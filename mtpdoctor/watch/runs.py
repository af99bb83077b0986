"""What was launched and how it ended, kept under the user's state folder: one folder a run.

``runs/<UTC time>-<model>[-N]/`` holds ``server.log`` (secrets masked), ``run.json``, and ``exit.json`` where a launch
ended. Readable by the user only.

Policy: a new run first removes what is older than 30 days, then the oldest beyond 50 runs, then the oldest until
all of them fit in 4 GiB; never one that still runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.paths import state_folder
from mtpdoctor.watch import tree

KEEP_RUNS = 50
KEEP_SECONDS = 30 * 86400.0
KEEP_BYTES = 4 << 30
LEAST_BYTES = 16 << 20  # free on the disk: else nothing is launched whose log could not be kept
SCHEMA = 1
_FILE, _EXIT, _LOG = "run.json", "exit.json", "server.log"


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it is kept. Texts are masked. ``how`` is an ``End`` or "running" or "lost": the doctor, or the
    guard, was killed before it could write down the end."""

    id: str  # the folder's name
    started: float  # seconds since the epoch
    command: str
    log: str
    model: str = ""
    attempt: int = 1  # of a launch that was retried
    after: str | None = None  # the run this one retries
    edits: tuple[str, ...] = ()  # against the run before
    guard: int | None = None  # pid
    guard_started: int | None = None  # tells it from a later process of the same pid
    pid: int | None = None
    detached: bool = False
    how: str = "running"
    code: int | None = None
    stage: str = "env"
    seconds: float | None = None  # until the end
    ready_after: float | None = None  # seconds until it had generated tokens
    rule: str | None = None
    cause: str | None = None
    sglang: str | None = None


def runs_folder() -> Path:
    return state_folder() / "runs"


def new_run(command: str, model: str, now: float | None = None) -> tuple[Path, Run]:
    """A new folder, after what is too old or too much was removed. Raises UserError when it cannot be made."""
    now = time.time() if now is None else now
    base = runs_folder()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    name = (
        re.sub(r"[^A-Za-z0-9._-]+", "_", model.rstrip("/").rsplit("/", 1)[-1])[:60].strip("._-") or "server"
    )
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        prune(now=now)
        free = shutil.disk_usage(base).free
        if free < LEAST_BYTES:
            raise OSError(None, f"{free >> 20} MiB are free there, too little for a log")
        for number in range(1, 1000):
            folder = base / (f"{stamp}-{name}" if number == 1 else f"{stamp}-{name}-{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                run = Run(id=folder.name, started=now, command=command, log=str(folder / _LOG), model=name)
                return folder, run
    except OSError as error:
        raise UserError(
            f"cannot keep the run under {base}: {error.strerror or error}",
            hint="set XDG_STATE_HOME or MTPDOCTOR_STATE to a folder that can be written",
        ) from None
    raise UserError(f"{base} is full of runs of this second")


def save(folder: Path, run: Run) -> None:
    """Write ``run.json``, whole or not at all. A full disk does not end the watch."""
    data = {"schema": SCHEMA, **{f.name: getattr(run, f.name) for f in fields(run)}}
    temporary = folder / f".{_FILE}.new"
    with contextlib.suppress(OSError):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        os.replace(temporary, folder / _FILE)


def exit_file(folder: Path) -> str:
    return str(folder / _EXIT)


def all_runs() -> tuple[Run, ...]:
    """Every run that is kept, the newest first. Folders that cannot be read are left out."""
    try:
        folders = [p for p in runs_folder().iterdir() if p.is_dir()]
    except OSError:
        return ()
    found = [run for run in map(load, folders) if run is not None]
    return tuple(sorted(found, key=lambda r: (r.started, r.id), reverse=True))


def load(folder: Path) -> Run | None:
    try:
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    run = _run_of(data)
    if run is None or run.how not in ("running", "detached"):
        return run
    return _now(folder, run)


def _run_of(data: Any) -> Run | None:
    if not isinstance(data, dict):
        return None
    known: Mapping[str, Any] = {f.name: data[f.name] for f in fields(Run) if f.name in data}
    try:
        run = Run(**known)
        return replace(run, edits=tuple(run.edits), started=float(run.started))
    except (TypeError, ValueError):
        return None


def _now(folder: Path, run: Run) -> Run:
    """A run without a written end: it still runs, has ended since, or its end was lost."""
    guarded = (  # asked first: the guard writes the end before its own
        run.guard is not None
        and run.guard_started is not None
        and tree.started(run.guard) == run.guard_started
    )
    try:
        ended = json.loads((folder / _EXIT).read_text(encoding="utf-8"))
        how = "died" if ended["code"] else "ended"
        how = "lost" if ended.get("orphaned") else "stopped" if ended.get("asked") else how
        return replace(run, how=how, code=ended["code"], seconds=ended["at"] - run.started)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return run if guarded else replace(run, how="lost")


def prune(
    *,
    now: float,
    keep: int = KEEP_RUNS,
    seconds: float = KEEP_SECONDS,
    size: int = KEEP_BYTES,
) -> tuple[str, ...]:
    """Remove old runs as the policy says. Ids of those that went. Files that are not of a run stay."""
    gone: list[str] = []
    total = 0
    base = runs_folder()
    kept = 0
    for run in all_runs():  # the newest first
        folder = base / run.id
        living = run.how in ("running", "detached")
        held = _size(folder)
        if not living and (kept >= keep or now - run.started > seconds or total + held > size):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(run.id)
            continue
        kept += 1
        total += held
    return tuple(gone)


def _size(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            total += entry.stat().st_size
    return total


def began(pid: int) -> int | None:
    """What tells the process from a later one of the same pid."""
    return tree.started(pid)
