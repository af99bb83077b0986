"""The Python environments of a machine, and which of them holds SGLang.

Only files are read: no interpreter is started and nothing is imported, so that a broken environment is
described like a whole one. The order is the one in which a launch would come upon them; the first with
SGLang goes before all others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.host.candidates import Candidate, Places, candidates
from mtpdoctor.host.distributions import OWNERS, Distribution, distributions, requirements_of
from mtpdoctor.host.site_folders import Interpreter, SearchPath, interpreter_at, search_path
from mtpdoctor.host.types import PythonEnvironment
from mtpdoctor.host.wheels import kernel_build, kernel_package, torch_cuda, torch_sms

MAX_ENVIRONMENTS = 24
_HINT = "give a Python or an environment's folder"

# What is kept of an environment without SGLang: enough to see whether it was meant for it.
_NAMED = frozenset(
    (*OWNERS, "triton", "flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache", "xgrammar", "vllm", "mtpdoctor")
)  # fmt: skip


def python_environments(
    python: str | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    cwd: Path | None = None,
    home: Path | None = None,
    running: str | None = sys.executable,
    root: Path = Path("/"),
) -> tuple[PythonEnvironment, ...]:
    """The environments of this machine, the one whose SGLang a launch would use first.

    ``python`` is what ``--python`` names: an interpreter or an environment's folder; it counts whatever
    else there is, SGLang in it or not. ``cwd``, ``home``, ``running`` and ``root`` (before /opt, /usr and
    the like) are this process's unless given. Raises UserError when ``python`` is neither.
    """
    places = Places(
        environ=environ,
        cwd=cwd or _cwd(),
        home=home if home is not None else _home(environ),
        running=Path(running) if running else None,
        root=root,
    )
    found: dict[tuple[Path, Path], PythonEnvironment] = {}
    for candidate in _named(python, places):
        if len(found) >= MAX_ENVIRONMENTS:
            break
        interpreter = interpreter_at(candidate.executable)
        if interpreter is None:
            continue
        key = (interpreter.prefix.resolve(), interpreter.base)
        if key not in found:
            found[key] = describe(interpreter, candidate.origin, places)
    order = list(found.values())
    chosen = [e for e in order if e.origin == "--python"] or [e for e in order if "sglang" in e.packages][:1]
    return (*chosen, *(e for e in order if e not in chosen))


def _named(python: str | None, places: Places) -> Iterator[Candidate]:
    if python is not None:
        yield Candidate(given_python(python), "--python")
    yield from candidates(places)


def given_python(python: str) -> Path:
    """The interpreter that ``--python`` names. Raises UserError: what is wrong with it, and what to give."""
    if not python.strip():
        raise UserError("--python: there is no Python without a name", hint=_HINT)
    path = Path(python).expanduser()
    if path.is_dir():
        inside = [path / "bin" / "python", path / "bin" / "python3", path / "python", path / "python3"]
        for one in inside:
            if one.is_file():
                return _program(one)
        for one in inside:
            _not_dangling(one)
        raise UserError(f"--python: {python} has no bin/python", hint=_HINT)
    if not path.is_file():
        import shutil

        _not_dangling(path)
        on_path = shutil.which(python)
        if on_path is None:
            raise UserError(f"--python: there is no {python}", hint=_HINT)
        path = Path(on_path)
    return _program(path)


def _program(path: Path) -> Path:
    if not os.access(path, os.X_OK):
        raise UserError(f"--python: {path} is no program", hint=_HINT)
    return Path(os.path.abspath(path))  # not resolved: a virtual environment is known by its link


def _not_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise UserError(
            f"--python: {path} leads to {os.path.realpath(path)}, which is not there: the Python that this "
            "environment was made with is gone",
            hint="make the environment anew",
        )


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # the folder was removed
        return None


def _home(environ: Mapping[str, str]) -> Path | None:
    try:
        return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return None


def describe(python: Interpreter, origin: str, places: Places) -> PythonEnvironment:
    """The environment of one interpreter."""
    path = search_path(python, places.environ, places.home)
    installed = distributions(path.folders)
    sglang = installed.get("sglang", ())
    environment = PythonEnvironment(
        executable=str(python.executable),
        version=python.version,
        origin=origin,
        packages={n: c[0].version for n, c in sorted(installed.items()) if sglang or n in _NAMED},
        folders=tuple(str(f) for f in dict.fromkeys(c[0].folder for c in installed.values())),
    )
    if not sglang:
        return environment
    several = {name: copies for name, copies in sorted(installed.items()) if len(copies) > 1}
    requires, needed = _requirements(installed, python.version)
    kernel, torch = kernel_package(installed), installed.get("torch", (None,))[0]
    kernel_cuda, kernel_sms = kernel_build(kernel) if kernel is not None else (None, ())
    return replace(
        environment,
        duplicates={name: tuple(c.version for c in copies) for name, copies in several.items()},
        duplicate_folders={name: tuple(str(c.folder) for c in copies) for name, copies in several.items()},
        torch_cuda=torch_cuda(torch) if torch is not None else None,
        torch_sms=torch_sms(torch) if torch is not None else (),
        kernel_cuda=kernel_cuda,
        kernel_sms=kernel_sms,
        shadows=tuple(str(p) for p in _shadows(sglang[0], path, places)),
        requires=requires,
        requires_python=needed,
    )


def _requirements(
    installed: Mapping[str, tuple[Distribution, ...]], python: str | None
) -> tuple[dict[str, dict[str, str]], str | None]:
    out: dict[str, dict[str, str]] = {}
    needed = None
    for owner in OWNERS:
        if owner not in installed:
            continue
        found = requirements_of(installed[owner][0], python)
        if found.wanted:
            out[owner] = dict(found.wanted)
        if owner == "sglang":
            needed = found.python
    return out, needed


def _shadows(sglang: Distribution, path: SearchPath, places: Places) -> Iterator[Path]:
    """Folders named sglang that ``python -m sglang.launch_server`` from here finds before the installed
    package. A folder without ``__init__.py`` goes before an editable install's finder only."""
    mapped = path.mapped.get("sglang")
    own = mapped or sglang.folder / "sglang"
    if sglang.editable is not None and mapped is None:
        own = next((f / "sglang" for f in path.folders if f.is_relative_to(sglang.editable)), own)
    own = own.resolve()
    entries = list(path.folders)
    if places.cwd is not None and not places.environ.get("PYTHONSAFEPATH"):
        entries.insert(0, places.cwd)
    for entry in entries:
        folder = entry / "sglang"
        if folder.resolve() == own:
            return
        if (folder / "__init__.py").is_file() or (mapped is not None and folder.is_dir()):
            yield folder
        elif (entry / "sglang.py").is_file():
            yield entry / "sglang.py"
