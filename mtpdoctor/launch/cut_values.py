"""A value in braces or brackets that the shell has cut at its blanks: its first word is the option's value, the rest belongs to no option."""

from __future__ import annotations

from collections.abc import Sequence


def words_behind(value: str, words: Sequence[str]) -> int:
    """How many of the ``words`` behind an option's value close what the value opens; 0 where they do not, or it is whole."""
    if value[:1] not in ("{", "["):
        return 0
    depth = _depth(value)
    for count, word in enumerate(words, 1):
        if depth <= 0 or word.startswith("--"):
            return 0
        depth += _depth(word)
        if depth == 0:
            return count
    return 0


def _depth(text: str) -> int:
    return sum((sign in "{[") - (sign in "}]") for sign in text)
