"""The memory sum as facts ``memory.*`` for conditions and edits of the knowledge."""

from __future__ import annotations

from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.memory.types import MemorySum


def memory_facts(found: MemorySum | None) -> Facts:
    """None without a sum; conditions take what is not there as absent."""
    values = {f"memory.{name}": value for name, value in found.numbers.items()} if found else {}
    return make_facts(values, Source.DERIVED, "the memory sum")
