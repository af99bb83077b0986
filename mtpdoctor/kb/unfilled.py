"""Places of a drafted rule that a person has not written yet."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.kb.types import Rule

FILL_IN = "FILL IN"


def unfilled(rule: Rule) -> Iterator[str]:
    """One sentence for each place that still says ``FILL IN``."""
    places = {"title": rule.title, "cause": rule.cause, "misleading": rule.misleading or ""}
    places |= {f"here {number}": h.cause for number, h in enumerate(rule.here)}
    for number, remedy in enumerate(rule.remedies):
        places |= {
            f"remedy {number}: title": remedy.title,
            f"remedy {number}: why": remedy.why,
            f"remedy {number}: risk": remedy.risk or "",
        }
    for kind in ("bad", "ok"):
        for example in rule.examples.get(kind, ()):
            places[f"examples.{kind} (line {example['line']})"] = example["log"]
    for place, text in places.items():
        if text.lstrip().startswith(FILL_IN):
            yield f"{place}: still to be written ({' '.join(text.split())})"
