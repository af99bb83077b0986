"""A model's config.json that was pasted into a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mtpdoctor.log.shown import CONFIG_SIGN as SIGN
from mtpdoctor.log.types import Attempt, Line, LogReading

_MOST_LINES = 600
_ABOVE = 40  # lines over the sign in which the object begins
_OF_DRAFTS = ("Eagle", "NextN", "MTP", "Medusa", "DFlash", "Draft")


def config_shown(reading: LogReading, attempt: Attempt) -> tuple[dict[str, Any], Line] | None:
    """The one config.json of a model that can serve by itself, and its line; None where none or several differ."""
    found: list[tuple[dict[str, Any], Line]] = []
    for line in reading.hits.lines(SIGN)[:8]:
        if attempt.holds(line) and (one := _object_around(reading, line)) is not None:
            names = one.get("architectures")
            if isinstance(names, list) and names and not any(word in str(names[0]) for word in _OF_DRAFTS):
                found.append((one, line))
    if not found or any(other != found[0][0] for other, _ in found[1:]):
        return None
    return found[0]


def _object_around(reading: LogReading, line: Line) -> dict[str, Any] | None:
    """The JSON object that begins on or above ``line`` and is whole."""
    lines = reading.hits.window(line.file, line.number - _ABOVE, line.number + _MOST_LINES)
    texts = [one.text for one in lines if one.stream == line.stream]
    at = next((i for i, one in enumerate(lines) if one.key == line.key), 0)
    decoder = json.JSONDecoder()
    for begin in _beginnings([one.text for one in lines], at):
        try:
            one, _ = decoder.raw_decode("\n".join((begin[1], *texts[begin[0] + 1 :])))
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict) and "architectures" in one:
            return one
    return None


def _beginnings(texts: list[str], at: int) -> Iterator[tuple[int, str]]:
    """Lines from the sign upwards on which an object may begin, and their text from its brace on; few are tried."""
    tried = 0
    for i in range(at, -1, -1):
        brace = texts[i].find("{")
        if brace >= 0 and (i < at or brace < texts[i].find(SIGN)):
            yield i, texts[i][brace:]
            tried += 1
            if tried == 4:
                return
