"""The ``diff --json`` document. Its schema is diff.schema.json, its description docs/diff.md."""

from __future__ import annotations

from typing import Any

from mtpdoctor.compare.types import Comparison, Difference, Side
from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line, safe

SCHEMA = 1


def diff_to_json(found: Comparison) -> dict[str, Any]:
    """Plain JSON values, every text safe and with its secrets masked."""
    return {
        "schema": SCHEMA,
        "matters": found.matters,
        "good": _side(found.good),
        "bad": _side(found.bad),
        "differences": [_difference(d) for d in found.differences],
        "stages": [
            {
                "stage": s.stage,
                "good_s": s.good,
                "bad_s": s.bad,
                "good_reached": s.good_reached,
                "bad_reached": s.bad_reached,
            }
            for s in found.stages
        ],
        "notes": [_text(n) for n in found.notes],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "file": _text(side.name),
        "outcome": side.outcome,
        "stage": side.stage,
        "sglang_version": side.release,
        "rule": side.rule,
        "title": _text(side.title) if side.title is not None else None,
        "root": {"line": side.root[0], "text": _text(side.root[1])} if side.root is not None else None,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "area": difference.area,
        "name": _text(difference.name),
        "kind": difference.kind,
        "good": plain(difference.name, difference.good),
        "bad": plain(difference.name, difference.bad),
        "weight": difference.weight,
        "matters": difference.matters,
        "why": difference.why,
        "note": difference.note,
        "good_where": one_line(difference.where[0]) or None,
        "bad_where": one_line(difference.where[1]) or None,
    }


def _text(text: str) -> str:
    return mask_secrets(safe(text))


def plain(name: str, value: Any) -> Any:
    """A value of an option, a variable or a fact as JSON has it; masked where its name is a secret's."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(name, v) for v in value]
    joint = " " if name.startswith("-") else "="
    prefix = f"{name}{joint}"
    masked = _text(prefix + str(value))
    return masked.removeprefix(prefix) if masked.startswith(prefix) else _text(str(value))
