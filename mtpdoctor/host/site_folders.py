"""Where an interpreter finds its packages: worked out from files, without running it.

Follows what ``site`` and ``getpath`` of CPython do: ``pyvenv.cfg`` beside or above the executable, else
the prefix of the real executable; PYTHONPATH, the user's site, ``site-packages``, Debian's
``dist-packages``, and what ``.pth`` files add.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtpdoctor.patterns import lazy

_PROGRAM = lazy(r"(?:python|pypy)(\d+\.\d+)t?$")
_LIBRARY = lazy(r"python(\d+\.\d+)t?$")
_VERSION = lazy(r"\d+\.\d+(?:\.\d+)?")
_PATCHLEVEL = lazy(r'#define\s+PY_VERSION\s+"(\d+\.\d+\.\d+)')
_FINDER = lazy(r"import (__editable__\w*_finder)\b")
_MAX_TEXT = 64 * 1024  # of a .pth, a pyvenv.cfg, a finder


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python installation. ``version`` as far as files tell: "3.12.3", "3.12" or None."""

    executable: Path
    prefix: Path  # of the environment
    base: Path  # of the installation that a virtual environment rests on; the prefix itself otherwise
    version: str | None
    system_site: bool  # packages of ``base`` and of the user count too

    @property
    def minor(self) -> str | None:
        """ "3.12" """
        return ".".join(self.version.split(".")[:2]) if self.version else None


@dataclass(frozen=True, slots=True)
class SearchPath:
    """``folders`` in the order in which a module is looked for; ``early`` are those that come before the
    standard library (PYTHONPATH). ``mapped`` are packages that editable installs put elsewhere."""

    folders: tuple[Path, ...]
    early: tuple[Path, ...] = ()
    mapped: Mapping[str, Path] = field(default_factory=dict)


def interpreter_at(executable: Path) -> Interpreter | None:
    """The installation behind an executable; None when there is no such file."""
    if not executable.is_file():
        return None
    for folder in (executable.parent, executable.parent.parent):
        settings = _settings(folder / "pyvenv.cfg")
        if settings is not None:
            return _virtual(executable, folder, settings)
    real = executable.resolve()
    prefix = real.parent.parent
    return Interpreter(executable, prefix, prefix, _version_of(real, prefix), system_site=True)


def _virtual(executable: Path, prefix: Path, settings: Mapping[str, str]) -> Interpreter:
    home = Path(settings.get("home") or executable.resolve().parent)
    base = home.resolve().parent if home.is_dir() else home.parent
    said = _VERSION.match(settings.get("version") or settings.get("version_info") or "")
    version = said[0] if said else _version_of(executable.resolve(), prefix)
    system = settings.get("include-system-site-packages", "").lower() == "true"
    return Interpreter(executable, prefix, base, version, system)


def _settings(path: Path) -> dict[str, str] | None:
    text = read_text(path)
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, found, value in pairs if found}


def _version_of(real: Path, prefix: Path) -> str | None:
    """Of an installation: its headers say the whole version, else the name of its program or library."""
    named = _PROGRAM.match(real.name)
    minor = named[1] if named else _only_library(prefix)
    if minor is None:
        return None
    header = read_text(prefix / "include" / f"python{minor}" / "patchlevel.h")
    whole = _PATCHLEVEL.search(header) if header else None
    return whole[1] if whole else minor


def _only_library(prefix: Path) -> str | None:
    found = {m[1] for entry in _names(prefix / "lib") if (m := _LIBRARY.match(entry))}
    return found.pop() if len(found) == 1 else None


def search_path(python: Interpreter, environ: Mapping[str, str], home: Path | None) -> SearchPath:
    """Where ``python`` looks for packages when started with ``environ``."""
    early = [Path(entry) for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sites = list(_sites(python, environ, home))
    folders: dict[Path, None] = dict.fromkeys(early)
    mapped: dict[str, Path] = {}
    for site in sites:
        folders.setdefault(site)
        for added, packages in _added(site):
            if added is not None:
                folders.setdefault(added)
            for name, place in packages.items():
                mapped.setdefault(name, place)
    present = tuple(folder for folder in folders if folder.is_dir())
    return SearchPath(present, tuple(folder for folder in early if folder.is_dir()), mapped)


def _sites(python: Interpreter, environ: Mapping[str, str], home: Path | None) -> Iterator[Path]:
    minor = python.minor
    if python.prefix != python.base:
        yield from _of_prefix(python.prefix, minor)
        if not python.system_site:
            return
    base = environ.get("PYTHONUSERBASE")
    user = Path(base) if base else home / ".local" if home else None
    if user is not None and minor and not environ.get("PYTHONNOUSERSITE"):
        yield user / "lib" / f"python{minor}" / "site-packages"
    if python.base.name == "usr":  # Debian and Ubuntu: what pip installs goes to /usr/local
        yield from _of_prefix(python.base / "local", minor)
    yield from _of_prefix(python.base, minor)
    yield python.base / "lib" / "python3" / "dist-packages"


def _of_prefix(prefix: Path, minor: str | None) -> Iterator[Path]:
    versions = [f"python{minor}"] if minor else [n for n in _names(prefix / "lib") if _LIBRARY.match(n)]
    for library in ("lib", "lib64"):
        if library == "lib64" and (prefix / library).resolve() == (prefix / "lib").resolve():
            continue
        for version in versions:
            for kind in ("site-packages", "dist-packages"):
                yield prefix / library / version / kind


def _added(site: Path) -> Iterator[tuple[Path | None, Mapping[str, Path]]]:
    """What the .pth files of a folder add: folders, and packages that a finder maps."""
    for name in sorted(n for n in _names(site) if n.endswith(".pth") and not n.startswith(".")):
        for line in (read_text(site / name) or "").splitlines():
            if line.startswith("import") and len(line) > 6 and line[6] in " \t":
                finder = _FINDER.match(line)
                if finder:
                    yield None, _mapping(site / f"{finder[1]}.py")
            elif line.strip() and not line.startswith("#"):
                yield site / line.rstrip(), {}


def _mapping(finder: Path) -> dict[str, Path]:
    """``MAPPING`` of an editable install's finder: package -> folder. Read as data, never run."""
    import ast

    text = read_text(finder)
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError):
        return {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and names == ["MAPPING"] and node.value is not None:
            try:
                found = ast.literal_eval(node.value)
            except (ValueError, TypeError):
                return {}
            pairs = found.items() if isinstance(found, dict) else ()
            return {k: Path(v) for k, v in pairs if isinstance(k, str) and isinstance(v, str)}
    return {}


def read_text(path: Path, limit: int = _MAX_TEXT) -> str | None:
    """The start of a text file; None when it cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe is not waited for
        with open(number, "rb") as file:
            return (file.read(limit) or b"").decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
