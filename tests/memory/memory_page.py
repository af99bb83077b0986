"""A memory sum for tests of its pages."""

from __future__ import annotations

from memory_sums import flags, host, model, sum_of

from mtpdoctor.memory.types import MemorySum


def some_sum() -> MemorySum:
    return sum_of(flags(), "0.5.13.post1", model("Llama-3.1-8B"), host(79.6))
