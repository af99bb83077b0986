"""Untrusted text in GitHub's Markdown: never mark-up, mention, reference, link or HTML.

Backslashes do not stop ``@name`` and ``#12``, which are looked for after Markdown is read; code spans do. So
every word that is more than letters, digits and plain punctuation becomes one, which flags and paths want
anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtpdoctor.patterns import lazy

_TOKEN = lazy(r"^([(\"']*)(.*?)([)\"'.,;:!?]*)$", re.DOTALL)
# Letters and digits of any script (no underscore), with plain punctuation inside.
_PLAIN = lazy(r"[^\W_](?:[^\W_]|['’.,/%°×+\-](?![.,/+\-]))*|[–—×≥≤%/&+]|-")
# What forges turn into links by themselves: commits, tickets, web addresses.
_LINKED = lazy(r"(?=[^\W_]*\d)[0-9a-f]{7,40}|[A-Z][A-Z0-9]*-\d+|www\..*", re.IGNORECASE)
_LIST_MARK = lazy(r"[-+]|\d+[.)]+")
_RUNS = lazy(r"`+")


def prose(text: str) -> str:
    """``text`` as one paragraph of Markdown that renders as the same words."""
    words = text.split()
    return " ".join(_word(word, first=not i) for i, word in enumerate(words))


def _word(word: str, *, first: bool) -> str:
    match = _TOKEN.match(word)
    assert match is not None  # every string fits
    before, core, after = match.groups()
    if not core:
        return code(word)
    plain = _PLAIN.fullmatch(core) and not _LINKED.fullmatch(core)
    if plain and not (first and _LIST_MARK.fullmatch(word)):
        return word
    return before + code(core) + after


def code(text: str) -> str:
    """A code span; line feeds and tabs become spaces. Empty text gives nothing."""
    text = " ".join(text.split())
    if not text:
        return ""
    ticks = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def cell(text: str) -> str:
    """For a table's cell, where a bar would end it, inside code spans too."""
    return text.replace("|", "\\|")


def fenced(text: str, language: str = "text") -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    ticks = "`" * max(3, _longest(text) + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def folded(summary: str, blocks: Iterable[str]) -> str:
    """Collapsed. ``summary`` is plain text of our own, for Markdown is not read there; the blocks need blank
    lines between them and the HTML."""
    from html import escape

    inside = "\n\n".join(blocks)
    return f"<details>\n<summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>"


def _longest(text: str) -> int:
    return max((len(run) for run in _RUNS.findall(text)), default=0)
