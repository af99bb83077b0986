"""SGLang's source as files: a wheel, an unpacked folder, a checkout or an installed package.

Nothing of SGLang is imported or executed.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mtpdoctor.errors import UserError
from mtpdoctor.paths import cache_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none

_VERSION_LINE = lazy(r"^Version:\s*(\S+)", re.M)
_VERSION_ASSIGN = lazy(r"^(?:__version__|version)\s*(?::\s*\w+\s*)?=\s*[\"']([^\"']+)[\"']", re.M)


class SourceTree(Protocol):
    """Read access to one release's files. Paths are relative and start with ``sglang/``."""

    origin: str

    def read(self, path: str) -> str | None:
        """Text of a file, None when there is none (undecodable bytes are replaced)."""

    def files(self) -> tuple[str, ...]:
        """Every ``.py`` file, sorted."""

    def metadata(self) -> str:
        """The distribution's METADATA (or pyproject.toml of a checkout), "" when there is none."""


class FolderSource:
    """A folder that holds ``sglang/``."""

    def __init__(self, base: Path, origin: str, metadata: Path | None = None) -> None:
        self.base, self.origin, self._metadata = base, origin, metadata
        self._files: tuple[str, ...] | None = None

    def read(self, path: str) -> str | None:
        try:
            return (self.base / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def files(self) -> tuple[str, ...]:
        if self._files is None:
            found = (p.relative_to(self.base).as_posix() for p in (self.base / "sglang").rglob("*.py"))
            self._files = tuple(sorted(found))
        return self._files

    def metadata(self) -> str:
        if self._metadata is not None:
            return self._metadata.read_text(encoding="utf-8", errors="replace")
        candidates = [*self.base.glob("sglang-*.dist-info/METADATA"), self.base / "pyproject.toml"]
        for path in candidates:
            if path.is_file():
                return path.read_text(encoding="utf-8", errors="replace")
        return ""


class WheelSource:
    """A wheel, read in place."""

    def __init__(self, path: Path) -> None:
        self.origin = str(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise UserError(f"{path} cannot be read as a wheel: {error}") from None
        self._names = frozenset(self._zip.namelist())

    def read(self, path: str) -> str | None:
        if path not in self._names:
            return None
        return self._zip.read(path).decode("utf-8", errors="replace")

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(n for n in self._names if n.startswith("sglang/") and n.endswith(".py")))

    def metadata(self) -> str:
        for name in self._names:
            if name.endswith(".dist-info/METADATA"):
                return self._zip.read(name).decode("utf-8", errors="replace")
        return ""


def open_source(where: str | Path) -> SourceTree:
    """Open a wheel, a folder holding ``sglang/``, that ``sglang`` folder, a checkout, or an environment
    (a folder with ``lib/python*/site-packages/sglang``). Raises UserError when it is none of these."""
    path = Path(where).expanduser()
    if path.is_file():
        if path.suffix != ".whl":
            raise UserError(f"{path} is no wheel", hint="give a .whl file or a folder that holds sglang/")
        source = WheelSource(path)
        if source.read("sglang/srt/server_args.py") is None:
            raise UserError(f"{path} holds no SGLang server (sglang/srt/server_args.py)")
        return source
    for base in _candidates(path):
        if (base / "sglang" / "srt" / "server_args.py").is_file():
            return FolderSource(base, str(path))
    raise UserError(
        f"no SGLang source in {path} (looked for sglang/srt/server_args.py)",
        hint="give a wheel, an unpacked wheel, a checkout or an environment that has SGLang",
    )


def _candidates(path: Path) -> Iterator[Path]:
    yield path
    yield path / "python"
    if path.name == "sglang":
        yield path.parent
    yield from sorted(path.glob("lib/python*/site-packages"))
    yield from sorted(path.glob("lib/python*/dist-packages"))


def installed_source() -> SourceTree | None:
    """The SGLang that this interpreter would import, found through its metadata; None when absent."""
    from importlib import metadata

    try:
        dist = metadata.distribution("sglang")
    except metadata.PackageNotFoundError:
        dist = None
    if dist is not None:
        base = Path(str(dist.locate_file("")))
        if (base / "sglang" / "srt" / "server_args.py").is_file():
            return FolderSource(base, str(base / "sglang"), _metadata_file(dist))
    for entry in sys.path:  # editable installs leave only the folder on the path
        base = Path(entry or ".")
        if (base / "sglang" / "srt" / "server_args.py").is_file():
            return FolderSource(base, str(base / "sglang"), _metadata_file(dist) if dist else None)
    return None


def find_source(release: str | None) -> SourceTree | None:
    """The source of a release, as far as one is at hand: the installed SGLang when it is that release
    (any, when ``release`` is None), a folder or wheel in ``$MTPDOCTOR_SGLANG_SOURCES``, a wheel in
    ``wheels/`` of the doctor's cache folder. Nothing is downloaded."""
    tree = installed_source()
    if tree is not None and release in (None, source_release(tree)):
        return tree
    if release is None:
        return None
    named = os.environ.get("MTPDOCTOR_SGLANG_SOURCES")
    for folder in [Path(named)] if named else []:
        if (folder / release / "sglang" / "srt" / "server_args.py").is_file():
            return FolderSource(folder / release, str(folder / release))
    for place in [*([Path(named)] if named else []), cache_folder() / "wheels"]:
        for wheel in sorted(place.glob(f"sglang-{release}-*.whl")):
            return open_source(wheel)
    return None


def _metadata_file(dist: object) -> Path | None:
    folder = getattr(dist, "_path", None)
    path = Path(str(folder)) / "METADATA" if folder else None
    return path if path is not None and path.is_file() else None


def source_release(source: SourceTree) -> str | None:
    """The release a tree says it is (METADATA, else ``version.py``); None when it does not say."""
    texts = [_VERSION_LINE.search(source.metadata())]
    for path in ("sglang/_version.py", "sglang/version.py"):
        text = source.read(path)
        texts.append(_VERSION_ASSIGN.search(text) if text else None)
    for match in texts:
        if match and (release := release_or_none(match[1])) is not None:
            return str(release)
    return None
