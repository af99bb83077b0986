"""Proof that a launched server generates: real requests, and what the server's own answers say."""

from __future__ import annotations

from mtpdoctor.watch.target import Target, target_of
from mtpdoctor.watch.types import Generated

__all__ = ["Target", "prove", "reachable", "target_of"]


def reachable(target: Target, timeout_s: float = 1.0) -> bool:
    """Whether it answers HTTP at all. For servers that do not log (``--log-level warning``) that they are up."""
    raise NotImplementedError


def prove(target: Target, timeout_s: float = 120.0, *, started: float | None = None) -> Generated:
    """Ask until tokens came back or ``timeout_s`` is over. Never raises for what a server does.

    Blocks: call it in a thread. ``started`` is the ``time.monotonic()`` of the launch; ``Generated.at`` counts
    from there (from the call, where it is None).
    """
    raise NotImplementedError
