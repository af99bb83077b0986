"""What goes into a bundle, and the bundle itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mtpdoctor.anonymise.tokens import Redaction
from mtpdoctor.diagnose.types import Report

FOLDER = "mtpdoctor-bundle"  # of the archive


@dataclass(frozen=True, slots=True)
class LogText:
    """One log as it goes in: its text without escape sequences, cut to a size, lines at their numbers."""

    name: str  # of the input
    text: str
    lines: int
    left_out: int = 0  # lines that are empty here because of the size limit


@dataclass(frozen=True, slots=True)
class Material:
    """All that is known, before any of it is redacted."""

    logs: tuple[LogText, ...] = ()
    command: str | None = None  # the launch command in its own form
    command_name: str = "command.sh"
    host: Mapping[str, Any] | None = None  # a ``probe --json`` document
    configs: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # name in the archive, config.json
    packages: tuple[tuple[str, str], ...] = ()
    seeds_hosts: tuple[str, ...] = ()
    seeds_users: tuple[str, ...] = ()
    report: Report | None = None  # the diagnosis of the logs as they are


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the archive."""

    name: str  # below FOLDER
    data: bytes
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files in order of their names, the manifest among them."""

    entries: tuple[Entry, ...]
    redactions: tuple[Redaction, ...]
    differences: tuple[str, ...]  # what the diagnosis of the redacted logs says differently; none: the same
    manifest: Mapping[str, Any]
