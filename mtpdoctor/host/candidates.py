"""Where Python interpreters may be on a machine, in the order in which a launch would take them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mtpdoctor.host.site_folders import read_text

_NAMES = ("python", "python3")
_VENVS = (".venv", "venv", "env", ".env")
_MAX_BELOW = 64  # entries of a folder of environments that are looked at


@dataclass(frozen=True, slots=True)
class Candidate:
    executable: Path
    origin: str


@dataclass(frozen=True, slots=True)
class Places:
    """What the search rests on; this process's own, or a test's."""

    environ: Mapping[str, str]
    cwd: Path | None
    home: Path | None
    running: Path | None
    root: Path = Path("/")

    def at(self, path: str) -> Path:
        """An absolute path under ``root``."""
        return self.root / path.lstrip("/")


def candidates(places: Places) -> Iterator[Candidate]:
    """Executables that may be there; the same one may come twice."""
    environ = places.environ
    if places.running is not None:
        yield Candidate(places.running, "running interpreter")
    if environ.get("VIRTUAL_ENV"):
        yield from _in(Path(environ["VIRTUAL_ENV"]), "VIRTUAL_ENV")
    if environ.get("CONDA_PREFIX"):
        yield from _in(Path(environ["CONDA_PREFIX"]), "conda")
    yield from _on_path(environ)
    if places.cwd is not None:
        for name in _VENVS:
            yield from _in(places.cwd / name, f"{name} in the current folder")
    yield from _well_known(places)
    yield from _conda(places)
    yield from _managed(places)


def _in(prefix: Path, origin: str) -> Iterator[Candidate]:
    for name in _NAMES:
        path = prefix / "bin" / name
        if path.is_file():
            yield Candidate(path, origin)
            return


def _on_path(environ: Mapping[str, str]) -> Iterator[Candidate]:
    folders = [Path(f) for f in environ.get("PATH", "").split(os.pathsep) if f]
    for name in ("sglang", *_NAMES):
        for folder in folders:
            path = folder / name
            if not path.is_file():
                continue
            if name == "sglang":
                python = _interpreter_of(path)
                if python is not None:
                    yield Candidate(python, "the command sglang on PATH")
            elif folder.name == "shims":
                yield from _behind_shim(folder, environ)
            else:
                yield Candidate(path, "PATH")
                break  # what comes after is hidden by it


def _interpreter_of(script: Path) -> Path | None:
    """The Python that a console script names: in ``#!``, or in the ``exec`` line below ``#!/bin/sh``."""
    lines = (read_text(script, 1024) or "").splitlines()
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if words[:1] == ["/bin/sh"] and len(lines) > 1 and "exec" in lines[1]:
        words = [w.strip("'\"") for w in lines[1].split()[1:]]
    path = Path(words[0]) if words else None
    return path if path is not None and path.is_absolute() and "python" in path.name else None


def _behind_shim(shims: Path, environ: Mapping[str, str]) -> Iterator[Candidate]:
    """pyenv's shims are scripts: the version in force stands in a variable or a file."""
    root = shims.parent
    named = environ.get("PYENV_VERSION") or (read_text(root / "version", 256) or "").strip()
    for version in named.replace(":", " ").split():
        yield from _in(root / "versions" / version, "pyenv")


def _well_known(places: Places) -> Iterator[Candidate]:
    """Where images and administrators put environments."""
    for prefix in ("/opt/venv", "/sgl-workspace", "/opt/sglang", "/usr/local", "/usr"):
        yield from _in(places.at(prefix), f"{prefix}")
    for folder in ("/opt", "/sgl-workspace", "/workspace", "/venv", "/root"):
        yield from _below(places.at(folder), folder)


def _below(folder: Path, origin: str, deeper: tuple[str, ...] = ("", *_VENVS)) -> Iterator[Candidate]:
    """Environments among the entries of a folder, or in the usual folders of those entries."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)[:_MAX_BELOW]
    except OSError:
        return
    for entry in entries:
        for name in deeper:
            yield from _in(Path(entry.path, name), origin)


def _conda(places: Places) -> Iterator[Candidate]:
    roots = [places.at("/opt/conda"), places.at("/opt/miniconda3")]
    if places.home is not None:
        listed = read_text(places.home / ".conda" / "environments.txt") or ""
        for line in listed.splitlines()[:_MAX_BELOW]:
            if line.strip():
                yield from _in(Path(line.strip()), "conda")
        names = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
        roots += [places.home / name for name in names]
    for root in roots:
        yield from _in(root, "conda")
        yield from _below(root / "envs", "conda", ("",))


def _managed(places: Places) -> Iterator[Candidate]:
    """Environments that tools keep in the home folder."""
    home = places.home
    if home is None:
        return
    data = Path(places.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    for folder, origin in (
        (Path(places.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions", "pyenv"),
        (data / "uv" / "tools", "uv tool"),
        (data / "pipx" / "venvs", "pipx"),
        (home / ".local" / "pipx" / "venvs", "pipx"),
        (home / ".virtualenvs", "virtualenvwrapper"),
    ):
        yield from _below(folder, origin, ("",))
    yield from _below(home, "home folder", ("", ".venv", "venv"))
