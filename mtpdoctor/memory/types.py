"""What a memory sum is. All sizes in GiB of one GPU (rank), all counts of one rank, unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Term:
    """One share of a GPU's memory. ``gib`` None: it is there, but how much is not known (``how`` says why)."""

    name: str  # "weights", "draft weights", "KV pool", "draft KV pool", "linear-attention state", "index tables",
    # "graph capture", "activations and reserve", "other processes", "CUDA context and NCCL"
    gib: float | None
    how: str  # the sum in words and numbers, short: "8 layers x 2 KV heads x 256 x 2 x bf16 x 41,000 tokens"
    printed_gib: float | None = None  # what the log printed for it


@dataclass(frozen=True, slots=True)
class Count:
    """Something that the memory buys: tokens of the KV pool, slots of state, requests at once."""

    name: str  # "KV tokens", "state slots", "requests at once"
    value: int | None
    how: str
    printed: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """Which way to move which option, and to which number. ``value`` None: take the option out."""

    option: str  # SGLang's own field name: "mem_fraction_static"
    direction: str  # "raise" | "lower" | "remove"
    value: float | int | None
    why: str
    loses: str | None = None  # what it costs; None: nothing that was asked for


@dataclass(frozen=True, slots=True)
class MemorySum:
    """The sum for the fullest rank. ``fits`` None: facts are missing (``missing`` names them)."""

    rank: str  # "each GPU", "PP0" where the stages differ
    total_gib: float | None
    free_gib: float | None  # before the launch
    terms: tuple[Term, ...]
    counts: tuple[Count, ...]
    fits: bool | None
    left_gib: float | None  # after everything; below 0: what lacks
    advice: tuple[Advice, ...] = ()
    missing: tuple[str, ...] = ()  # facts that would decide it, by their names (docs/knowledge-format.md)
    notes: tuple[str, ...] = ()
    # what is wrong: "none", "others", "weights", "fraction_low", "fraction_high", "requests", "unknown"
    trouble: str = "unknown"
    numbers: Mapping[str, float | int | str | bool] = field(default_factory=dict)  # facts memory.NAME
