"""The arguments of a launch as numbers and switches, read from the facts of a case."""

from __future__ import annotations

import math
from typing import Any

from mtpdoctor.facts import UNKNOWN, Facts, Source
from mtpdoctor.records import dataclass

_OFF = frozenset({"", "none", "null", "false", "0"})
_MOST = 1e15  # more is no number of tokens, ranks or bytes that a launch could mean


@dataclass(frozen=True, slots=True)
class Arguments:
    """``arg.*`` of a launch. What a fact does not tell is None: SGLang then decides itself."""

    facts: Facts

    def number(self, *names: str) -> float | None:
        """The first of the arguments that is a number."""
        for name in names:
            value = as_number(self._value(name))
            if value is not None:
                return value
        return None

    def count(self, *names: str) -> int | None:
        value = self.number(*names)
        return None if value is None else int(value)

    def on(self, name: str) -> bool:
        """A switch that is set, or an option with any value but "none"."""
        value = self._value(name)
        if isinstance(value, (list, tuple)):
            return bool(value)
        return value is not None and value is not False and str(value).strip().lower() not in _OFF

    def text(self, *names: str) -> str | None:
        for name in names:
            value = self._value(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
        return None

    def numbers(self, name: str) -> list[int]:
        """The whole numbers of an option that takes several."""
        value = self._value(name)
        parts = value if isinstance(value, (list, tuple)) else [value]
        return [int(n) for part in parts if (n := as_number(part)) is not None]

    def typed(self, name: str) -> bool:
        """Was it given in the launch command?"""
        return self.facts.look(f"flag.{name}") not in (None, UNKNOWN)

    def as_typed(self, name: str) -> int | None:
        """The whole number that was typed, else the one in force."""
        value = as_number(self.facts.look(f"flag.{name}")) if self.typed(name) else None
        return self.count(name) if value is None else int(value)

    def asked(self, name: str) -> bool:
        """A switch that is set or was typed, though SGLang takes it back later."""
        return self.typed(name) or self.on(name)

    def said(self, name: str) -> bool:
        """Does the log say it is in force?"""
        fact = self.facts.fact(f"arg.{name}")
        return fact is not None and fact.source is Source.LOG and fact.value is not None

    def environment(self, name: str) -> str | None:
        value = self.facts.look(f"env.{name}")
        return value if isinstance(value, str) else None

    def _value(self, name: str) -> Any:
        value = self.facts.look(f"arg.{name}")
        return None if value is UNKNOWN else value


def as_number(value: object) -> float | None:
    """None for what is no number, is not finite, or is beyond anything that can be meant."""
    if isinstance(value, bool) or value is None or value is UNKNOWN:
        return None
    try:
        number = float(value if isinstance(value, (int, float)) else str(value))
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) <= _MOST else None
