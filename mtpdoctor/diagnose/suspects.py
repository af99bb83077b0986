"""Options of the command that are worth leaving out where nothing tells which of them is at fault.

``knowledge/advice/suspects.json`` holds, for each option, how many labelled failed launches of the tests had it in their
command, and in how many of those it had to go or to change (``benchmarks/suspects.py``). An option that few launches
use is drawn towards what holds for all switches that turn a feature on. Options after which the failing code is named
(``namesakes``), and those that bear on the part that failed (``components``), go before these. All are guesses and say so: never more than ``risky``, and only where no rule knows the
failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.components import component_of, options_of
from mtpdoctor.diagnose.gated import SURROUNDINGS
from mtpdoctor.diagnose.namesakes import Namesake, namesakes
from mtpdoctor.diagnose.reached import NEAREST
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.unknown import is_own, root_traceback
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import Event, EventKind, Frame
from mtpdoctor.paths import own_knowledge_folder
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.launch.types import FlagUse
    from mtpdoctor.sglang.flags import FlagSpec

FILE = "advice/suspects.json"
MOST = 2
LEAST = 0.25  # share from which on an option is worth a launch without it
# Right in fewer launches than any guess.
_IDLE = ("Look whether it is known", "Try SGLang's development image")
_LOSES = "gives up what the option was for"
WEIGHT = 2  # launches that the share of its family is worth
# Features, by their destination: other options say what to serve, where, or how much; without them it is another server.
_FEATURE = (
    "enable_",
    "speculative_algorithm",
    "moe_a2a_backend",
    "cpu_offload_gb",
    "hicache_storage_backend",
)
# Whatever code is named after them: what is served, to whom, on what; and what a checkpoint needs to be read.
_KEPT_WORDS = (
    "chat_template device disaggregation_mode dist_init_addr host hf_chat_template_name log_level "
    "lora_paths model_impl nnodes node_rank port pp_size quantization reasoning_parser revision "
    "served_model_name tool_call_parser tp_size trust_remote_code "
)
KEPT = frozenset(_KEPT_WORDS.split())


@dataclass(frozen=True, slots=True)
class Seen:
    """``at_fault`` of ``asked`` labelled failed launches with the option in their command."""

    at_fault: int
    asked: int


_NEVER = Seen(0, 0)


def with_suspects(
    fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge, frames: Sequence[Frame] = ()
) -> tuple[Fix, ...]:
    """``fixes``, and behind them a launch without each of the likeliest options that none of them touches. Nothing
    where no code failed or stood still (a signal), or the system refused it something. ``frames``: of the code, where no
    traceback tells it."""
    event, traceback = cause.failure.event, root_traceback(cause)
    still = "atchdog timeout" in cause.root.body
    if case.document is None or not (still or _failed(event)):
        return fixes
    if traceback is not None and traceback.type.rsplit(".", 1)[-1] in SURROUNDINGS:
        return fixes
    open_ = untouched(fixes, case)
    specs = {use.dest: spec for use, spec in open_}
    frames = traceback.frames if traceback is not None else frames
    named = namesakes([use for use, _ in open_ if use.dest not in KEPT], frames)
    remedies = {name.use.dest: without_namesake(name, specs[name.use.dest]) for name in named}
    for dest, frame in _bearing(frames, specs):
        remedies.setdefault(dest, _of_part(specs[dest], frame))
    known = suspects()
    shares = {use.dest: share_of(use.dest, known) for use, _ in open_ if use.dest.startswith(_FEATURE)}
    for dest, share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if share >= LEAST:
            remedies.setdefault(dest, _without(specs[dest], known.get(dest)))
    made = (fix_of(remedy, case, knowledge) for remedy in list(remedies.values())[:MOST])
    idle = next((n for n, fix in enumerate(fixes) if fix.title.startswith(_IDLE)), len(fixes))
    return (*fixes[:idle], *(fix for fix in made if fix is not None), *fixes[idle:])


def untouched(fixes: Sequence[Fix], case: Case) -> list[tuple[FlagUse, FlagSpec]]:
    """Options of the command that the release has, that ask for more than its default, and that none of the fixes edits."""
    touched = {edit.name for fix in fixes for edit in fix.edits}
    table = flag_table(case.release)
    out = []
    for use in case.document.command.flags if case.document is not None else ():
        spec = table.resolve(use.name)
        if spec is None or use.values == (str(spec.default),) or use.values == ("auto",):
            continue
        if touched.isdisjoint({spec.name, use.name, *spec.aliases}):
            out.append((use, spec))
    return out


def _bearing(frames: Sequence[Frame], specs: Mapping[str, FlagSpec]) -> Iterator[tuple[str, Frame]]:
    """Options of the command that bear on the part of SGLang that failed, with its frame."""
    own = [frame for frame in reversed(frames) if is_own(frame.path)][:NEAREST]
    for dest in options_of(own):
        if dest in specs and dest not in KEPT:
            yield dest, own[0]


def _failed(event: Event | None) -> bool:
    return event is not None and event.kind in (EventKind.TRACEBACK, EventKind.NATIVE)


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
    risk = f"{_LOSES}; a guess from experience"
    return _try_without(spec, f"nothing in the log speaks for it, but {told}", risk)


def without_namesake(name: Namesake, spec: FlagSpec) -> Remedy:
    frame = name.frame
    file = "/".join(frame.path.rsplit("/", 3)[1:]) or frame.path
    why = f"what failed ({frame.function}, {file}) bears its name; that the option leads there is not read off the source"
    return _try_without(spec, why, _LOSES)


def _of_part(spec: FlagSpec, frame: Frame) -> Remedy:
    why = f"it bears on the part that failed ({component_of(frame)}); nothing else in the log speaks for it"
    return _try_without(spec, why, f"{_LOSES}; a guess")


def _try_without(spec: FlagSpec, why: str, risk: str) -> Remedy:
    return Remedy(
        title=f"Try without {spec.name}",
        safety=Safety.RISKY,
        why=why,
        edits=(EditTemplate("remove", spec.name),),
        risk=risk,
    )


@lru_cache(maxsize=1)
def suspects() -> Mapping[str, Seen]:
    """Option -> how often at fault; empty where the file is missing or damaged: nothing is guessed then."""
    try:
        text = (own_knowledge_folder() / FILE).read_text(encoding="utf-8")
        return {str(dest): Seen(*counts) for dest, counts in json.loads(text)["options"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
