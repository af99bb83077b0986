"""Placeholders: one for each private value, the same wherever the value stands.

A placeholder is made of plain word characters (``redacted-host-1``). Brackets would change what the text
says: ``<host-1>`` is a redirection to a shell, a tag in HTML, and no name to whatever reads prefixes of log
lines, so that the diagnosis of the redacted log would be another.
"""

from __future__ import annotations

import re

from mtpdoctor.anonymise.kept import KeptMap
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

KINDS = ("secret", "email", "url", "ip", "mac", "host", "user", "path", "model")
_TELLING = "gguf|tiny|dummy|random|smoke|debug"  # words that rules read off a model's path
TELLING = lazy(_TELLING, re.I)
PLACEHOLDER = lazy(rf"redacted-(?:{'|'.join(KINDS)})-\d+(?:-(?:{_TELLING}))?")


def is_placeholder(text: str) -> bool:
    return PLACEHOLDER.match(text) is not None


@dataclass(frozen=True, slots=True)
class Redaction:
    """One private value that was taken out: never the value itself."""

    kind: str
    placeholder: str
    count: int  # places
    first: str  # "server.log:12"


@dataclass(slots=True)
class _Seen:
    placeholder: str
    kind: str
    value: str
    first: str
    count: int = 0


class Tokens:
    """Hands out placeholders in the order in which values are first met, and counts their places. A value that
    ``remembered`` knows gets its placeholder of then."""

    def __init__(self, remembered: KeptMap | None = None) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._remembered = remembered
        self._numbers: dict[str, int] = {}
        self.where = ""
        self.numbered = True

    def put(self, kind: str, value: str, key: str | None = None, line: int | None = None) -> str:
        """The placeholder of ``value``; values of one ``key`` (default: itself) share it. ``line``: where it stands."""
        at = (kind, value if key is None else key)
        seen = self._seen.get(at)
        if seen is None:
            first = f"{self.where}:{line}" if line is not None and self.numbered else self.where
            seen = self._seen[at] = _Seen(self._placeholder(*at), kind, value, first)
        seen.count += 1
        return seen.placeholder

    def _placeholder(self, kind: str, key: str) -> str:
        kept = self._remembered
        known = kept.placeholder_of(kind, key) if kept is not None else None
        if known is not None:
            return known
        taken = kept.highest(kind) if kept is not None else 0
        number = self._numbers[kind] = max(self._numbers.get(kind, 0), taken) + 1
        told = TELLING.search(key) if kind == "path" else None
        return f"redacted-{kind}-{number}" + (f"-{told[0].lower()}" if told else "")

    def redactions(self) -> tuple[Redaction, ...]:
        """Sorted by kind, in the order they were met."""
        found = sorted(self._seen.values(), key=lambda s: KINDS.index(s.kind))  # stable
        return tuple(Redaction(s.kind, s.placeholder, s.count, s.first) for s in found)

    def mapping(self) -> dict[str, str]:
        """Placeholder to value: for the person's own machine only."""
        return {seen.placeholder: seen.value for seen in self._seen.values()}

    def entries(self) -> list[tuple[str, str, str, str]]:
        """Kind, key, value and placeholder of all."""
        return [(kind, key, seen.value, seen.placeholder) for (kind, key), seen in self._seen.items()]
