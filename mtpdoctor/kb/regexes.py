"""A rule's regex: tried only on texts that hold all it asks for, and by the engine that fits the text.

Texts come from logs, which are untrusted: where one could stall the standard library's engine (``growth``), the
package ``regex`` tries it under a time limit. It is seldom needed, and loading it would be a tenth of a small run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mtpdoctor.compiled import compile_kept, finding_kept

if TYPE_CHECKING:
    from mtpdoctor.kb.literals import Runs

MOST_STEPS = 20_000_000  # of the standard library's engine: a fraction of a second
_FACTORIALS = (1, 1, 2, 6, 24, 120)


class NotARegex(ValueError):
    """No engine can compile it."""


class RuleRegex:
    """One regex of a rule."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._growth, self._runs = finding_kept(pattern, _findings)
        self._plain = compile_kept(pattern) if self._growth is not None else None
        self._limited: Any = None

    def search(self, text: str, start: int = 0, end: int | None = None, *, timeout: float) -> Any:
        """The first match, with ``group``, ``groupdict``, ``start`` and ``end``; None when there is none.

        ``timeout`` in seconds. Raises TimeoutError, and NotARegex.
        """
        for alternatives in self._runs:
            if not any(all(run in text for run in runs) for runs in alternatives):
                return None
        stop = len(text) if end is None else end
        if self._plain is not None and self._is_quick(max(min(stop, len(text)) - start, 0)):
            return self._plain.search(text, start, stop)
        if self._limited is None:
            self._limited = _limited(self._pattern)
        return self._limited.search(text, start, stop, timeout=timeout)

    def _is_quick(self, size: int) -> bool:
        if self._growth is None:
            return False
        factor, degree, apart = self._growth
        most = MOST_STEPS * apart
        return degree < len(_FACTORIALS) and factor * size**degree <= most * _FACTORIALS[degree]


@lru_cache(maxsize=2048)
def rule_regex(pattern: str) -> RuleRegex:
    """The regex, made once."""
    return RuleRegex(pattern)


def _findings(pattern: str) -> tuple[tuple[int, int, int] | None, Runs]:
    from mtpdoctor.kb.growth import growth  # parses the regex: only when no earlier run has
    from mtpdoctor.kb.literals import required_runs

    try:
        return growth(pattern), required_runs(pattern)
    except ValueError:  # only the package ``regex`` knows its syntax
        return None, ()


def _limited(pattern: str) -> Any:
    import regex

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise NotARegex(f"{pattern!r}: {error}") from None
