"""One rank's memory from the free GPU to the running server, as numbers. ``summing`` puts it into words."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.facts import Source
from mtpdoctor.memory.arguments import as_number
from mtpdoctor.memory.cache import Cell, counts_draft, token_cell
from mtpdoctor.memory.launch import Launch
from mtpdoctor.memory.needs import (
    CONTEXT_GIB,
    LIBRARIES_GIB,
    activations_gib,
    graphs_gib,
    nccl_gib,
)
from mtpdoctor.memory.pools import GIB, Pools, size_pools
from mtpdoctor.memory.printed import Printed
from mtpdoctor.memory.state import State, state_slot
from mtpdoctor.memory.weights import RankWeights, rank_weights
from mtpdoctor.model.types import ModelFacts, WeightFacts
from mtpdoctor.records import dataclass

PLAIN_CONTEXT = 4096  # tokens, where nothing tells the model's


@dataclass(frozen=True, slots=True)
class Budget:
    """GiB; None: not known. ``before`` is the measure that --mem-fraction-static is a share of."""

    launch: Launch
    total: float | None
    free: float | None  # before the launch
    before: float | None
    weights: float | None
    draft_weights: float  # once it serves
    draft_copies: float  # of embedding and LM head, while it is loaded and its pool is made
    after: float | None  # loading the target (and the draft, where the release loads it before the pools)
    left: float | None  # for the pools: after - before x (1 - fraction)
    cell: Cell | None
    state: State | None
    pools: Pools | None
    graphs: float | None
    activations: float | None
    context: int  # tokens
    parts: RankWeights | None

    @property
    def counted(self) -> bool:
        """Does the release count the draft inside --mem-fraction-static?"""
        if self.cell is not None:
            return self.cell.counted
        return self.launch.has_draft and counts_draft(self.launch)

    @property
    def outside(self) -> float:
        """What has to find room outside of weights and pools, and outside of --mem-fraction-static."""
        table = self.pools.request_table / GIB if self.pools else 0.0
        beside = (self.graphs or 0.0) + table
        if self.cell is None or self.cell.counted:
            return beside + (self.activations or 0.0)
        pool = self.pools.draft_kv / GIB if self.pools else 0.0
        return beside + self.draft_weights + pool + max(self.activations or 0.0, self.draft_copies)

    @property
    def remaining(self) -> float | None:
        """After everything; below 0 what is missing."""
        if self.before is None or self.weights is None:
            return None
        if self.weights >= self.before:
            return self.before - self.weights
        if self.pools is None:
            return self.before - self.weights if self.left is None else self.left
        if self.pools.problem is not None and self.left is not None and self.left <= 0:
            return self.left
        pools = self.pools
        inside = (pools.kv + pools.state + pools.spec_state) / GIB
        if self.counted:
            inside += pools.draft_kv / GIB
        after = self.after if self.after is not None else self.before - self.weights
        return after - inside - self.outside


def make_budget(
    case: Case,
    launch: Launch,
    seen: Printed,
    model: ModelFacts | None,
    weights: WeightFacts | None,
    draft: ModelFacts | None = None,
    draft_weights: WeightFacts | None = None,
) -> Budget:
    total = launch.gpu_mib / 1024 if launch.gpu_mib is not None else None
    free, before = _free(case, launch, seen, total)
    parts = None
    if model is not None and weights is not None and _told(weights):
        parts = rank_weights(model, weights, launch, draft, draft_weights)
    predicted = parts.target / GIB if parts else None
    noisy = seen.weights is not None and predicted is not None and not _near(seen.weights, predicted)
    held = seen.weights if _plausible(seen.weights) and not noisy else predicted
    cell = token_cell(model, launch, draft) if model else None
    drafted = parts.draft / GIB if parts else 0.0
    if not drafted and seen.draft_weights is not None:
        drafted = max(0.0, seen.draft_weights)
    after = None if noisy else seen.after
    if after is None and before is not None and held is not None:
        after = before - held - (0.0 if seen.before is None else LIBRARIES_GIB)
    if after is not None and (
        cell.counted if cell is not None else launch.has_draft and counts_draft(launch)
    ):
        after -= drafted
    left = None
    if after is not None and before is not None and launch.fraction is not None:
        left = after - before * (1 - launch.fraction)
    state = state_slot(model, launch) if model else None
    context = launch.context or PLAIN_CONTEXT
    pools = None
    if left is not None and cell is not None:
        pools = size_pools(left * GIB, launch, cell, state, context)
    return Budget(
        launch=launch,
        total=total,
        free=free,
        before=before,
        weights=predicted if predicted is not None else held,
        draft_weights=drafted,
        draft_copies=parts.draft_copies / GIB if parts else 0.0,
        after=after,
        left=left,
        cell=cell,
        state=state,
        pools=pools,
        graphs=seen.graphs if _plausible(seen.graphs) else graphs_gib(launch, model),
        activations=activations_gib(launch, model),
        context=context,
        parts=parts,
    )


def _near(printed: float, predicted: float) -> bool:
    """Else another process took or freed memory while the weights were loaded."""
    return -0.05 <= printed <= 1.5 * predicted + 0.6


def _told(weights: WeightFacts) -> bool:
    return bool(weights.groups) and "all" not in weights.unknown


def _plausible(value: float | None) -> bool:
    """A difference of two measures: below 0 when another process freed memory in between."""
    return value is not None and value >= 0


def _free(
    case: Case, launch: Launch, seen: Printed, total: float | None
) -> tuple[float | None, float | None]:
    """Free memory before the launch, and the measure before loading."""
    started = CONTEXT_GIB + nccl_gib(launch)
    if seen.before is not None:
        before = seen.before + LIBRARIES_GIB
        return before + started, before
    fact = case.facts.fact("host.gpu.free_gib")
    free = as_number(fact.value) if fact is not None and fact.source is not Source.LOG else None
    if free is None:
        free = usable_gib(total) if total is not None else None
    return free, free - started if free is not None else None


def usable_gib(total: float) -> float:
    """Of an idle GPU: the driver keeps some for itself (139.8 of 140.4 GiB on an H200, 79.2 of 79.6 on an
    H100)."""
    return total - max(0.3, 0.0045 * total)
