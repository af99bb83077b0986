"""The ``memory --json`` document, and ``memory`` in ``diagnose --json``. Schema: memory.schema.json."""

from __future__ import annotations

from typing import Any

from mtpdoctor.memory.types import MemorySum
from mtpdoctor.text import safe

SCHEMA = 1


def sum_to_json(found: MemorySum) -> dict[str, Any]:
    """Sizes in GiB of one GPU."""
    return {
        "rank": found.rank,
        "fits": found.fits,
        "trouble": found.trouble,
        "total_gib": _rounded(found.total_gib),
        "free_gib": _rounded(found.free_gib),
        "left_gib": _rounded(found.left_gib),
        "terms": [
            {
                "name": t.name,
                "gib": _rounded(t.gib),
                "printed_gib": _rounded(t.printed_gib),
                "how": safe(t.how),
            }
            for t in found.terms
        ],
        "counts": [
            {"name": c.name, "value": c.value, "printed": c.printed, "how": safe(c.how)} for c in found.counts
        ],
        "advice": [
            {
                "option": a.option,
                "direction": a.direction,
                "value": a.value,
                "why": safe(a.why),
                "loses": a.loses,
            }
            for a in found.advice
        ],
        "missing": list(found.missing),
        "notes": [safe(n) for n in found.notes],
        "numbers": dict(found.numbers),
    }


def memory_to_json(
    found: MemorySum, *, release: str | None, command: str, notes: tuple[str, ...] = ()
) -> dict[str, Any]:
    """``command`` with its secrets masked."""
    return {
        "schema": SCHEMA,
        "sglang_version": release,
        "command": command,
        **sum_to_json(found),
        "notes": [*(safe(n) for n in found.notes), *(safe(n) for n in notes)],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
