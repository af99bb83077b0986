"""The events of a watched launch, and how it went in all, as JSON (docs/run.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from mtpdoctor.diagnose.types import Report
from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import safe
from mtpdoctor.watch.types import AttemptRecord, Ended, Generated, WatchEvent

SCHEMA = 1


def event_to_json(event: WatchEvent) -> dict[str, Any]:
    """``{"event": "stage_reached", ...}``: the fields of the event; a report as ``diagnose --json`` has it."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return {"event": name, **_plain(event)}


def run_to_json(
    ended: Ended,
    generated: Generated | None,
    history: Sequence[AttemptRecord],
    log: str,
    exit_code: int,
) -> dict[str, Any]:
    """The whole run: how it ended, what it generated, every attempt, and the last one's diagnosis."""
    last = _plain(ended)
    return {
        "schema": SCHEMA,
        "how": last["how"],
        "exit_code": exit_code,
        "code": ended.code,
        "stage": ended.stage.value,
        "seconds": round(ended.at, 2),
        "log": safe(log),
        "generated": _plain(generated) if generated is not None else None,
        "left_over": list(ended.left_over),
        "attempts": [_plain(record) for record in history],
        "diagnosis": last["report"],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Report):
        from mtpdoctor.report.json import to_json

        return to_json(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        return mask_secrets(safe(value))
    return round(value, 3) if isinstance(value, float) else value
