"""What the log printed about memory. GiB (SGLang prints GiB as "GB")."""

from __future__ import annotations

from mtpdoctor.facts import Facts, Source
from mtpdoctor.memory.arguments import as_number
from mtpdoctor.records import dataclass


@dataclass(frozen=True, slots=True)
class Printed:
    """None: not printed."""

    before: float | None  # free at "Load weight begin"
    after: float | None
    weights: float | None
    draft_weights: float | None
    pool: float | None  # free at "Memory pool end"
    kv: float | None
    draft_kv: float | None
    draft_pools: int | None  # pools of a draft of several layers that were made, and GiB of all of them
    draft_pools_gib: float | None
    tokens: int | None
    window_tokens: int | None
    slots: int | None
    state: float | None
    spec_state: float | None
    requests: int | None
    graphs: float | None
    ready: float | None  # free when the server was ready
    wanted: float | None  # of an out-of-memory error
    free_then: float | None  # free at that error
    others: float | None  # in use by other processes at that error
    slot_mib: float | None  # of one state slot
    rest: float | None  # left for the state
    stage: str | None


def read_printed(facts: Facts) -> Printed:
    def number(name: str) -> float | None:
        return as_number(facts.look(name))

    def count(name: str) -> int | None:
        value = number(name)
        return None if value is None else int(value)

    free = facts.fact("host.gpu.free_gib")
    stage = facts.look("log.stage")
    return Printed(
        before=number("log.avail_mem_before_load_gib"),
        after=number("log.avail_mem_after_load_gib"),
        weights=number("log.weights_gib"),
        draft_weights=number("log.draft_weights_gib"),
        pool=number("log.avail_mem_after_pool_gib"),
        kv=number("log.kv_gib"),
        draft_kv=number("log.draft_kv_gib"),
        draft_pools=count("log.draft_pools"),
        draft_pools_gib=number("log.draft_pools_gib"),
        tokens=_or(count("log.max_total_num_tokens"), count("log.kv_tokens")),
        window_tokens=count("log.window_tokens"),
        slots=count("log.state_slots"),
        state=number("log.state_gib"),
        spec_state=number("log.spec_state_gib"),
        requests=count("log.max_running_requests"),
        graphs=number("log.graph_gib"),
        ready=number("log.avail_mem_ready_gib"),
        wanted=number("log.oom_wanted_gib"),
        free_then=as_number(free.value) if free is not None and free.source is Source.LOG else None,
        others=number("log.oom_others_gib"),
        slot_mib=number("log.state_slot_mib"),
        rest=number("log.state_rest_gib"),
        stage=stage if isinstance(stage, str) else None,
    )


def _or(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
