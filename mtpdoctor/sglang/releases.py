"""What is known of SGLang's releases: which there are, and the facts of one.

The facts are learned from the releases' own sources (see ``learn``) and lie in
``knowledge/releases/*.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.store import at_release, read_table, release_order


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """An environment variable. ``default`` is the value in force when it is unset, None for "not given",
    ``<...>`` when computed. ``deprecated``: the release warns about it; ``replacement`` is what it names."""

    name: str
    type: str
    default: Any
    deprecated: bool
    replacement: str | None
    releases: tuple[tuple[str, str | None], ...]  # (first, last); None: to the newest known


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """The facts of one release. ``exact`` is False when they are those of the nearest known release,
    and ``note`` then says so."""

    release: Release | None  # as asked for
    known: Release  # whose facts these are
    exact: bool
    note: str | None
    fields: Mapping[str, Any]  # ServerArgs field -> declared default (None where required)
    env: Mapping[str, EnvSpec]
    pins: Mapping[str, str]  # distribution (canonical name) -> version specifier
    reads_sgl_prefix: bool  # SGL_X is read as SGLANG_X

    def env_default(self, name: str) -> Any:
        """The value in force when the variable is unset; None when the release does not read it."""
        spec = self.env.get(name)
        return spec.default if spec else None


@lru_cache(maxsize=16)
def _known(folder: Path) -> tuple[Release, ...]:
    return tuple(release_order(text) for text in read_table(folder / "flags.json")["releases"])


def known_releases() -> tuple[Release, ...]:
    """Every release in the knowledge, oldest first. Raises UserError when the data is missing."""
    return _known(releases_folder())


def newest_release() -> Release:
    return known_releases()[-1]


def nearest_release(release: Release | None) -> tuple[Release, str | None]:
    """The known release whose facts serve best for ``release``, and a sentence when it is not the same.

    A development version (``0.5.14.dev3``) is taken for the release before the one it leads to, except
    where it is past the newest known; an unknown one for the newest known release below it.
    """
    releases = known_releases()
    if release is None:
        return releases[-1], f"the SGLang release is not known; {releases[-1]} is assumed"
    if release in releases:
        return release, None
    below = [r for r in releases if r <= release]
    if not below:
        return releases[0], f"SGLang {release} is older than what is known; {releases[0]} is taken instead"
    near = below[-1]
    newer = " newer than what is known" if near == releases[-1] else " not among the known releases"
    kind = " is a development version" if release.is_devrelease else " is" + newer
    return near, f"SGLang {release}{kind}; the facts of {near} are taken instead"


def spans_at(data: Mapping[str, Any], title: str, release: Release) -> dict[str, Any]:
    """Values of the span table ``title`` of a table file (see ``store``) in force in a known release."""
    holds = at_release(data["releases"], release)
    out = {}
    for name, spans in data[title].items():
        for first, last, value in spans:
            if holds(first, last):
                out[name] = value
                break
    return out


@lru_cache(maxsize=128)  # every release
def _facts(folder: Path, known: Release) -> tuple[dict[str, Any], dict[str, EnvSpec], dict[str, str], bool]:
    fields = spans_at(read_table(folder / "flags.json"), "fields", known)
    env = read_table(folder / "env.json")
    pins = spans_at(read_table(folder / "pins.json"), "pins", known)
    variables = {}
    for name, value in spans_at(env, "env", known).items():
        variables[name] = EnvSpec(
            name,
            value.get("type", "str"),
            value.get("default"),
            value.get("deprecated", False),
            value.get("replacement"),
            tuple((first, last) for first, last, _ in env["env"][name]),
        )
    plain = {k: None if v == {"required": True} else v for k, v in fields.items()}
    holds = at_release(env["releases"], known)
    prefix = any(value for first, last, value in env["sgl_prefix"] if holds(first, last))
    return plain, variables, pins, prefix


def known_variable(name: str) -> bool:
    """Whether any known release has an environment variable of this name."""
    return name in read_table(releases_folder() / "env.json")["env"]


def release_facts(release: Release | None) -> ReleaseFacts:
    """Facts of a release, or of the nearest known one, saying so. Raises UserError when data is missing."""
    folder = releases_folder()
    known, note = nearest_release(release)
    if note is not None and release is not None:
        learned = _learned_folder(release)
        if learned is not None:
            folder, known = learned, release
            note = f"SGLang {release} is not among the known releases; learned from the installation"
    fields, env, pins, prefix = _facts(folder, known)
    return ReleaseFacts(release, known, release == known, note, fields, env, pins, prefix)


def facts_folder(release: Release | None) -> tuple[Path, Release, str | None]:
    """Where the tables for ``release`` lie, which release in them serves, and a note when it is another."""
    known, note = nearest_release(release)
    if note is not None and release is not None and (learned := _learned_folder(release)) is not None:
        return learned, release, f"SGLang {release}: learned from the installation"
    return releases_folder(), known, note


def _learned_folder(release: Release) -> Path | None:
    """Tables that ``learn_installed`` left in the user's cache for this release, newest first."""
    from mtpdoctor.paths import cache_folder

    base = cache_folder() / "releases"
    found = sorted(base.glob(f"{release}-*/flags.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    return found[0].parent if found else None
