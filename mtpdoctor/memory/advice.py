"""Which way to move which option, and to which number."""

from __future__ import annotations

import math

from mtpdoctor.memory.budget import Budget
from mtpdoctor.memory.limits import Limits
from mtpdoctor.memory.needs import MARGIN
from mtpdoctor.memory.printed import Printed
from mtpdoctor.memory.troubles import Trouble, others_gib
from mtpdoctor.memory.types import Advice

WORTH = 0.5  # GiB: what saves less is not worth changing an option for
_SMALLEST_STEP = 0.02  # of the fraction: less than the allocator's own scatter moves nothing
_BLIND_STEP = 0.05  # where the model is not known, and so not what graphs and activations need


def lowered_fraction(budget: Budget, limits: Limits, seen: Printed) -> float | None:
    """The fraction that gives back what was missing at an out-of-memory error after the pools.

    None where less would not hold the weights any more. What is above one is no share: it is lowered from one on."""
    now, before = budget.launch.fraction, budget.before
    if now is None or before is None or before <= 0:
        return None
    now = min(now, 1.0)
    if seen.wanted is not None:
        missing = seen.wanted - (seen.free_then or 0.0) + MARGIN * before
    else:
        missing = MARGIN * before
    missing = max(missing, _draft_pool(budget, seen) or 0.0)
    if budget.activations is not None:
        beside = budget.outside + MARGIN * before
        have = seen.pool if seen.pool is not None else before * (1 - now)
        missing = max(missing, beside - have)
    step = max(missing / before, _SMALLEST_STEP if budget.activations is not None else _BLIND_STEP)
    lower = math.floor((now - step) * 100 + 1e-9) / 100
    if limits.most is not None and budget.activations is not None:
        lower = min(lower, math.floor(limits.most * 100 + 1e-9) / 100)
    least = limits.least
    if lower <= 0 or (least is not None and lower < least):
        return None
    return lower


def _draft_pool(budget: Budget, seen: Printed) -> float | None:
    """GiB that the fraction has to give back where the draft found no room, by the log alone.

    Of a draft with several pools those that found room tell the size of the one that did not. A draft that
    is the target itself (the same path) needs its weights and a pool as large once more. Of another draft
    the log tells that it failed over keys that grow with the pools, and as much again is needed for the
    values."""
    launch, before = budget.launch, budget.before
    if before and seen.after and seen.pool is not None and seen.draft_pools and seen.draft_pools_gib:
        target = seen.after - seen.pool
        draft = seen.draft_pools_gib * (seen.draft_pools + 1) / seen.draft_pools  # and the one that failed
        return max(0.0, target - target * (seen.after - MARGIN * before) / (target + draft))
    if budget.activations is not None or not launch.has_draft or seen.kv is None or seen.draft_kv is not None:
        return None
    if before is None or seen.after is None or seen.wanted is None or launch.fraction is None:
        return None
    left = seen.after - before * (1 - launch.fraction)
    if left <= 0:
        return None
    room = seen.after - MARGIN * before  # pools and draft together shrink in proportion
    if launch.draft_is_target and seen.weights is not None:
        weights = seen.draft_weights if seen.draft_weights is not None else seen.weights
        return max(0.0, left - (room - weights) * left / (left + seen.kv))
    if seen.wanted < MARGIN * before:
        return None
    return max(0.0, left - room * left / (left + 2 * seen.wanted))


def advise(trouble: Trouble, budget: Budget, limits: Limits, seen: Printed) -> tuple[Advice, ...]:
    """Best first. Nothing for a launch without trouble."""
    if trouble is Trouble.FRACTION_LOW:
        return (*_shorter(limits), *_raise(budget, limits))
    if trouble is Trouble.FRACTION_HIGH:
        return tuple(_lower(budget, limits, seen))
    if trouble is Trouble.REQUESTS and limits.requests:
        return (
            Advice(
                "max_running_requests",
                "lower",
                limits.requests,
                "the state for that many requests finds room",
                "more requests wait",
            ),
            *_raise(budget, limits),
        )
    if trouble is Trouble.WEIGHTS:
        return (*_shorter(limits), *_spread(budget, limits))
    return ()


def _shorter(limits: Limits, beside: bool = False) -> list[Advice]:
    """A shorter context, where it saves something worth it. ``beside``: the room is wanted beside the pools."""
    if limits.context is None or limits.context_saves < WORTH:
        return []
    saves = f"saves {limits.context_saves:,.1f} GiB of tables"
    why = f"{saves}; the KV pool holds no longer request" if beside else f"{saves}; it is the model's own"
    return [Advice("context_length", "lower", limits.context, why)]


def _raise(budget: Budget, limits: Limits) -> list[Advice]:
    now = budget.launch.fraction
    if limits.best is None or (now is not None and limits.best <= now):
        return []
    why = f"weights and pools need {limits.least:.3f} at least"
    out = [Advice("mem_fraction_static", "raise", limits.best, why)]
    if budget.launch.fraction_typed and limits.automatic_works:
        out.append(
            Advice(
                "mem_fraction_static", "remove", None, "SGLang then works the share out from the GPU's size"
            )
        )
    return out


def _lower(budget: Budget, limits: Limits, seen: Printed) -> list[Advice]:
    out = _shorter(limits, beside=True) if seen.stage in (None, "memory_pool") else []
    lower = lowered_fraction(budget, limits, seen)
    if lower is not None:
        out.append(
            Advice(
                "mem_fraction_static",
                "lower",
                lower,
                "leaves room for graphs, draft and activations beside the pools",
                "fewer tokens are cached",
            )
        )
    if limits.table_requests is not None and limits.context is None and seen.stage in (None, "memory_pool"):
        out.append(
            Advice(
                "max_running_requests",
                "lower",
                limits.table_requests,
                "the table of which request holds which token then takes a GiB",
                "more requests wait",
            )
        )
    if limits.decode_batch is not None and seen.stage in (None, "graph_capture"):
        out.append(
            Advice(
                "cuda_graph_max_bs",
                "lower",
                limits.decode_batch,
                "fewer and smaller graphs",
                "larger batches run without a graph",
            )
        )
    if limits.chunk is not None and seen.stage in ("serving", "warmup"):
        out.append(
            Advice(
                "chunked_prefill_size",
                "lower",
                limits.chunk,
                "activations grow with the tokens of a prefill chunk",
                "long prompts take more steps",
            )
        )
    return out


def _spread(budget: Budget, limits: Limits) -> list[Advice]:
    if limits.tp is None or limits.tp <= budget.launch.tp:
        return []
    return [
        Advice(
            "tp_size",
            "raise",
            limits.tp,
            f"each of {limits.tp} GPUs holds a smaller share of the weights",
            f"takes {limits.tp} GPUs",
        )
    ]


def words_for(trouble: Trouble, budget: Budget, seen: Printed) -> str | None:
    """What no option mends, in words."""
    if trouble is Trouble.OTHERS:
        held = others_gib(budget, seen)
        some = f"{held:,.1f} GiB" if held is not None else "most of the memory"
        return f"Other processes hold {some} of the GPU. No option makes room for that: free the GPU or use another."
    if trouble is Trouble.WEIGHTS and budget.weights is not None and budget.before is not None:
        return (
            f"The weights ({budget.weights:,.1f} GiB a GPU) leave too little of {budget.before:,.1f} GiB at any "
            "--mem-fraction-static: more GPUs (--tp-size), a quantized checkpoint, or larger GPUs."
        )
    return None
