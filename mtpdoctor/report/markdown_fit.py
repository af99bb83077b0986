"""Keeping Markdown below what an issue holds."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 60_000  # characters; GitHub takes 65,536 in an issue or comment


def fit(needed: Sequence[str], wanted: Sequence[str], end: str, most: int) -> str:
    """The blocks with blank lines between them, at most ``most`` characters, with a final line feed.

    ``wanted`` blocks stay in their order; one that does not fit is left out whole. Should the ``needed``
    ones alone not fit, the last of those give way.
    """
    room = most - len(end) - 200  # the remark on what is left out
    kept: list[str] = []
    left_out = 0
    for block in (*needed, *wanted):
        size = len(block) + 2
        if size <= room:
            kept.append(block)
            room -= size
        else:
            left_out += 1
    if left_out:
        parts = "1 part is" if left_out == 1 else f"{left_out} parts are"
        kept.append(f"*{parts} left out here: an issue holds no more. The HTML report shows everything.*")
    return "\n\n".join((*kept, end)) + "\n"
