"""A share of a GPU that is not this server's alone: beside a trainer or another process no number for it is surely right. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.kb.types import Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.facts import Facts
    from mtpdoctor.log.types import Attempt

_ALONE = 0.85  # of an idle GPU: less than that free before the weights means that somebody holds the rest
_SHARE = frozenset(("--mem-fraction-static", "--max-total-tokens"))
_ACTOR = lazy(
    r"\b(?:WorkerDict|TaskRunner|\w*ActorRollout\w*|\w*SGLangEngine|\w*[sS][gG][lL]ang\w*Server|RolloutRayActor)\(?[^)\n]{0,60}\bpid="
)
_FRAMEWORK = lazy(r"/(?:(verl|openrlhf|nemo_rl)/|(slime|miles)/(?:ray|backends|rollout|utils)/)")
_SETS = {
    "verl": "verl: actor_rollout_ref.rollout.gpu_memory_utilization={}; param_offload and optimizer_offload of the actor's FSDP "
    "give back what the trainer holds",
    "slime": "slime: --sglang-mem-fraction-static {}",
    "miles": "miles: --sglang-mem-fraction-static {}",
}


def not_alone(fixes: Sequence[Fix], case: Case, attempt: Attempt) -> tuple[Fix, ...]:
    """The fixes; those that give this server another share of a GPU that others use too are risky, and say who decides."""
    if not any(_share_of(fix) is not None for fix in fixes):
        return tuple(fixes)
    trainer = _trainer(case, attempt)
    held = _held(case.facts)
    if trainer is None and not held:
        return tuple(fixes)
    return tuple(_beside(fix, trainer, held) if _share_of(fix) is not None else fix for fix in fixes)


def _share_of(fix: Fix) -> str | None:
    """The new value, "" where SGLang is to choose it; None for other fixes."""
    return next((edit.value or "" for edit in fix.edits if edit.name in _SHARE), None)


def _trainer(case: Case, attempt: Attempt) -> str | None:
    """The framework that trains on the same GPUs; "" where it is not told which, None where there is none."""
    for event in attempt.events:
        frames = event.traceback.frames if event.traceback is not None else ()
        for text in (event.line.text, *(frame.path for frame in frames)):
            if found := _FRAMEWORK.search(text):
                return str(found[1] or found[2])
    if any(_ACTOR.search(event.line.stream) for event in attempt.events):
        return "verl" if any("WorkerDict" in event.line.stream for event in attempt.events) else ""
    return "" if case.facts.look("arg.enable_memory_saver") is True else None


def _held(facts: Facts) -> str:
    total, free = (facts.look(name) for name in ("host.gpu.memory_gib", "log.avail_mem_before_load_gib"))
    if not isinstance(total, (int, float)):
        total = facts.look("log.total_mem_gib")
    known = isinstance(total, (int, float)) and isinstance(free, (int, float))
    if not known or not 0 < free < total * _ALONE:
        return ""
    return f"{free:g} of {total:g} GiB were free before the weights: another process holds the rest"


def _beside(fix: Fix, trainer: str | None, held: str) -> Fix:
    who = (
        f"{trainer} uses the same GPU"
        if trainer
        else held or "a trainer, for which the memory is released, uses the same GPU"
    )
    notes = list(fix.notes)
    share = _share_of(fix)
    if (
        trainer is not None
        and (trainer or not held)
        and share
        and any(edit.name == "--mem-fraction-static" for edit in fix.edits)
    ):
        notes.append(
            f"set it where the server is started, in {_SETS.get(trainer, 'the options of the framework')}".format(
                share
            )
        )
    if fix.safety != Safety.SAFE.value:
        return replace(fix, notes=tuple(notes))
    risk = f"{who}: what this server takes may be lacking there, and what is free may change"
    return replace(
        fix, safety=Safety.RISKY.value, risk=f"{fix.risk}; {risk}" if fix.risk else risk, notes=tuple(notes)
    )
