"""Which lines of a function a later release of SGLang no longer has: whether the very line that failed still stands.

``lines.json.gz`` is written by ``learn_lines``: of each function, the lines that went while the function stayed and its
syntax changed, by a digest of 18 bits, with the last release that had them. A line that is not there stands in all later
releases that have the function, or the table does not know it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.packed import open_packed

LINES_FILE = "lines.json.gz"
FIRST = 48  # digits of digests and releases are characters from here on
ENTRY = 4  # characters of one line: three of its digest, one of the release


def digest_of(line: str) -> str:
    """Of a line of source, however far it is indented."""
    number = int.from_bytes(
        hashlib.blake2b(line.strip().encode("utf-8", "replace"), digest_size=3).digest(), "big"
    )
    return "".join(chr(FIRST + (number >> shift & 63)) for shift in (0, 6, 12))


def gone_from(folder: Path, file: str, function: str, line: str, release: Release) -> Release | None:
    """The first release after ``release`` in which ``function`` of ``file`` ("sglang/srt/...") has no such line; None where
    none is known."""
    table = open_packed(folder / LINES_FILE)
    releases = [parse_release(r) for r in table.head.get("releases", ())]
    group = table.groups.get(file)
    if group is None or release not in releases:
        return None
    last = lines_of(table.text(group), file, function).get(digest_of(line))
    if last is None or last < releases.index(release):
        return None
    return releases[last + 1]


def lines_of(text: str, file: str, function: str) -> dict[str, int]:
    """Digest -> number of the last release that has the line, of one function in the text of a member."""
    start = text.find(f"\n#{file}\n")
    if start < 0:
        return {}
    end = text.find("\n#", start + 1)
    at = text.find(f"\n{function} ", start, end if end >= 0 else len(text))
    if at < 0:
        return {}
    return unwritten(text[at + 1 : text.find("\n", at + 1)].partition(" ")[2])


def unwritten(entries: str) -> dict[str, int]:
    """What is written of one function: digest -> number of the last release that has the line."""
    return {
        entries[n : n + ENTRY - 1]: ord(entries[n + ENTRY - 1]) - FIRST for n in range(0, len(entries), ENTRY)
    }
