"""Known against new: an earlier triage's ``--json`` held against this one. Pure but for reading the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.triage.types import Fingerprint, Gone, Triage

MAX_SIZE = 2 << 30  # bytes


@dataclass(frozen=True, slots=True)
class Baseline:
    """What an earlier run saw: groups it had, and groups that were gone already then; by key."""

    there: Mapping[str, Gone]
    gone: Mapping[str, Gone]


def read_baseline(path: str) -> Baseline:
    """Raises UserError when the file is none that ``triage --json`` wrote."""
    wrong = UserError(
        f"{path} is no answer of triage", hint="write one with: mtpdoctor triage --json PATH..."
    )
    try:
        file = Path(path)
        if file.stat().st_size > MAX_SIZE:
            raise wrong
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(document, dict) or document.get("kind") != "triage" or document.get("schema") != 1:
        raise wrong
    try:
        return Baseline(
            {g["key"]: _gone(g) for g in document["groups"]},
            {g["key"]: _gone(g) for g in document.get("gone", [])},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise wrong from None


def _gone(group: Mapping[str, Any]) -> Gone:
    rule, last = group["rule"], group.get("last_seen")
    return Gone(
        Fingerprint(str(group["key"]), None if rule is None else str(rule), tuple(map(str, group["parts"]))),
        str(group["title"]),
        int(group["count"]),
        None if last is None else str(last),
    )


def against(triage: Triage, baseline: Baseline) -> Triage:
    """The triage with each group marked ``new``, ``known`` or ``back`` (it was gone in the baseline), and with what
    is gone now: groups of the baseline, and those gone in it already, that no launch of this run belongs to."""

    def status(key: str) -> str:
        if key in baseline.there:
            return "known"
        return "back" if key in baseline.gone else "new"

    here = {g.fingerprint.key for g in triage.groups}
    left = {k: g for k, g in (*baseline.gone.items(), *baseline.there.items()) if k not in here}
    groups = tuple(replace(g, status=status(g.fingerprint.key)) for g in triage.groups)
    gone = tuple(sorted(left.values(), key=lambda g: (-g.count, g.fingerprint.key)))
    return replace(triage, groups=groups, gone=gone)
