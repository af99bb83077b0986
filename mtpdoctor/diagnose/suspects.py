"""Options of the command that are worth leaving out where nothing tells which of them is at fault.

``knowledge/advice/suspects.json`` holds, for each option, how many labelled failed launches of the tests had it in their
command, and in how many of those it had to go or to change (``benchmarks/suspects.py``). An option that few launches
use is drawn towards what holds for all switches that turn a feature on. It is a guess by experience and says so: never
more than ``risky``, and only where no rule knows the failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.gated import SURROUNDINGS
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import EventKind
from mtpdoctor.paths import own_knowledge_folder
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.sglang.flags import FlagSpec

FILE = "advice/suspects.json"
MOST = 2
LEAST = 0.25  # share from which on an option is worth a launch without it
WEIGHT = 2  # launches that the share of its family is worth
# Features, by their destination: other options say what to serve, where, or how much; without them it is another server.
_FEATURE = (
    "enable_",
    "speculative_algorithm",
    "moe_a2a_backend",
    "cpu_offload_gb",
    "hicache_storage_backend",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """``at_fault`` of ``asked`` labelled failed launches with the option in their command."""

    at_fault: int
    asked: int


_NEVER = Seen(0, 0)


def with_suspects(fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """``fixes``, and behind them a launch without each of the likeliest options that none of them touches. Nothing
    where no code failed (a signal, a hang), or the system refused it something."""
    event, traceback = cause.failure.event, root_traceback(cause)
    if case.document is None or event is None or event.kind not in (EventKind.TRACEBACK, EventKind.NATIVE):
        return fixes
    if traceback is not None and traceback.type.rsplit(".", 1)[-1] in SURROUNDINGS:
        return fixes
    touched = {edit.name for fix in fixes for edit in fix.edits}
    table, known = flag_table(case.release), suspects()
    shares: dict[str, tuple[float, FlagSpec]] = {}
    for use in case.document.command.flags:
        spec = table.resolve(use.name)
        if spec is None or not use.dest.startswith(_FEATURE):
            continue
        if touched.isdisjoint({spec.name, use.name, *spec.aliases}):
            shares[use.dest] = (share_of(use.dest, known), spec)
    new: list[Fix] = []
    for dest, (share, spec) in sorted(shares.items(), key=lambda item: (-item[1][0], item[0]))[:MOST]:
        if share >= LEAST and (fix := fix_of(_without(spec, known.get(dest)), case, knowledge)) is not None:
            new.append(fix)
    return (*fixes, *new)


def share_of(dest: str, known: Mapping[str, Seen]) -> float:
    """How often such an option was at fault, where it was asked for."""
    seen = known.get(dest, _NEVER)
    return (seen.at_fault + WEIGHT * _prior()) / (seen.asked + WEIGHT)


@lru_cache(maxsize=1)
def _prior() -> float:
    """The share of all switches that turn a feature on."""
    family = [seen for name, seen in suspects().items() if name.startswith("enable_")]
    asked = sum(seen.asked for seen in family)
    return sum(seen.at_fault for seen in family) / asked if asked else 0.0


def _without(spec: FlagSpec, seen: Seen | None) -> Remedy:
    told = (
        f"it was at fault in {seen.at_fault} of {seen.asked} failed launches that asked for it"
        if seen is not None and seen.at_fault
        else "few launches ask for it, and features that are seldom used fail more often"
    )
    return Remedy(
        title=f"Try without {spec.name}",
        safety=Safety.RISKY,
        why=f"nothing in the log speaks for it, but {told}",
        edits=(EditTemplate("remove", spec.name),),
        risk="gives up what the option was for; a guess from experience",
    )


@lru_cache(maxsize=1)
def suspects() -> Mapping[str, Seen]:
    """Option -> how often at fault; empty where the file is missing or damaged: nothing is guessed then."""
    try:
        text = (own_knowledge_folder() / FILE).read_text(encoding="utf-8")
        return {str(dest): Seen(*counts) for dest, counts in json.loads(text)["options"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
