"""The distributions in the folders that an interpreter searches, read from their metadata folders.

Name and version stand in the folder's name (``torch-2.11.0.dist-info``), so that one listing of a folder
tells of hundreds; the metadata itself is read only of the few whose requirements matter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mtpdoctor.host.facts import normal_name
from mtpdoctor.host.site_folders import read_text
from mtpdoctor.patterns import lazy

# Whose requirements are read: a mismatch of these stops a launch or makes it wrong.
OWNERS = ("sglang", "transformers", "torch", "torchvision", "torchaudio", "sglang-kernel", "sgl-kernel")

_METADATA = lazy(r"([A-Za-z0-9][\w.]*(?:-[A-Za-z][\w.]*)*?)(?:-(\d[^-]*)(?:-py[\d.]+)?)?\.(dist|egg)-info$")
_VERSION = lazy(r"(?m)^Version:[ \t]*(\S+)")
_DUNDER = lazy(r"(?m)^\s*__version__(?:[^=\n]*=)+\s*[\"']([\w.+!-]+)[\"']")
_MAX_METADATA = 256 * 1024


@dataclass(frozen=True, slots=True)
class Distribution:
    """One installed distribution. ``editable`` is the source folder of an editable install."""

    name: str  # normal form
    version: str
    metadata: Path  # the .dist-info or .egg-info
    editable: Path | None = None

    @property
    def folder(self) -> Path:
        return self.metadata.parent


def distributions(folders: Sequence[Path]) -> dict[str, tuple[Distribution, ...]]:
    """Every copy of every distribution by name, the one that an import uses first."""
    found: dict[str, list[Distribution]] = {}
    for folder in folders:
        for one in _in_folder(folder):
            copies = found.setdefault(one.name, [])
            if not any(_same_source(one, other) for other in copies):
                copies.append(one)
    if "sglang" not in found and (source := _source_checkout(folders)) is not None:
        found["sglang"] = [source]
    return {name: tuple(copies) for name, copies in found.items()}


def _source_checkout(folders: Sequence[Path]) -> Distribution | None:
    """An SGLang that is imported without being installed: its source folder on PYTHONPATH or in a .pth file.
    Its version stands in what setuptools-scm wrote, or in version.py; "unknown" where neither says."""
    for folder in folders:
        package = folder / "sglang"
        if (package / "launch_server.py").is_file() and (package / "srt").is_dir():
            said = None
            for name in ("_version.py", "version.py"):
                said = said or _DUNDER.search(read_text(package / name) or "")
            return Distribution("sglang", said[1] if said else "unknown", package)
    return None


def _in_folder(folder: Path) -> list[Distribution]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    out = []
    for entry in names:
        if not entry.endswith("-info"):
            continue
        match = _METADATA.match(entry)
        if match is None:
            continue
        path = folder / entry
        version = match[2] or _version_in(path)
        if version is None:
            continue
        name = normal_name(match[1])
        editable = _editable(path) if match[3] == "dist" and name in OWNERS else None
        out.append(Distribution(name, version, path, editable))
    return out


def _version_in(path: Path) -> str | None:
    """Of an .egg-info without a version in its name: a source folder's, or a bare file."""
    text = read_text(path / "PKG-INFO" if path.is_dir() else path)
    match = _VERSION.search(text) if text else None
    return match[1] if match else None


def _editable(metadata: Path) -> Path | None:
    text = read_text(metadata / "direct_url.json")
    if text is None:
        return None
    try:
        said = json.loads(text)
    except ValueError:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("dir_info"), dict):
        return None
    url = said.get("url")
    if not said["dir_info"].get("editable") or not isinstance(url, str):
        return None
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _same_source(one: Distribution, other: Distribution) -> bool:
    """The metadata that a build leaves in the source folder of an editable install is no second copy."""
    for installed, source in ((one, other), (other, one)):
        if installed.editable is not None and source.folder.is_relative_to(installed.editable):
            return True
    return one.metadata == other.metadata


@dataclass(frozen=True, slots=True)
class Requirements:
    """``wanted``: distribution (normal form) -> version specifier, "" for any."""

    wanted: Mapping[str, str]
    python: str | None  # Requires-Python


def requirements_of(distribution: Distribution, python: str | None) -> Requirements:
    """What a distribution requires on this machine without extras, for an interpreter ``python`` ("3.12").

    Lines that are no valid requirement are left out."""
    text = read_text(distribution.metadata / "METADATA", _MAX_METADATA)
    if text is None:
        text = read_text(distribution.metadata / "PKG-INFO", _MAX_METADATA)
    wanted: dict[str, str] = {}
    needed = None
    for line in (text or "").splitlines():
        if not line:
            break  # the description begins (a license text may hold lines of blanks)
        key, _, value = line.partition(":")
        if key == "Requires-Python":
            needed = value.strip()
        elif key == "Requires-Dist":
            found = _requirement(value.strip(), python)
            if found is not None:
                wanted.setdefault(*found)
    return Requirements(wanted, needed)


def _requirement(text: str, python: str | None) -> tuple[str, str] | None:
    from packaging.requirements import InvalidRequirement, Requirement

    _, _, marker = text.partition(";")
    if "extra" in marker:
        return None
    try:
        parsed = Requirement(text)
        if parsed.marker is not None and not parsed.marker.evaluate(_environment(python)):
            return None
    except (InvalidRequirement, ValueError):
        return None
    return normal_name(parsed.name), str(parsed.specifier)


def _environment(python: str | None) -> dict[str, str]:
    if python is None:
        return {}
    whole = python if python.count(".") > 1 else f"{python}.0"
    return {"python_version": ".".join(python.split(".")[:2]), "python_full_version": whole}
