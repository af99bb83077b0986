"""``stop`` of ``diagnose --json``: a log that just stops. Described in docs/json.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtpdoctor.diagnose.types import Late, Stop, StopCause
from mtpdoctor.log.types import Line
from mtpdoctor.report.clean import Cleaner

Shown = Callable[[Line], dict[str, Any]]


def stop_to_json(stop: Stop, clean: Cleaner, shown: Shown) -> dict[str, Any]:
    """Plain JSON values; ``shown`` gives a line as the rest of the document does."""

    def ranked(line: Line | None) -> dict[str, Any] | None:
        if line is None:
            return None
        return shown(line) | {"rank": clean.maybe(line.rank), "time": clean.maybe(line.time)}

    return {
        "stage": stop.stage,
        "last": ranked(stop.last),
        "progress": clean.maybe(stop.progress),
        "entered": ranked(stop.entered),
        "before": stop.before,
        "before_s": stop.before_s,
        "stage_s": stop.stage_s,
        "quiet_s": stop.quiet_s,
        "quiet_why": clean.text(stop.quiet_why),
        "silent_s": stop.silent_s,
        "silent_until": ranked(stop.silent_until),
        "overdue": stop.overdue,
        "late": [_late(late, clean, ranked) for late in stop.late],
        "ranks": stop.ranks,
        "ended": ranked(stop.ended),
        "answers": ranked(stop.answers),
        "causes": [_cause(cause, clean, ranked) for cause in stop.causes],
    }


def _late(late: Late, clean: Cleaner, ranked: Callable[[Line | None], Any]) -> dict[str, Any]:
    return {"rank": clean.line(late.rank), "stage": late.stage, "last": ranked(late.last)}


def _cause(cause: StopCause, clean: Cleaner, ranked: Callable[[Line | None], Any]) -> dict[str, Any]:
    return {
        "id": cause.id,
        "title": clean.text(cause.title),
        "seen": [{"text": clean.line(clue.text), "line": ranked(clue.line)} for clue in cause.clues],
        "tell": clean.text(cause.tell),
        "do": clean.text(cause.do),
        "open": [clean.line(name) for name in cause.open],
        "references": [clean.line(url) for url in cause.references],
    }
