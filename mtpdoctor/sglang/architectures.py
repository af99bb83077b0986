"""Which releases of SGLang, and which versions of transformers, know a model.

Learned from their sources (``learn_models``, ``learn_transformers``); read only when a failure or a model
asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.store import read_table, release_order

ARCHITECTURES_FILE = "architectures.json"
TRANSFORMERS_FILE = "transformers.json"


@dataclass(frozen=True, slots=True)
class Known:
    """A name over releases, oldest first. ``value`` of a span: the module of SGLang that holds the class; of a
    class of transformers, whether SGLang's wrapper can use it. ``known``: every release of the table."""

    spans: tuple[tuple[Release, Release, Any], ...]  # first and last release, both included
    known: tuple[Release, ...]

    def at(self, release: Release) -> Any:
        """The value in ``release``; None where it does not have the name."""
        return next((value for first, last, value in self.spans if first <= release <= last), None)

    def has(self, release: Release) -> bool:
        return any(first <= release <= last for first, last, _ in self.spans)

    @property
    def first(self) -> Release | None:
        return self.spans[0][0] if self.spans else None

    def first_after(self, release: Release) -> Release | None:
        """The first final release after ``release`` that has it."""
        return next((r for r in self.known if r > release and not r.is_prerelease and self.has(r)), None)

    def last_before(self, release: Release) -> Release | None:
        """The last final release before ``release`` that has it."""
        older = (r for r in reversed(self.known) if r < release and not r.is_prerelease)
        return next((r for r in older if self.has(r)), None)


def architecture(name: str) -> Known:
    """Releases whose registry of models has a class of this name."""
    return _known(releases_folder() / ARCHITECTURES_FILE, "architectures", name)


def processor(name: str) -> Known:
    """Releases that have a multimodal processor for an architecture; the value is the file that holds it."""
    return _known(releases_folder() / ARCHITECTURES_FILE, "processors", name)


def registered_type(name: str) -> Known:
    """Releases that register this ``model_type`` with transformers themselves."""
    return _known(releases_folder() / ARCHITECTURES_FILE, "model_types", name)


def transformers_type(name: str) -> Known:
    """Versions of transformers whose ``AutoConfig`` accepts this ``model_type``; the value lists its classes that
    generate."""
    return _known(releases_folder() / TRANSFORMERS_FILE, "model_types", name)


def transformers_class(name: str) -> Known:
    """Versions of transformers that have a model class of this name."""
    return _known(releases_folder() / TRANSFORMERS_FILE, "classes", name)


def model_types() -> list[str]:
    """Every ``model_type`` that is known to any release of either."""
    folder = releases_folder()
    tables = (read_table(folder / file)["model_types"] for file in (ARCHITECTURES_FILE, TRANSFORMERS_FILE))
    return sorted({name for table in tables for name in table})


def architectures() -> list[str]:
    """Every architecture that any release of SGLang has had."""
    return sorted(read_table(releases_folder() / ARCHITECTURES_FILE)["architectures"])


def _known(path: Path, table: str, name: str) -> Known:
    data = read_table(path)
    releases: Sequence[str] = data["releases"]
    spans = tuple(
        (release_order(first), release_order(last or releases[-1]), value)
        for first, last, value in data.get(table, {}).get(name, ())
    )
    return Known(spans, tuple(map(release_order, releases)))


# -- one release --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelsOf:
    """What one release knows of models. ``exact``: these are the facts of that very release."""

    release: Release
    exact: bool
    folder: Path

    def module(self, architecture: str) -> str | None:
        """The module in ``srt/models`` that holds the class; None where the release has none."""
        return self._at("architectures", architecture)

    def processor(self, architecture: str) -> str | None:
        """The file of multimodal processors that takes the class; None where the release has none."""
        return self._at("processors", architecture)

    def mentions(self, architecture: str) -> bool:
        """The release handles the name in some other way than by a class that bears it."""
        return self._at("mentioned", architecture) is not None

    def registers(self, model_type: str) -> bool:
        return self._at("model_types", model_type) is not None

    def _at(self, table: str, name: str) -> Any:
        return _known(self.folder / ARCHITECTURES_FILE, table, name).at(self.release)


def models_of(release: Release | None) -> ModelsOf | None:
    """The models of a release, or of the nearest known one (``exact`` False); None without a release, and for
    one that was learned from an installation before models were learned."""
    from mtpdoctor.sglang.releases import facts_folder

    if release is None:
        return None
    folder, known, _ = facts_folder(release)
    if not (folder / ARCHITECTURES_FILE).is_file():
        return None
    return ModelsOf(known, known == release, folder)


def transformers_pin(release: Release | None) -> str | None:
    """The version of transformers that a release asks for exactly; None where it does not."""
    from mtpdoctor.sglang.releases import facts_folder

    if release is None:
        return None
    folder, known, _ = facts_folder(release)
    return exact_version(_known(folder / "pins.json", "pins", "transformers").at(known) or "")


def reads_type(model_type: str, release: Release) -> bool:
    """Whether a release, as it is installed with what it asks for, reads a config of this ``model_type``: it
    registers the type itself, or pins a transformers that has it."""
    if registered_type(model_type).has(release):
        return True
    return bool(in_transformers(transformers_type(model_type), transformers_pin(release)))


def first_with_type(model_type: str, after: Release | None, with_class: bool = False) -> Release | None:
    """The first final release after ``after`` (None: of all) that reads the type; ``with_class``: and has a class
    of its own for a model of it, as far as transformers tells which classes those are."""
    later = [
        r for r in registered_type(model_type).known if not r.is_prerelease and (after is None or r > after)
    ]
    classes = [architecture(name) for name in classes_of(model_type)] if with_class else []
    return next(
        (
            r
            for r in later
            if reads_type(model_type, r) and (not classes or any(known.has(r) for known in classes))
        ),
        None,
    )


def classes_of(model_type: str) -> tuple[str, ...]:
    """The classes of transformers that generate with a model of this type; none where SGLang names the type."""
    spans = transformers_type(model_type).spans
    return tuple(spans[-1][2]) if spans else ()


def exact_version(specifier: str) -> str | None:
    return specifier[2:].strip() if specifier.startswith("==") and "," not in specifier else None


def in_transformers(known: Known, version: str | None) -> bool | None:
    """Whether a version has what ``known`` describes; None where the version is not known or older than all
    that were learned. A version between two that were learned is taken for the earlier one."""
    at = _nearest(known, version)
    return None if at is None else known.has(at)


def wrappable(known: Known, version: str | None) -> bool | None:
    """Whether SGLang's wrapper can use the class in that version; None where the version does not have it, or
    is not known."""
    at = _nearest(known, version)
    value = None if at is None else known.at(at)
    return value if isinstance(value, bool) else None


def _nearest(known: Known, version: str | None) -> Release | None:
    named = release_or_none(version)
    if named is None:
        return None
    return next((r for r in reversed(known.known) if r <= named), None)
