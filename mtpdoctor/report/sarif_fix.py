"""A fix of a launch file as SARIF replacements: only the characters that change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Any

_PIECES = re.compile(r"\s+|[^\s]+")


def replacements(before: str, after: str, is_public: Callable[[str], bool]) -> list[dict[str, Any]] | None:
    """What turns ``before`` into ``after``, in order; columns count characters from 1, the end exclusive.

    None where something inserted may not be shown (``is_public``): a masked one would damage the file.
    """
    starts = _line_starts(before)
    out: list[dict[str, Any]] = []
    for a, b, inserted in _changes(before, after):
        if inserted and not is_public(inserted):
            return None
        (line_a, column_a), (line_b, column_b) = _position(starts, a), _position(starts, b)
        region = {"startLine": line_a, "startColumn": column_a, "endLine": line_b, "endColumn": column_b}
        one: dict[str, Any] = {"deletedRegion": region}
        if inserted:
            one["insertedContent"] = {"text": inserted}
        out.append(one)
    return out


def _changes(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, text in its place), by lines first, then by words within the lines that differ."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    at = _offsets(old)
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        was, now = _PIECES.findall("".join(old[i1:i2])), _PIECES.findall("".join(new[j1:j2]))
        inside = _offsets(was)
        for what, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
            if what != "equal":
                yield at[i1] + inside[a], at[i1] + inside[b], "".join(now[c:d])


def _offsets(parts: list[str]) -> list[int]:
    out = [0]
    for part in parts:
        out.append(out[-1] + len(part))
    return out


def _line_starts(text: str) -> list[int]:
    """Lines as SARIF counts them: CR LF, LF (section 3.46.3's default newline sequences)."""
    return [0, *(m.end() for m in re.finditer(r"\n", text))]


def _position(starts: list[int], offset: int) -> tuple[int, int]:
    from bisect import bisect_right

    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
