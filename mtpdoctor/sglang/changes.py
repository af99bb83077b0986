"""What changed inside SGLang's functions from release to release, by the names that it concerns.

``changes.json.gz`` is written by ``learn_changes``. Of each function whose syntax changed: the lines that stayed and run under other
conditions since then, and the names that are set, given, or asked for otherwise; both by a digest of 18 bits, with the last release
that had it as before. Of attributes that few functions set: which of those functions changed how they set it.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.history import known_file
from mtpdoctor.sglang.lines import ENTRY, digest_of
from mtpdoctor.sglang.packed import Packed, open_packed

CHANGES_FILE = "changes.json.gz"
FIRST = 48  # digits of digests and releases are characters from here on
ATTRIBUTES = 8  # members that hold the attributes


@dataclass(frozen=True, slots=True)
class Changed:
    """``function`` of ``file`` is another from ``release`` on in what is asked about."""

    file: str
    function: str
    release: Release


def guarded_from(folder: Path, path: str, function: str, line: str, release: Release) -> tuple[Release, ...]:
    """The later releases from which on the line, which stayed, runs under other conditions. ``path`` may be a frame's whole path."""
    table = open_packed(folder / CHANGES_FILE)
    return _later(table, _entries(table, path, function)[0], digest_of(line), release)


def concerns(folder: Path, path: str, function: str, name: str, release: Release) -> tuple[Release, ...]:
    """The later releases in which ``function`` sets, gives or asks for ``name`` otherwise than the one before."""
    table = open_packed(folder / CHANGES_FILE)
    return _later(table, _entries(table, path, function)[1], digest_of(name), release)


def setters_changed(folder: Path, attribute: str, release: Release) -> tuple[Changed, ...]:
    """The functions that set the attribute otherwise in a later release, the earliest change first."""
    table = open_packed(folder / CHANGES_FILE)
    releases = _releases(table)
    if release not in releases:
        return ()
    text = table.text(member_of(attribute))
    start = text.find(f"\n{attribute} ")
    if start < 0:
        return ()
    words = text[start + 1 : text.find("\n", start + 1)].split(" ")[1:]
    at = releases.index(release)
    out = []
    for word in words:
        file, function, changes = word.split(",")
        out += [
            Changed(f"sglang/{file}", function, releases[ord(c) - FIRST + 1])
            for c in changes
            if ord(c) - FIRST >= at
        ]
    return tuple(sorted(out, key=lambda c: c.release))


def member_of(attribute: str) -> str:
    return f"a{crc32(attribute.encode()) % ATTRIBUTES}"


def _releases(table: Packed) -> list[Release]:
    return [parse_release(r) for r in table.head.get("releases", ())]


def _entries(table: Packed, path: str, function: str) -> tuple[str, str]:
    file = known_file(path, table)
    if file is None:
        return "", ""
    text = table.text(table.groups[file])
    start = text.find(f"\n#{file}\n")
    end = text.find("\n#", start + 1)
    at = text.find(f"\n{function} ", start, end if end >= 0 else len(text))
    if start < 0 or at < 0:
        return "", ""
    _, lines, names = (text[at + 1 : text.find("\n", at + 1)] + "  ").split(" ")[:3]
    return lines, names


def _later(table: Packed, entries: str, digest: str, release: Release) -> tuple[Release, ...]:
    releases = _releases(table)
    if release not in releases:
        return ()
    at = releases.index(release)
    found = {
        ord(entries[n + ENTRY - 1]) - FIRST
        for n in range(0, len(entries), ENTRY)
        if entries[n : n + ENTRY - 1] == digest
    }
    return tuple(releases[n + 1] for n in sorted(found) if n >= at)
