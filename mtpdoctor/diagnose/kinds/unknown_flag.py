"""What is known of options that a parser refused, for the cause: renamed, removed, of a later release, another engine's."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.generate import generated_remedies
from mtpdoctor.kb.types import Match

_OPEN = "It was renamed or removed, comes with a later release, belongs to another engine, or is misspelled."


def unknown_flag_said(match: Match, case: Case) -> str:
    """The reason of the first remedy, which speaks of every option; where there is none, what it may be."""
    why = next((r.why for r in generated_remedies("unknown-flag", match, case) if r.why), "")
    told = why and any(
        name in why for name in match.captures.get("arguments", "").split() if name[:2] == "--"
    )
    return f"{why[0].upper()}{why[1:].rstrip('.')}." if told else _OPEN
