"""Facts with their source, and three-valued truth over them.

A fact that is not known is absent from the mapping (``UNKNOWN`` when looked up), never a default.
A fact whose value is ``None`` is *known to be absent* (the flag was not given, the variable not set).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from mtpdoctor.records import dataclass


class _Unknown(Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN = _Unknown.UNKNOWN


class Source(str, Enum):
    """Where a fact came from; members are ordered by how much they are trusted, best first."""

    USER = "user"  # --gpu, --sglang, --model, --command of the doctor's own command line
    COMMAND = "command"  # the launch command as typed
    LOG = "log"  # a line of the log (server_args, version, observations)
    PROBE = "probe"  # this host
    MODEL = "model"  # config.json and weight files
    RELEASE = "release"  # known of the release (defaults)
    DERIVED = "derived"  # computed from other facts


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. ``where`` is a file:line, a flag, or another human-readable place."""

    name: str
    value: Any
    source: Source
    where: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sources disagree on one fact; ``kept`` is the one the case goes by."""

    kept: Fact
    dropped: Fact


class Facts(Mapping[str, Any]):
    """An immutable mapping of dotted fact names to values; ``fact(name)`` gives the source too.

    ``closed`` holds name prefixes of which everything is known: once the launch command has been
    read, a ``flag.`` that is not there was not typed, so looking it up gives None, not UNKNOWN.
    """

    __slots__ = ("_closed", "_facts", "closed", "contradictions")

    def __init__(
        self,
        facts: Mapping[str, Fact],
        contradictions: tuple[Contradiction, ...] = (),
        closed: frozenset[str] = frozenset(),
    ) -> None:
        self._facts = dict(facts)
        self.contradictions = contradictions
        self.closed = closed
        self._closed = tuple(closed)

    def __getitem__(self, name: str) -> Any:
        return self._facts[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def look(self, name: str) -> Any:
        """The value, None when known to be absent, or UNKNOWN."""
        fact = self._facts.get(name)
        if fact is not None:
            return fact.value
        return None if name.startswith(self._closed) else UNKNOWN

    def fact(self, name: str) -> Fact | None:
        return self._facts.get(name)

    def merged(self, *others: Facts) -> Facts:
        """Facts of all; on a clash the earlier argument wins and the clash is recorded."""
        out = dict(self._facts)
        clashes = list(self.contradictions)
        closed = self.closed
        for other in others:
            clashes.extend(other.contradictions)
            closed = closed | other.closed
            for name, fact in other._facts.items():
                kept = out.setdefault(name, fact)
                if kept is not fact and kept.value != fact.value:
                    clashes.append(Contradiction(kept, fact))
        return Facts(out, tuple(clashes), closed)

    def without_contradictions_on(self, *prefixes: str) -> Facts:
        """Drop clashes that are SGLang at work (a resolved argument differs from the typed one)."""
        kept = tuple(c for c in self.contradictions if not c.kept.name.startswith(prefixes))
        return Facts(self._facts, kept, self.closed)


def make_facts(
    values: Mapping[str, Any], source: Source, where: str = "", closed: frozenset[str] = frozenset()
) -> Facts:
    return Facts({name: Fact(name, value, source, where) for name, value in values.items()}, closed=closed)


def whole_number(value: object) -> int | None:
    """The whole number that a fact is or says in digits; None for everything else, what is unknown too."""
    try:
        return int(str(value))
    except ValueError:
        return None
