"""A condition on a model's class where its config.json is not at hand: weighed by the model's public name."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.facts import Facts
from mtpdoctor.kb.conditions import evaluate, fact_names
from mtpdoctor.kb.types import Condition


def evaluate_by_name(
    condition: Condition, facts: Facts, captures: Mapping[str, str] | None = None
) -> bool | None:
    """As ``evaluate``; what is unknown for want of the model's class is decided by its name, where that is a known one."""
    if "model.architecture" in fact_names(condition):
        from mtpdoctor.model.names import with_named_class  # few conditions ask for it

        facts = with_named_class(facts)
    return evaluate(condition, facts, captures)
