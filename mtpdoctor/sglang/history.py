"""In which releases a function of SGLang has which form: whether another release can behave differently there.

``history.json.gz`` is written by ``learn_history``. A form is the function's syntax without docstrings and comments. That
it differs says nothing of why: a change is not a fix.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.packed import Packed, open_packed

HISTORY_FILE = "history.json.gz"
FIRST = 48  # releases are written as characters from here on; "-" before one: no longer there from that release on

Forms = tuple[tuple[int, int], ...]  # first and last release (numbers) of each form, oldest first


@dataclass(frozen=True, slots=True)
class FunctionHistory:
    """``forms`` of one function; between two that do not touch it was not there. ``several``: the file has more than
    one function of that name, and the forms are of them together."""

    file: str  # "sglang/srt/..."
    function: str
    several: bool
    forms: Forms
    releases: tuple[Release, ...]

    def _number(self, release: Release) -> int | None:
        """The form that a release has; None where it has none, or is not known."""
        if release not in self.releases:
            return None
        at = self.releases.index(release)
        return next((n for n, (first, last) in enumerate(self.forms) if first <= at <= last), None)

    def since(self, release: Release) -> Release | None:
        """The release with which the form of ``release`` came; None without one."""
        number = self._number(release)
        return None if number is None else self.releases[self.forms[number][0]]

    def until(self, release: Release) -> Release | None:
        """The last release that has the form of ``release``."""
        number = self._number(release)
        return None if number is None else self.releases[self.forms[number][1]]

    def later(self, release: Release) -> tuple[Release, ...]:
        """The first release of each later form, oldest first."""
        number = self._number(release)
        return () if number is None else tuple(self.releases[first] for first, _ in self.forms[number + 1 :])

    def gone(self, release: Release) -> Release | None:
        """The first release after ``release`` without the function, if there is one and it did not come back."""
        if self._number(release) is None or self.forms[-1][1] == len(self.releases) - 1:
            return None
        return self.releases[self.forms[-1][1] + 1]

    def before(self, release: Release) -> Release | None:
        """The last release that had another form, right before the form of ``release`` came; None where the function
        is new with it, or nothing older is known."""
        number = self._number(release)
        if not number or self.forms[number - 1][1] != self.forms[number][0] - 1:
            return None
        return self.releases[self.forms[number - 1][1]]


def history_of(folder: Path, path: str, function: str) -> FunctionHistory | None:
    """The history of a traceback's frame; None where the table does not have it. ``path`` may be a frame's whole path."""
    table = open_packed(folder / HISTORY_FILE)
    file = known_file(path, table)
    if file is None:
        return None
    found = _file(table, table.groups[file], file).get(function)
    if found is None:
        return None
    several, forms = found
    return FunctionHistory(file, function, several, forms, tuple(map(parse_release, table.head["releases"])))


def files_with(folder: Path, function: str, release: Release) -> tuple[str, ...]:
    """The files of ``release`` that have a function of that name: where one that is gone may have moved to."""
    table = open_packed(folder / HISTORY_FILE)
    releases = [parse_release(r) for r in table.head.get("releases", ())]
    if release not in releases:
        return ()
    at, out = releases.index(release), []
    for file, group in table.groups.items():
        if f"\n{function}\n" not in table.text(group):
            continue
        found = _file(table, group, file).get(function)
        if found is not None and any(first <= at <= last for first, last in found[1]):
            out.append(file)
    return tuple(out)


def keyword_since(folder: Path, owner: str, keyword: str) -> tuple[tuple[Release, Release], ...] | None:
    """Ranges of releases in which ``owner`` (``ServerArgs.__init__``, ``Engine.generate``, as the TypeError writes it) takes
    ``keyword``: none at all where no release does. None where nothing is known of the owner."""
    table = open_packed(folder / HISTORY_FILE)
    if "signatures" not in table.head.get("members", ()):
        return None
    found = json.loads(table.text("signatures")).get(owner)
    if found is None:
        return None
    releases = [parse_release(r) for r in table.head["releases"]]
    return tuple((releases[a], releases[b]) for a, b in unwritten(found.get(keyword, ""), len(releases)))


def known_file(path: str, table: Packed) -> str | None:
    parts = path.replace("\\", "/").split("/")
    files = table.groups
    for start, part in enumerate(parts):
        candidate = "/".join(parts[start:])
        if part == "sglang" and candidate in files:
            return candidate
    return None


Named = dict[str, tuple[bool, Forms]]


def _file(table: Packed, group: str, file: str) -> Named:
    return _group(table.path, table.changed, group).get(file, {})


@lru_cache(maxsize=32)
def _group(path: Path, changed: int, group: str) -> dict[str, Named]:
    table = open_packed(path)
    return read_group(table.text(group), table.head["files"][group], len(table.head["releases"]))


def read_group(text: str, files: list[str], count: int) -> dict[str, Named]:
    """The files of one member. Names and histories stand apart, so they pack better; "#" begins a file, and what is
    written of it holds for the functions that have nothing written of them."""
    names, _, histories = text.partition("\x00")
    out: dict[str, Named] = {}
    left, here, whole = iter(files), {}, ""
    for name, written in zip(names.split("\n")[1:-1], histories.split("\n"), strict=True):
        if name == "#":
            here, whole = out.setdefault(next(left), {}), written
        else:
            here[name] = (written.startswith("*"), unwritten(written.removeprefix("*") or whole, count))
    return out


def unwritten(text: str, count: int) -> Forms:
    """``"0:-C"`` to spans of releases; ``count`` releases are known."""
    out: list[list[int]] = []
    gone = False
    for char in text:
        if char == "-":
            gone = True
            continue
        at = ord(char) - FIRST
        if out and out[-1][1] == count - 1:
            out[-1][1] = at - 1
        if not gone:
            out.append([at, count - 1])
        gone = False
    return tuple((a, b) for a, b in out)
