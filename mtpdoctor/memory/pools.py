"""How a release divides what is left after the weights: state slots, KV tokens, requests at once.

``left`` is the memory after loading less the share that is kept out of --mem-fraction-static:
``after - before * (1 - fraction)``. Bytes throughout.
"""

from __future__ import annotations

from mtpdoctor.memory.cache import Cell
from mtpdoctor.memory.launch import Launch
from mtpdoctor.memory.releases import of
from mtpdoctor.memory.state import State, slots_per_request
from mtpdoctor.records import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Pools:
    """``problem`` names what SGLang refuses: "kv" no KV token, "state" no slot, "requests" no request."""

    tokens: int  # of the KV pool; of the full-attention one where there are two
    window_tokens: int  # of the sliding-window pool
    slots: int | None  # of state; None: the model has none
    requests: int
    kv: float  # bytes of the target's pools
    state: float
    spec_state: float  # intermediate states for verifying drafts
    draft_kv: float
    request_table: float  # bytes that say which request holds which token, and which pages are free
    profiled: int  # tokens before --max-total-tokens
    problem: str | None = None


def size_pools(left: float, launch: Launch, cell: Cell, state: State | None, context: int) -> Pools:
    slots, spec_slots, problem = None, 0, None
    rest = left
    if state is not None and state.slot:
        slots, spec_slots, spec_bytes = _slots(left, launch, state)
        problem = "state" if slots <= 0 and of(launch.release, ">=0.5.13") else None
        extra = 1 if of(launch.release, ">=0.5.17") else 0
        rest = left - (max(slots, 0) + extra) * state.slot - spec_bytes
    profiled = int(rest // cell.sizing) if cell.sizing else 0
    tokens = min(profiled, launch.max_tokens) if launch.max_tokens is not None else profiled
    tokens = tokens // launch.page * launch.page
    window = 0
    if cell.window_layers and cell.full_layers:
        window = int(max(tokens, 0) * cell.window_share) // launch.page * launch.page
    elif cell.window_layers:
        window = max(tokens, 0)
    tokens = _with_draft_slots(tokens, launch) if tokens > 0 else tokens
    if tokens <= 0:
        problem = problem or "kv"
    requests = _requests(tokens, slots, launch, context)
    if problem is None and requests <= 0:
        problem = "requests"
    held = max(tokens, 0)
    return Pools(
        tokens=tokens,
        window_tokens=window,
        slots=slots,
        requests=requests,
        kv=held * cell.target,
        state=(max(slots, 0) + 1) * state.slot if state is not None and slots is not None else 0.0,
        spec_state=_spec_state(spec_slots, launch, state, requests),
        draft_kv=held * cell.draft,
        request_table=max(requests, 0) * (context + 4 + (launch.draft_tokens or 0)) * 4.0
        + 8.0 * held / launch.page,
        profiled=profiled,
        problem=problem,
    )


def _with_draft_slots(tokens: int, launch: Launch) -> int:
    """Up to 0.5.6 the pools grow by what the draft of every request may write."""
    if not launch.has_draft or of(launch.release, ">=0.5.7") or launch.max_tokens is not None:
        return tokens
    requests = launch.max_requests or 2048
    steps = launch.arguments.count("speculative_num_steps") or 0
    topk = launch.arguments.count("speculative_eagle_topk") or 1
    more = requests * (steps * topk + (launch.draft_tokens or 0)) + 100
    return (tokens + more) // launch.page * launch.page


def _slots(left: float, launch: Launch, state: State) -> tuple[int, int, float]:
    """Slots of state, requests whose drafts have intermediate states, and the bytes set aside for those."""
    arguments, release = launch.arguments, launch.release
    ratio = max(arguments.number("mamba_full_memory_ratio") or 0.9, 0.0)
    budget = left * ratio / (1 + ratio)
    ranks = launch.dp if launch.dp_attention else 1
    given = arguments.count("max_mamba_cache_size")
    requests = (launch.max_requests or 0) // ranks
    drafts = launch.draft_tokens or 0 if launch.algorithm is not None else 0
    no_radix = arguments.on("disable_radix_cache")
    slot = state.slot
    if of(release, "<0.5.3.post2"):
        return (given or launch.max_requests or 512) // ranks, 0, 0.0
    if of(release, "<0.5.7"):  # intermediate states for every slot
        size = (given or launch.max_requests or 512) if no_radix else int(budget // slot // (1 + drafts))
        return size // ranks, size // ranks, size // ranks * slot * drafts
    if of(release, "<0.5.13"):
        spec = slot * requests * drafts
        if of(release, "<0.5.8") and (no_radix or given is not None):
            spec = 0.0  # set aside only where the slots are worked out
        if given is not None:
            return given // ranks, requests, spec
        if no_radix and (launch.max_requests is not None or of(release, "<0.5.9")):
            return (launch.max_requests or 512) // ranks, requests, spec
        return int((left - spec) * ratio / (1 + ratio) // slot), requests, spec
    per_request = slots_per_request(launch)
    one_more = 1 if of(release, ">=0.5.17") else 0
    if given is not None:
        size = given // ranks
    elif no_radix and launch.max_requests is not None:
        size = requests
    elif drafts:
        usable = budget - one_more * slot * (1 + drafts)
        size = int(usable // (slot * (1 + drafts / per_request)))
    else:
        size = int((budget - one_more * slot) // slot)
    if not drafts:
        return size, 0, 0.0
    capped = size if given is None and no_radix else min(requests, max(size, 0) // per_request)
    return size, capped, slot * (capped + one_more) * drafts


def _spec_state(slots: int, launch: Launch, state: State | None, requests: int) -> float:
    """As allocated: for the requests that are really admitted, and one."""
    if state is None or slots <= 0 or launch.algorithm is None:
        return 0.0
    return (min(slots, max(requests, 0)) + 1) * (launch.draft_tokens or 0) * state.slot


def _requests(tokens: int, slots: int | None, launch: Launch, context: int) -> int:
    release = launch.release
    estimated = max(min(int(max(tokens, 0) / max(context, 1) * 512), 4096), 2048)
    asked = launch.max_requests
    ranks = launch.dp if launch.dp_attention or of(release, "<0.5.16") else 1
    if of(release, "<0.5.10rc0"):
        requests = asked if asked is not None else estimated
        if launch.dp_attention and launch.algorithm is not None and of(release, ">=0.5.8"):
            requests = min(requests, (asked or requests) // ranks)
    elif asked is None:
        requests = min(estimated, tokens // 2)
    else:
        requests = min(asked // ranks, estimated if of(release, "<0.5.14") else tokens // 2)
    if slots is not None:
        per_request = slots_per_request(launch) if of(release, ">=0.5.3.post2") else 1
        requests = min(requests, slots // per_request)
    return requests
