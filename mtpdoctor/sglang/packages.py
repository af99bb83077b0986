"""What is known of packages of other makers: what one installs for a module, where builds come from, what SGLang does
without them. The table is ``knowledge/releases/packages.json``, written by hand; its ``about`` says what each field means.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.store import read_table

TABLE = "packages.json"


@dataclass(frozen=True, slots=True)
class Missing:
    """What to do where a module is not there; ``run`` may hold ``{release}``, ``{kernel}`` and ``{pin:NAME}``."""

    title: str
    why: str
    run: tuple[str, ...]
    until: str | None  # the last release of SGLang for which it holds

    def holds(self, release: Release | None) -> bool:
        """For the release; where it is not known, too."""
        return self.until is None or release is None or release <= parse_release(self.until)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a package comes from that no release pins, and how to look at it."""

    source: str
    run: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How SGLang does without a package: one of the settings is not None.

    ``env`` (an empty value: unset), ``leave_out`` and ``choose`` (fields of ServerArgs), ``choose_if`` (only where the option
    was given). ``path``: a part of the file in which the failure has to be; ``elsewhere``: parts of files in which it has nothing
    to do with this way. ``since``: the first release in which it holds.
    """

    title: str
    risk: str
    env: tuple[str, str] | None = None
    leave_out: str | None = None
    choose: tuple[str, str] | None = None
    choose_if: tuple[str, str] | None = None
    path: str | None = None
    elsewhere: tuple[str, ...] = ()
    since: str | None = None


@dataclass(frozen=True, slots=True)
class Package:
    """One module; ``known`` is False for one that the table does not hold."""

    module: str
    distributions: tuple[str, ...]  # in the order in which a release's pins are asked; never empty
    known: bool = False
    only: tuple[str, ...] = ()  # the platforms that it is for; empty: all
    plugin: str | None = None
    missing: Missing | None = None
    origin: Origin | None = None
    ways: tuple[Way, ...] = ()

    @property
    def bringing(self) -> tuple[str, ...]:
        """The distributions in the order in which they are asked where the module is missing: the one of its name first."""
        own = [name for name in self.distributions if _plain(name) == _plain(self.module)]
        return (*own, *(name for name in self.distributions if name not in own))


def package_of(module: str) -> Package:
    """What is known of an import name ("PIL"); of any other name that it is its own distribution."""
    row = _rows().get(module)
    default = (module.replace("_", "-").lower(),)
    if row is None:
        return Package(module, default)
    missing, origin = row.get("missing"), row.get("origin")
    return Package(
        module,
        tuple(row.get("dist", default)),
        known=True,
        only=tuple(row.get("only", ())),
        plugin=row.get("plugin"),
        missing=Missing(missing["title"], missing["why"], tuple(missing["run"]), missing.get("until"))
        if missing
        else None,
        origin=Origin(origin["from"], tuple(origin["run"])) if origin else None,
        ways=tuple(_way(way) for way in row.get("ways", ())),
    )


def module_named(name: str) -> str | None:
    """The module that a text means by a name, however it is written ("Mooncake", "flash-attn", "pillow"); None for
    names that the table does not hold."""
    return _spellings().get(_plain(name))


def companions(distribution: str) -> tuple[str, ...]:
    """Distributions that have to be of one set with ``distribution``."""
    return tuple(read_table(releases_folder() / TABLE)["companions"].get(distribution, ()))


def moving() -> tuple[str, ...]:
    """Distributions with compiled code or an interface that changes with the release."""
    return tuple(read_table(releases_folder() / TABLE)["moving"])


def _rows() -> Mapping[str, Any]:
    rows: Mapping[str, Any] = read_table(releases_folder() / TABLE)["modules"]
    return rows


@lru_cache(maxsize=1)
def _spellings() -> Mapping[str, str]:
    out: dict[str, str] = {}
    for module in _rows():
        for name in (module, *package_of(module).distributions):
            out.setdefault(_plain(name), module)
    return out


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _way(row: Mapping[str, Any]) -> Way:
    def pair(name: str) -> tuple[str, str] | None:
        return (row[name][0], row[name][1]) if name in row else None

    return Way(
        row["title"],
        row["risk"],
        pair("env"),
        row.get("remove"),
        pair("set"),
        pair("set_if"),
        row.get("path"),
        tuple(row.get("elsewhere", ())),
        row.get("since"),
    )
