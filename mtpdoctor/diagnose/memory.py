"""Where the memory sum enters the diagnosis: only for rules that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpdoctor.facts import UNKNOWN, Facts, Source
from mtpdoctor.kb.types import Rule
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.memory.types import MemorySum

PREFIX = "memory."
# What a log says of loading holds only for the weights as they were split and stored then.
_OF_LOADING = ("log.avail_mem_after_load_gib", "log.weights_gib", "log.draft_weights_gib")
# What SGLang works out of the GPU's size: a log tells it where nobody tells the size.
_OF_GPU = ("chunked_prefill_size", "cuda_graph_max_bs")
_SPLITS = ("tp_size", "pp_size", "dp_size", "ep_size", "quantization", "enable_dp_attention", "model_path")


def asks_memory(rule: Rule) -> bool:
    """Does a condition or a text of the rule speak of ``memory.*``?"""
    return (
        (rule.predicts is not None and rule.predicts.mentions(PREFIX))
        or PREFIX in rule.cause
        or any(
            remedy.when.mentions(PREFIX) or any(PREFIX in (edit.value or "") for edit in remedy.edits)
            for remedy in rule.remedies
        )
    )


def with_model_here(case: Case) -> Case:
    """The case with the model that its command names, where this machine has it and the log does not say
    that it was another."""
    path = case.facts.look("arg.model_path")
    if case.model is not None or not isinstance(path, str):
        return case
    from mtpdoctor.errors import UserError
    from mtpdoctor.model.config import read_model
    from mtpdoctor.model.locate import local_model

    folder = local_model(path)
    if folder is None:
        return case
    try:
        model = read_model(folder)
    except UserError:
        return case
    named = case.facts.look("model.architecture")
    return replace(case, model=model) if named in (UNKNOWN, None, model.architecture) else case


def sum_of(case: Case, facts: Facts, *, failed: bool = False) -> MemorySum | None:
    """The sum over ``facts`` (arguments in force). None where nothing of it is known."""
    from mtpdoctor.memory.summing import memory_sum

    found = memory_sum(replace(case, facts=facts), case.model, failed=failed)
    return found if found.terms and found.free_gib is not None else None


def with_memory(case: Case, facts: Facts, *, failed: bool = False) -> Facts:
    from mtpdoctor.memory.facts import memory_facts

    return facts.merged(memory_facts(sum_of(case, facts, failed=failed)))


def before_launch(new: Facts, old: Facts) -> Facts:
    """The facts of a launch that has not happened under its command: of the log only what free memory it
    found, and the weights where they are split and stored as they were under the old command."""
    same = same_weights(old, new)
    kept = {
        name: fact
        for name in new
        if (fact := new.fact(name)) and (not name.startswith("log.") or _holds(name, same))
    }
    for name in _OF_GPU:
        fact = old.fact(f"arg.{name}")
        untouched = old.look(f"flag.{name}") == new.look(f"flag.{name}")
        if fact is not None and fact.source is Source.LOG and untouched and fact.value is not None:
            kept[fact.name] = fact
    return Facts(kept, new.contradictions, new.closed)


def _holds(name: str, same: bool) -> bool:
    return name == "log.avail_mem_before_load_gib" or (same and name in _OF_LOADING)


def same_weights(old: Facts, new: Facts) -> bool:
    """Would the weights of a rank be those of the launch that the log shows?"""

    def of(facts: Facts, name: str) -> Any:
        value = facts.look(f"flag.{name}")
        return None if value is None else str(value)

    return all(of(old, name) == of(new, name) for name in _SPLITS)
