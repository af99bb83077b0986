"""Pairs of launches whose messages look alike and whose remedies do not."""

from __future__ import annotations

from tests.false_friends import memory, model_and_options, processes_and_network
from tests.false_friends.build import CLOCK, Pair, Side

__all__ = ["CLOCK", "PAIRS", "Pair", "Side"]

PAIRS: tuple[Pair, ...] = (*memory.PAIRS, *model_and_options.PAIRS, *processes_and_network.PAIRS)
