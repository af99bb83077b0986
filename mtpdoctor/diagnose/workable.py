"""Can an option's value work at all on this GPU and with this model? Every edit of every fix is asked.

A rule cannot know all GPUs that its fix will be offered on; the table in ``knowledge/releases/backends.json`` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.by_name import evaluate_by_name
from mtpdoctor.kb.condition_source import parse_condition
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.backends import kind_facts, rows_for
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

if TYPE_CHECKING:
    from mtpdoctor.kb.types import Condition
    from mtpdoctor.release import Release


def impossible(edits: Iterable[Edit], facts: Facts, release: Release | None) -> str | None:
    """Why one of the edits sets what cannot work here; None when nothing known speaks against them."""
    with_kinds: Facts | None = None
    for edit in edits:
        if edit.op is not EditOp.SET or not edit.value:
            continue
        spec = flag_table(release).resolve(edit.name) or flag_table(None).resolve(edit.name)
        if spec is None:
            continue
        if _is_out_of_range(spec.dest, edit.value):
            return f"{edit.name} {edit.value}: no release takes such a number"
        for field in same_option(spec.dest):
            for written, why in rows_for(field, edit.value, release):
                if with_kinds is None:
                    with_kinds = facts.merged(kind_facts(facts))
                if evaluate_by_name(_condition(repr(written), written), with_kinds) is True:
                    return f"{edit.name} {edit.value}: {why}"
    return None


# Options that count what there is at least one of, and those that are a part of something.
_COUNTS = frozenset(
    ("tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "page_size", "moe_dp_size", "attn_cp_size")
)
_PARTS = frozenset(("mem_fraction_static",))
_NUMBER = lazy(r"(-?\d+)(\.\d+)?")
_DIGITS = 12


def _is_out_of_range(field: str, value: str) -> bool:
    """A number that a message made up of something else than a setting of this option."""
    found = _NUMBER.fullmatch(value)
    if found is None:
        return False
    if len(found[1]) > _DIGITS:
        return True
    if field in _COUNTS:
        return float(value) < 1
    return field in _PARTS and not 0 < float(value) <= 1


def unsure(edits: Iterable[Edit], facts: Facts, release: Release | None) -> str | None:
    """What would have to be known of the GPU to be sure of the edits; None when nothing would."""
    if facts.look("host.gpu.sm") is not UNKNOWN:
        return None
    for edit in edits:
        if edit.op is not EditOp.SET or not edit.value:
            continue
        spec = flag_table(release).resolve(edit.name) or flag_table(None).resolve(edit.name)
        if spec is None:
            continue
        for written, why in rows_for(spec.dest, edit.value, release):
            condition = _condition(repr(written), written)
            if "host.gpu.sm" in _facts_of(condition) and evaluate(condition, facts) is None:
                return why
    return None


def can_work(field: str, value: str, facts: Facts, release: Release | None) -> bool:
    """Does nothing known speak against the value of the option?"""
    merged = facts.merged(kind_facts(facts))
    return not any(
        evaluate(_condition(repr(written), written), merged) is True
        for dest in same_option(field)
        for written, _ in rows_for(dest, value, release)
    )


_parsed: dict[str, Condition] = {}


def _condition(key: str, written: object) -> Condition:
    condition = _parsed.get(key)
    if condition is None:
        condition = _parsed[key] = parse_condition(written)
    return condition


@lru_cache(maxsize=256)
def _facts_of(condition: Condition) -> frozenset[str]:
    from mtpdoctor.kb.conditions import fact_names

    return frozenset(fact_names(condition))
