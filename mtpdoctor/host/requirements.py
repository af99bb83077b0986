"""What the installed packages require of each other, held against what is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpdoctor.host.types import PythonEnvironment

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Unmet:
    """``have`` is None where the distribution is not installed. ``how``: older, newer, missing, other."""

    name: str
    specifier: str
    have: str | None
    how: str

    @property
    def said(self) -> str:
        wanted = self.specifier or "any version"
        return f"{self.name} {self.have or 'is missing'} ({wanted} is required)"

    @property
    def fix(self) -> str:
        return self.name + self.specifier


def unmet(wanted: Mapping[str, str], packages: Mapping[str, str]) -> Iterator[Unmet]:
    """The requirements that ``packages`` do not meet; what cannot be compared counts as met."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    for name, specifier in wanted.items():
        have = packages.get(name)
        if have is None:
            yield Unmet(name, specifier, None, "missing")
            continue
        try:
            allowed, version = SpecifierSet(specifier), Version(have)
        except (InvalidSpecifier, InvalidVersion):
            continue
        failing = next((s for s in allowed if not s.contains(version, prereleases=True)), None)
        if failing is not None:
            yield Unmet(name, specifier, have, _how(failing.operator, failing.version, version))


def _how(operator: str, bound: str, have: Version) -> str:
    from packaging.version import Version

    if operator in ("!=", "==="):
        return "other"
    return "older" if have < Version(bound.removesuffix(".*")) else "newer"


def requirement_facts(python: PythonEnvironment) -> dict[str, Any]:
    """Facts ``host.unmet.OWNER`` and the like, absent (None) where all is met, ``host.pin.NAME`` (what SGLang
    asks of a distribution), and ``host.python.fits``."""
    out: dict[str, Any] = {}
    for owner, wanted in python.requires.items():
        if owner not in python.packages:
            continue
        found = list(unmet(wanted, python.packages))
        there = [u for u in found if u.have is not None]
        for name, some in (
            ("unmet", there),
            ("older", [u for u in there if u.how == "older"]),
            ("newer", [u for u in there if u.how == "newer"]),
            ("missing", [u for u in found if u.have is None]),
        ):
            out[f"host.{name}.{owner}"] = [u.name for u in some] or None
        out[f"host.unmet_said.{owner}"] = [u.said for u in there] or None
        out[f"host.unmet_fix.{owner}"] = [u.fix for u in found] or None
    for name, specifier in python.requires.get("sglang", {}).items():
        out[f"host.pin.{name}"] = specifier or None
    fits = python_fits(python)
    return out | ({"host.python.fits": fits} if fits is not None else {})


def python_fits(python: PythonEnvironment) -> bool | None:
    """Whether the interpreter is one that the installed SGLang admits."""
    if not python.requires_python or not python.version:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(python.requires_python).contains(Version(python.version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return None
