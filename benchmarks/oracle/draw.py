"""One random launch command as it grows, spelled for one release."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mtpdoctor.sglang.flags import FlagTable


class Draw:
    """One command as it grows."""

    def __init__(self, seed: int, models: str, table: FlagTable) -> None:
        self.random = random.Random(seed)
        self.models, self.table = models, table
        self.argv: list[str] = []
        self.env: dict[str, str] = {}

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def add(self, flag: str, *values: Any, force: bool = False) -> None:
        """A flag, if the release has it (``force``: even if not)."""
        if force or flag in self.table:
            self.argv += [flag, *map(str, values)]

    def of(self, *flags: str) -> str:
        """The first of several spellings that the release has."""
        return next((f for f in flags if f in self.table), flags[0])

    def choice(self, flag: str, fallback: list[Any]) -> Any:
        """A value of the flag's choices, mostly one of the likelier ``fallback``."""
        spec = self.table.get(flag)
        choices = list(spec.choices) if spec is not None and spec.choices else fallback
        likely = [v for v in fallback if v in choices]
        return self.one(likely if likely and self.maybe(0.75) else choices)
