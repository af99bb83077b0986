"""Which SGLang a launch would run, found without importing it, and an interpreter that has it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.launch.types import LaunchCommand
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none

_DIST = lazy(r"sglang-([^-]+)\.(?:dist|egg)-info\Z")
_IMAGE_TAG = lazy(r"sglang[^:@\s]*:v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)*)")


def installed_release(command: LaunchCommand | None = None) -> tuple[str, str] | None:
    """The release and where it stands: the container image's tag, else the metadata in a folder of the
    command's own ``PYTHONPATH``, of the environment whose Python it names, of ``$VIRTUAL_ENV``, of this
    interpreter. Reads file names only."""
    if command is not None:
        image = (command.container or {}).get("image", "")
        tag = _IMAGE_TAG.search(image)
        if tag and release_or_none(tag[1]) is not None:
            return tag[1], f"image {image}"
        if image:
            return None  # what is installed here says nothing about another image
    for folder in _site_folders(command):
        version = _version_in(folder)
        if version is not None:
            return version, str(folder)
    return None


def _site_folders(command: LaunchCommand | None) -> Iterator[Path]:
    if command is not None:
        yield from (
            Path(e) for e in command.env.get("PYTHONPATH", "").split(os.pathsep) if e and "$" not in e
        )
    program = command.program[0] if command is not None and command.program else ""
    if "/" in program and "$" not in program:
        yield from _of_environment(Path(program).expanduser().parent.parent)
    if os.environ.get("VIRTUAL_ENV"):
        yield from _of_environment(Path(os.environ["VIRTUAL_ENV"]))
    for entry in sys.path:
        if entry:
            yield Path(entry)


def _of_environment(root: Path) -> Iterator[Path]:
    for pattern in ("lib/python*/site-packages", "lib/python*/dist-packages"):
        yield from sorted(root.glob(pattern))


def _version_in(folder: Path) -> str | None:
    try:
        names = [m[1] for name in os.listdir(folder) if (m := _DIST.match(name))]
    except OSError:
        return None
    return next((name for name in sorted(names, reverse=True) if release_or_none(name) is not None), None)


def python_to_ask(named: str | None) -> str:
    """The interpreter for ``--ask-sglang``: the one named (a Python, or an environment's folder), else of
    ``$VIRTUAL_ENV``, this one, or ``python3`` of the PATH, as far as SGLang is installed beside it.

    Raises UserError when none is found. A Python that a launch command names is never run unasked.
    """
    if named:
        path = Path(named).expanduser()
        if path.is_dir():
            inside = next(
                (p for p in (path / "bin" / "python", path / "bin" / "python3") if p.exists()), None
            )
            if inside is None:
                raise UserError(f"{named} has no bin/python", hint="give a Python or an environment's folder")
            return str(inside)
        found = _which(str(path))
        if found is None:
            raise UserError(
                f"--ask-sglang: {named} is no program here", hint="give the Python that has SGLang"
            )
        return found
    for python in _candidates():
        if any(_has_sglang(folder) for folder in _folders_beside(python)):
            return python
    raise UserError(
        "no Python with SGLang installed was found",
        hint="name one: --ask-sglang /path/to/venv/bin/python",
    )


def _candidates() -> Iterator[str]:
    if os.environ.get("VIRTUAL_ENV"):
        yield str(Path(os.environ["VIRTUAL_ENV"]) / "bin" / "python")
    if sys.executable:
        yield sys.executable
    for name in ("python3", "python"):
        found = _which(name)
        if found:
            yield found


def _which(name: str) -> str | None:
    import shutil

    return shutil.which(name)


def _folders_beside(python: str) -> Iterator[Path]:
    if python == sys.executable:
        yield from (Path(entry) for entry in sys.path if entry)
    path = Path(python)
    own = (path,) if (path.parent.parent / "pyvenv.cfg").is_file() else (path, path.resolve())
    for program in dict.fromkeys(own):
        yield from _of_environment(program.parent.parent)
        yield from _of_environment(program.parent.parent / "local")


def _has_sglang(folder: Path) -> bool:
    server_args = folder / "sglang" / "srt" / "server_args.py"
    return server_args.is_file() or _version_in(folder) is not None
