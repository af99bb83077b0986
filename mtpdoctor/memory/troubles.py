"""What went wrong, or would, as far as memory is concerned; decided before any advice is given."""

from __future__ import annotations

from enum import Enum

from mtpdoctor.case import Case
from mtpdoctor.memory.budget import Budget
from mtpdoctor.memory.limits import Limits
from mtpdoctor.memory.pools import GIB, size_pools
from mtpdoctor.memory.printed import Printed
from mtpdoctor.memory.unfollowed import is_followed
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import replace


class Trouble(str, Enum):
    NONE = "none"
    OTHERS = "others"  # other processes hold what the launch needs
    WEIGHTS = "weights"  # the weights do not fit, or leave nothing at any fraction
    FRACTION_LOW = "fraction_low"  # they fit, the share does not hold them and a pool
    FRACTION_HIGH = "fraction_high"  # pools took what graphs, drafts and activations need
    REQUESTS = "requests"  # the state of so many requests does not fit
    UNKNOWN = "unknown"


FILLED = 0.85  # less than this share of an idle GPU free before the launch: others hold the rest
_LATER = frozenset({"graph_capture", "warmup", "serving"})


def others_gib(budget: Budget, seen: Printed) -> float | None:
    """GiB that other processes hold. None: not known."""
    if seen.others is not None and seen.before is None:
        return seen.others
    if budget.total is None or budget.free is None:
        return seen.others
    from mtpdoctor.memory.budget import usable_gib

    return max(0.0, usable_gib(budget.total) - budget.free)


def filled_by_others(budget: Budget, seen: Printed) -> bool:
    held = others_gib(budget, seen)
    return held is not None and budget.total is not None and held > (1 - FILLED) * budget.total


def trouble_foreseen(budget: Budget, limits: Limits, seen: Printed) -> Trouble:
    """Before a launch, from the sum alone."""
    if budget.before is None or budget.weights is None:
        return Trouble.UNKNOWN
    crowded = filled_by_others(budget, seen)
    if budget.weights >= budget.before:
        return Trouble.OTHERS if crowded and _fits_idle(budget) else Trouble.WEIGHTS
    if budget.left is None or (budget.cell is None and seen.pool is None and not seen.tokens):
        return Trouble.UNKNOWN
    failing = budget.left <= 0 or (budget.pools is not None and budget.pools.problem is not None)
    if failing:
        asked = budget.launch.max_requests
        if (
            budget.state is not None
            and budget.left > 0
            and limits.requests
            and asked
            and limits.requests < asked
        ):
            return Trouble.REQUESTS
        if limits.hopeless:
            return Trouble.OTHERS if crowded and _fits_idle(budget) else Trouble.WEIGHTS
        return Trouble.FRACTION_LOW
    if surely_too_high(budget):
        return Trouble.FRACTION_HIGH
    return Trouble.NONE


# What the sum may be wrong by before a launch is called hopeless: of weights and draft, and in GiB of what is
# free at the start (measured: 0.1 % of the weights, 0.05 GiB).
SLACK, SLACK_GIB = 0.01, 0.25


def is_sure(
    case: Case, model: ModelFacts | None, budget: Budget, limits: Limits, seen: Printed, trouble: Trouble
) -> bool:
    """Would it go wrong even with slightly smaller weights, and is nothing in play that the sum does not
    know of? Only then a launch is refused for it."""
    if trouble in (Trouble.NONE, Trouble.UNKNOWN) or (budget.parts is None and seen.weights is None):
        return False
    if not is_followed(case, budget.launch, model):
        return False
    smaller = SLACK * ((budget.weights or 0.0) + budget.draft_weights) + SLACK_GIB
    after = budget.after + smaller if budget.after is not None else None
    left = budget.left + smaller if budget.left is not None else None
    pools = budget.pools
    if left is not None and budget.cell is not None:
        pools = size_pools(left * GIB, budget.launch, budget.cell, budget.state, budget.context)
    eased = replace(
        budget,
        weights=max(0.0, (budget.weights or 0.0) - smaller),
        after=after,
        left=left,
        pools=pools,
    )
    return trouble_foreseen(eased, limits, seen) is not Trouble.NONE


def surely_too_high(budget: Budget) -> bool:
    """The draft's weights, its pool and the request table alone need more than the pools leave."""
    if budget.pools is None or budget.cell is None or budget.left is None or budget.before is None:
        return False
    if budget.after is None:
        return False
    free = budget.after - _pool_gib(budget)
    need = budget.pools.request_table / 2**30
    if not budget.cell.counted:
        need += budget.draft_weights + budget.draft_copies + budget.pools.draft_kv / 2**30
    return free < need


def _pool_gib(budget: Budget) -> float:
    pools = budget.pools
    if pools is None:
        return 0.0
    return (pools.kv + pools.state + pools.spec_state + (pools.draft_kv if budget.counted else 0.0)) / 2**30


def _fits_idle(budget: Budget) -> bool:
    """Would the weights find room, and a pool beside them, were the GPU free of others?"""
    from mtpdoctor.memory.budget import usable_gib

    if budget.total is None or budget.weights is None:
        return False
    idle = usable_gib(budget.total) - (budget.free or 0.0) + (budget.before or 0.0)
    return budget.weights + budget.draft_weights + (budget.graphs or 0.0) < 0.93 * idle


def trouble_seen(budget: Budget, limits: Limits, seen: Printed) -> Trouble:
    """After a failure, from the stage at which it struck; the caller knows that it was one of memory."""
    crowded = filled_by_others(budget, seen)
    if seen.stage == "weights" or (seen.after is None and seen.pool is None and seen.wanted is not None):
        return Trouble.OTHERS if crowded and _fits_idle(budget) else Trouble.WEIGHTS
    if seen.pool is not None or seen.stage in _LATER or (seen.tokens or 0) > 0:
        return Trouble.FRACTION_HIGH
    if seen.rest is not None and seen.rest > 0 and limits.requests:
        return Trouble.REQUESTS
    now = budget.launch.fraction
    if limits.least is not None and now is not None and now < limits.least:
        if limits.hopeless:
            return Trouble.OTHERS if crowded else Trouble.WEIGHTS
        return Trouble.FRACTION_LOW
    if crowded:
        return Trouble.OTHERS
    return Trouble.WEIGHTS if limits.hopeless else Trouble.UNKNOWN
