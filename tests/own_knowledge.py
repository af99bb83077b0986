"""The knowledge of the checkout, read once for all tests of a process: nothing changes it."""

from __future__ import annotations

from functools import cache

from mtpdoctor.kb.load import Knowledge, load_knowledge


@cache
def own_knowledge() -> Knowledge:
    return load_knowledge()
