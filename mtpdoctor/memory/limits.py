"""Between which values an option works: the numbers that remedies are filled with."""

from __future__ import annotations

import math
from collections.abc import Callable

from mtpdoctor.memory.architecture import layer_kinds
from mtpdoctor.memory.budget import Budget
from mtpdoctor.memory.cache import counts_draft
from mtpdoctor.memory.needs import MARGIN, PLAIN_FRACTION, nccl_gib
from mtpdoctor.memory.pools import GIB, Pools, size_pools
from mtpdoctor.memory.weights import rank_weights, rope_table
from mtpdoctor.model.types import ModelFacts, WeightFacts
from mtpdoctor.records import dataclass, replace

USEFUL_TOKENS = 4096  # of a KV pool that can serve a prompt; less only where the context is shorter
USEFUL = 0.08  # of the memory: a KV pool that is worth the further GPUs
BLIND = 0.03  # of the memory: for the pools of a model that is not known
_HIGHEST = 0.97  # no share above it leaves the allocator room


@dataclass(frozen=True, slots=True)
class Limits:
    """None: not known, or no value works (``hopeless`` tells which, for the fraction)."""

    least: float | None = None  # --mem-fraction-static with which weights and useful pools find room
    most: float | None = None  # ... that leaves room for what comes beside them
    best: float | None = None
    automatic_works: bool | None = None  # does the share that SGLang sets by itself lie between them?
    hopeless: bool = False  # even the least is more than the most
    requests: int | None = None  # --max-running-requests that the state pool can hold
    decode_batch: int | None = None  # --cuda-graph-max-bs
    chunk: int | None = None  # --chunked-prefill-size
    context: int | None = None  # --context-length with which memory is saved and nothing is lost
    context_saves: float = 0.0  # GiB
    table_requests: int | None = None  # --max-running-requests with an index table of a GiB
    tp: int | None = None  # least --tp-size


def find_limits(
    budget: Budget, model: ModelFacts | None, weights: WeightFacts | None, automatic: float | None
) -> Limits:
    before, after = budget.before, budget.after
    if before is None or before <= 0:
        return Limits()
    least = best = None
    if after is not None:
        need = _least_left(budget)
        least = _up(1 - (after - need) / before)
    most = most_fraction(budget, automatic)
    hopeless = least is not None and (least > _HIGHEST or (most is not None and least > most))
    if least is not None and most is not None and not hopeless:
        best = _best(least, most, automatic, 0.0 if budget.cell is not None else BLIND)
    return Limits(
        least=least,
        most=most,
        best=best,
        automatic_works=_automatic_works(automatic, least, most),
        hopeless=hopeless,
        requests=_requests(budget),
        decode_batch=_smaller_batch(budget),
        chunk=_smaller_chunk(budget),
        context=(shorter := _context(budget, model))[0],
        context_saves=shorter[1],
        table_requests=_table_requests(budget),
        tp=_tp(budget, model, weights),
    )


def _automatic_works(automatic: float | None, least: float | None, most: float | None) -> bool | None:
    if least is None or most is None:
        return None
    return least <= (automatic if automatic is not None else PLAIN_FRACTION) <= most + 0.005


def _best(least: float, most: float, automatic: float | None, beyond: float) -> float:
    """SGLang's own value where it is ``beyond`` the least; else well between the bounds, for the pool is to be of use."""
    plain = automatic if automatic is not None else PLAIN_FRACTION
    wanted = plain if plain >= least + beyond else least + 0.6 * (most - least)
    wanted = min(wanted, most)
    return _down(wanted, 2) if _down(wanted, 2) >= least else max(_down(wanted), least)


def most_fraction(budget: Budget, automatic: float | None) -> float | None:
    """The largest fraction that leaves room for what stays outside of it; that grows with the pools where
    the draft's pool is outside."""
    before = budget.before
    if before is None or before <= 0:
        return None
    if budget.activations is None or budget.graphs is None:
        blind = blind_fraction(budget, before)
        return blind if _draft_of_few_layers(budget) else max(blind, automatic or 0.0)
    room = before * (1 - MARGIN)
    beside = budget.graphs + budget.activations

    def works(fraction: float) -> bool:
        return fraction * before + beside + grows_outside(budget, fraction) <= room

    low, high = 0.0, _HIGHEST
    if works(high):
        return high
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return _down(low)


def blind_fraction(budget: Budget, before: float) -> float:
    """The most where the model is not known: a few GiB stay outside, more with a draft beside the pools."""
    spare = min(1 - PLAIN_FRACTION, max(0.06, 3 / before))
    if _draft_of_few_layers(budget):
        spare += 0.25
    return _down(1 - spare - (0.03 if budget.launch.has_draft else 0.0))


def _draft_of_few_layers(budget: Budget) -> bool:
    """A small model's pools are nearly all of the share, and its draft's pool, which comes on top, is a
    large part of them: one layer of few."""
    launch = budget.launch
    small = budget.weights is not None and budget.weights < 1.0
    return launch.has_draft and not counts_draft(launch) and small


def grows_outside(budget: Budget, fraction: float) -> float:
    """GiB outside of the fraction that depend on the size of the pools: request table, draft."""
    pools = _at(budget, fraction)
    if pools is None:
        return 0.0
    out = pools.request_table / GIB
    if budget.cell is not None and not budget.cell.counted:
        out += budget.draft_weights + pools.draft_kv / GIB
        out += max(0.0, budget.draft_copies - (budget.activations or 0.0))
    return out


def _at(budget: Budget, fraction: float) -> Pools | None:
    if budget.after is None or budget.before is None or budget.cell is None:
        return None
    left = budget.after - budget.before * (1 - fraction)
    return size_pools(left * GIB, budget.launch, budget.cell, budget.state, budget.context)


def useful_tokens(budget: Budget) -> int:
    wanted = min(USEFUL_TOKENS, budget.context, budget.launch.max_tokens or USEFUL_TOKENS)
    return max(wanted, budget.launch.page)


def _least_left(budget: Budget) -> float:
    """GiB for the pools with which SGLang starts and a prompt fits in."""
    if budget.cell is None or budget.before is None:
        return 0.01 * (budget.before or 0.0)
    launch, cell, state, context = budget.launch, budget.cell, budget.state, budget.context
    wanted = useful_tokens(budget)

    def works(left: float) -> bool:
        pools = size_pools(left * GIB, launch, cell, state, context)
        return pools.problem is None and pools.tokens >= wanted - launch.page

    return _smallest(works, 0.0, budget.before)


def _smallest(works: Callable[[float], bool], low: float, high: float) -> float:
    if not works(high):
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def _requests(budget: Budget) -> int | None:
    """The most requests at once whose states find room: where the number that is in force does not."""
    launch, cell, state = budget.launch, budget.cell, budget.state
    if cell is None or budget.left is None or budget.left <= 0 or budget.pools is None:
        return None
    if state is None or budget.pools.problem is None:
        return None
    low, high = 0, launch.max_requests or 4096
    while low < high:
        middle = (low + high + 1) // 2
        pools = size_pools(
            budget.left * GIB, replace(launch, max_requests=middle), cell, state, budget.context
        )
        low, high = (middle, high) if pools.problem is None else (low, middle - 1)
    return low or None


def _smaller_batch(budget: Budget) -> int | None:
    """Half the captured batch, as a power of two."""
    batch = budget.launch.decode_batch
    if not batch or batch < 2:
        return None
    return 1 << max(0, (batch // 2).bit_length() - 1)


def _smaller_chunk(budget: Budget) -> int | None:
    chunk = budget.launch.chunk
    if chunk is None:
        return None
    if chunk <= 0:
        return 8192
    half = chunk // 2 // budget.launch.page * budget.launch.page
    return half if half >= 512 else None


def _context(budget: Budget, model: ModelFacts | None) -> tuple[int | None, float]:
    """A shorter context that loses nothing, and the GiB that it saves: the model's own, where a longer one
    was typed; what the KV pool holds, where that is less, for no request can be longer."""
    launch, pools = budget.launch, budget.pools
    if pools is None or pools.tokens <= 0:
        own = model.context_length if model is not None else None
        if own is None or launch.context is None or own >= launch.context or model is None:
            return None, 0.0
        longer = rope_table(model, launch) - rope_table(model, replace(launch, context=own))
        return (own, longer / GIB) if longer > 0 else (None, 0.0)
    if pools.tokens >= budget.context:
        return None, 0.0
    tokens = pools.tokens // 1024 * 1024 if pools.tokens >= 2048 else pools.tokens
    saves = max(pools.requests, 0) * (budget.context - tokens) * 4.0 / GIB
    enough = budget.remaining is None or budget.remaining + saves >= 0
    return (tokens, saves) if enough else (None, 0.0)


def _table_requests(budget: Budget) -> int | None:
    """Where the table of which request holds which token takes more than a GiB: the requests for which it
    does not."""
    if budget.pools is None or budget.pools.problem is not None:
        return None
    fewer = GIB // (4 * max(budget.context, 1))
    saves = (budget.pools.requests - fewer) * max(budget.context, 1) * 4.0 / GIB
    enough = budget.remaining is None or budget.remaining + saves >= 0
    return fewer if enough and 1 <= fewer < budget.pools.requests // 2 else None


def _tp(budget: Budget, model: ModelFacts | None, weights: WeightFacts | None) -> int | None:
    """The least number of tensor parallel ranks with which weights, graphs and a useful pool find room."""
    if model is None or weights is None or not weights.groups or budget.before is None or not model.heads:
        return None
    launch = budget.launch
    for tp in (1, 2, 4, 8, 16, 32):
        if tp < launch.tp or model.heads % tp:
            continue
        trial = replace(launch, tp=tp)
        room = (budget.before + nccl_gib(launch) - nccl_gib(trial)) * (1 - MARGIN)
        parts = rank_weights(model, weights, trial)
        share = launch.tp / tp
        pool = max(_least_left(budget) * (share if "mla" not in layer_kinds(model) else 1.0), USEFUL * room)
        beside = (budget.graphs or 0.0) + (budget.activations or 0.0) * share
        if (parts.target + parts.draft) / GIB + pool + beside <= room:
            return tp
    return None


def _up(value: float) -> float:
    return max(0.001, math.ceil(value * 1000 - 1e-9) / 1000)


def _down(value: float, digits: int = 3) -> float:
    scale = 10**digits
    return math.floor(value * scale + 1e-9) / scale
