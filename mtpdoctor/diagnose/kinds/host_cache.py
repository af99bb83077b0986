"""Host memory of the hierarchical cache: what all ranks of a node ask for together, and a size that fits."""

from __future__ import annotations

import math

from mtpdoctor.case import Case
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.records import dataclass
from mtpdoctor.release import parse_release

_GB = 1024**3 / 1e9  # SGLang counts --hicache-size and prints host pools in 10^9 bytes
_OF_FREE = 0.9  # share of the free memory that the pools may take; the rest is for what the ranks do later
_OF_LIMIT = (
    0.6  # of the whole limit: besides the pools it holds the ranks themselves, pinned buffers, page cache
)
_NO_FIGURE = 0.5  # of what was asked for, where neither limit nor free memory is told
_MAY_BE_SMALLER = parse_release("0.5.15")  # up to then the host's pool had to be larger than the GPU's


@dataclass(frozen=True, slots=True)
class _Need:
    """All sizes in GB (10^9 bytes) of one node."""

    ranks: int
    asked: float | None  # of all ranks, with the pools beside the KV cache
    beside: float  # all pools by that of the KV cache (1: there is no other)
    budget: float | None  # what the pools of all ranks may take
    budget_from: str  # in words
    limit: float | None


def host_cache_remedies(match: Match, case: Case) -> list[Remedy]:
    """A --hicache-size (GB a rank) that fits; doing without; more memory. None where no hierarchical cache is on."""
    if not _is_on(match, case):
        return []
    need = _need(match, case)
    out = []
    size = _fitting_size(need, case)
    if size is not None:
        out.append(
            Remedy(
                title=f"A host cache of {size} GB a rank: --hicache-size {size}",
                safety=Safety.RISKY,
                why=_share(need, size),
                edits=(EditTemplate("set", "--hicache-size", str(size)),),
                risk="fewer prefixes are kept",
            )
        )
    out.append(
        Remedy(
            title="Give up the hierarchical cache",
            safety=Safety.RISKY,
            why="needs no host memory"
            + ("" if size is not None else "; what is free is too little for a useful one"),
            edits=(EditTemplate("remove", "--enable-hierarchical-cache"),),
            risk="prefixes that leave the GPU are computed again",
        )
    )
    if need.asked is not None:
        wanted = math.ceil(max(need.asked / _OF_LIMIT, (need.limit or 0.0) * 1.25) / 10) * 10
        out.append(
            Remedy(
                title=f"Give the server more host memory: about {wanted} GB for this size of the cache",
                safety=Safety.MANUAL,
                why="the limit of container, pod (resources.limits.memory) or job has to hold the pools of all ranks "
                "and the ranks themselves",
                run=("free -g", "cat /sys/fs/cgroup/memory.max"),
            )
        )
    return out


def host_cache_said(match: Match, case: Case) -> str:
    """The sum of the ranks in words; "" where the log shows no sizes."""
    if not _is_on(match, case):
        return ""
    need = _need(match, case)
    if need.asked is None:
        return ""
    limit = f", and the memory limit is {need.limit:.0f} GB" if need.limit is not None else ""
    return (
        f"The hierarchical cache of {need.ranks} rank{'s' if need.ranks > 1 else ''} asks for {need.asked:.0f} GB of "
        f"host memory{limit}."
    )


def _share(need: _Need, size: int) -> str:
    more = f" (x {need.beside:.2f} with the pools beside it)" if need.beside > 1.01 else ""
    return f"{need.ranks} x {size} GB{more} stay within {need.budget or 0:.0f} GB, {need.budget_from}; the size counts for each rank"


def _fitting_size(need: _Need, case: Case) -> int | None:
    if need.budget is None:
        return None
    size = int(need.budget / need.ranks / need.beside)
    typed = _number(case, "arg.hicache_size")
    if size < 1 or (typed and size >= typed):
        return None
    device = _number(case, "log.kv_gib")
    must_be_larger = case.release is None or case.release < _MAY_BE_SMALLER
    if must_be_larger and device is not None and size <= device * _GB:
        return None
    return size


def _need(match: Match, case: Case) -> _Need:
    ranks = _ranks(case)
    shown = case.facts.look("log.host_pools_gb")
    kv = _number(case, "log.host_kv_pools_gb") or 0.0
    shown_gb = float(shown) if isinstance(shown, (int, float)) else 0.0
    showing = _number(case, "log.host_pool_ranks") or 0
    beside = shown_gb / kv if kv > 0 and shown_gb > kv else 1.0
    a_rank = shown_gb / showing if showing else None
    limit_gib = _number(case, "log.memory_limit_gib")
    if limit_gib is None:
        limit_gib = _number(case, "host.cgroup_memory_gib")
    limit = None if limit_gib is None else limit_gib * _GB
    want, have = match.captures.get("want"), match.captures.get("have")
    if want and have:
        # The ranks that did not fail hold their pools already; what is left of the memory is what the message says.
        budget = _OF_FREE * (float(have) + shown_gb)
        a_rank = max(float(want), a_rank or 0.0)
        said = f"{_OF_FREE:.0%} of what was free before ({float(have) + shown_gb:.0f} GB)"
        return _Need(ranks, a_rank * ranks, beside, budget, said, limit)
    asked = None if a_rank is None else a_rank * ranks
    if limit is not None:
        return _Need(
            ranks, asked, beside, _OF_LIMIT * limit, f"{_OF_LIMIT:.0%} of the limit of {limit:.0f} GB", limit
        )
    if asked is None:
        return _Need(ranks, None, beside, None, "", None)
    return _Need(ranks, asked, beside, _NO_FIGURE * asked, "half of what was asked for", None)


def _ranks(case: Case) -> int:
    """Ranks on one node."""
    ranks = (_number(case, "arg.tp_size") or 1) * (_number(case, "arg.pp_size") or 1)
    if case.facts.look("arg.enable_dp_attention") is not True:
        ranks *= _number(case, "arg.dp_size") or 1
    return max(1, int(ranks / (_number(case, "arg.nnodes") or 1)))


def _is_on(match: Match, case: Case) -> bool:
    return match.captures.get("have") is not None or case.facts.look("arg.enable_hierarchical_cache") is True


def _number(case: Case, name: str) -> float | None:
    value = case.facts.look(name)
    if value is UNKNOWN or value is None or isinstance(value, bool):
        return None
    try:
        return float(str(value))
    except ValueError:
        return None
