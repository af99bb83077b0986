"""Searching a log of any size: line by line forwards or backwards, a megabyte at a time. No Textual here.

A pattern in lower case finds capitals too. Regular expressions run under a time limit: one that explodes
says so instead of hanging.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.log.clean import strip_bytes
from mtpdoctor.tui.log.document import Cancelled, LogDocument

TIME_LIMIT = 2.0  # seconds for a regular expression on one megabyte
_SHORT_LIMIT = 0.02  # and for marking what it found on one line of the screen


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is searched: plain text, or (``is_regex``) a regular expression."""

    text: str
    is_regex: bool = False

    @property
    def any_case(self) -> bool:
        return self.text == self.text.lower()

    def matcher(self) -> Callable[[bytes], Iterator[int]]:
        """Where it matches in bytes, in order. Raises UserError for what is no regular expression."""
        if not self.is_regex:
            return self._literal()
        compiled = self._compile(self.text.encode("utf-8", "replace"))

        def matches(data: bytes) -> Iterator[int]:
            try:
                for m in compiled.finditer(data, timeout=TIME_LIMIT, concurrent=True):
                    yield m.start()
            except TimeoutError:
                raise UserError("this pattern takes too long", hint="make it simpler") from None

        return matches

    def _literal(self) -> Callable[[bytes], Iterator[int]]:
        wanted = self.text.encode("utf-8", "replace")
        if self.any_case:
            wanted = wanted.lower()

        def matches(data: bytes) -> Iterator[int]:
            if self.any_case:
                data = data.lower()
            at = data.find(wanted)
            while at >= 0:
                yield at
                at = data.find(wanted, at + 1)

        return matches

    def _compile(self, text: bytes | str) -> Any:
        import regex

        flags = regex.MULTILINE | (regex.IGNORECASE if self.any_case else 0)
        try:
            return regex.compile(text, flags)
        except regex.error as error:
            raise UserError(f"not a regular expression: {error}") from None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it stands in one shown line."""
        if not self.text:
            return []
        if not self.is_regex:
            flags = re.IGNORECASE if self.any_case else 0
            return [m.span() for m in re.finditer(re.escape(self.text), text, flags)]
        try:
            found = self._compile(self.text).finditer(text[:4096], timeout=_SHORT_LIMIT)
            return [m.span() for m in found if m.end() > m.start()]
        except (TimeoutError, UserError):
            return []


def find(
    document: LogDocument,
    pattern: Pattern,
    number: int,
    *,
    forward: bool = True,
    allowed: Callable[[int], bool] = lambda number: True,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[float], None] | None = None,
) -> int | None:
    """The first line from ``number`` on (itself included) that matches, in the direction asked for.

    Raises UserError for a bad or exploding pattern, Cancelled once ``stop`` says so."""
    matches = pattern.matcher()
    for first, data in document.blocks(number, forward):
        if stop():
            raise Cancelled
        if progress is not None:
            progress(abs(first - number) / max(document.count, 1))
        text = strip_bytes(data)
        found: int | None = None
        counted, line = 0, first
        for at in matches(text):
            line += text.count(b"\n", counted, at)
            counted = at
            if forward and line >= number and allowed(line):
                return line
            if not forward:
                if line > number:
                    break
                if line != found and allowed(line):
                    found = line
        if found is not None:
            return found
    return None


def find_round(
    document: LogDocument, pattern: Pattern, number: int, *, forward: bool = True, **how: Any
) -> tuple[int | None, bool]:
    """As ``find``; where nothing is left, on from the other end. (line, whether it went round)."""
    found = find(document, pattern, number, forward=forward, **how) if 1 <= number <= document.count else None
    if found is not None:
        return found, False
    return find(document, pattern, 1 if forward else document.count, forward=forward, **how), True
