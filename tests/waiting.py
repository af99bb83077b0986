"""Waiting in tests: for what is to come, however long a loaded machine takes. Nothing is asserted of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONG = 120.0  # seconds; only waited for where something is wrong


def until(condition: Callable[[], object], what: str = "it", seconds: float = LONG) -> None:
    """Until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.01)


def with_more_time(
    attempt: Callable[[float], T], fits: Callable[[T], bool], limits: tuple[float, ...] = (2.0, 8.0, 32.0)
) -> tuple[T, float]:
    """For a limit that one thing is to pass while all else comes within it: a loaded machine needs a longer one to
    tell them apart. What came of the first limit that fits (else of the last one), and that limit."""
    for limit in limits:
        found = attempt(limit)
        if fits(found):
            break
    return found, limit
