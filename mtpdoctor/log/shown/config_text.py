"""A model's config.json that was pasted into a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mtpdoctor.log.shown import CONFIG_SIGN as SIGN
from mtpdoctor.log.shown.elsewhere import Launched, elsewhere, launched
from mtpdoctor.log.types import Attempt, Line, LogReading

_MOST_LINES = 600
_ABOVE = 40  # lines over the sign in which the object begins
_KEYS_OF_DRAFTS = ("draft_vocab_size", "eagle_config", "dflash_config")
_LAYERS_OF_DRAFTS = 2  # EAGLE's have one
_OF_DRAFTS = ("Eagle", "NextN", "MTP", "Medusa", "DFlash", "Draft")


def config_shown(reading: LogReading, attempt: Attempt) -> tuple[dict[str, Any], Line] | None:
    """The one config.json of a model that can serve by itself, and its line; None where none or several differ."""
    values = {one.name: one.value for one in attempt.observations}
    launch = launched(
        attempt.command_text, values.get("arg.model_path"), values.get("arg.speculative_draft_model_path")
    )
    found: list[tuple[dict[str, Any], Line]] = []
    for line in reading.hits.lines(SIGN)[:8]:
        if attempt.holds(line) and (one := _object_around(reading, line, launch)) is not None:
            names = one.get("architectures")
            if isinstance(names, list) and names and not _is_drafts(one, str(names[0]), launch):
                found.append((one, line))
    if not found or any(other != found[0][0] for other, _ in found[1:]):
        return None
    return found[0]


def _is_drafts(one: dict[str, Any], name: str, launch: Launched) -> bool:
    if any(word in name for word in _OF_DRAFTS) or any(key in one for key in _KEYS_OF_DRAFTS):
        return True
    layers = one.get("num_hidden_layers")
    return bool(launch.draft) and isinstance(layers, int) and layers <= _LAYERS_OF_DRAFTS


def _object_around(reading: LogReading, line: Line, launch: Launched) -> dict[str, Any] | None:
    """The JSON object that begins on or above ``line`` and is whole."""
    lines = reading.hits.window(line.file, line.number - _ABOVE, line.number + _MOST_LINES)
    if line.key in elsewhere(lines, launch):
        return None
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
