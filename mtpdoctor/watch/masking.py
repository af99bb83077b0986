"""Masking the secrets of a stream of bytes on its way to a file, as fast as a server can write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from mtpdoctor.redact import TRIGGERS, mask_secrets, mask_values

_FLOOD = 128 << 10  # bytes at once from which only the lines that may hold a secret are looked at
_LONGEST = 1 << 20  # a line without an end is passed on in pieces of this size
# SGLang's figures say "token", which is searched for, in every line of a serving log
_FIGURES = tuple(
    (text, text.replace(b"token", b"-----"))
    for text in (b"#token: ", b"-token: ", b"token usage: ", b"(token/s): ")
)
_ENDS = (b"\n", b"\r")


class StreamMasker:
    """Bytes in, whole lines with masked secrets out. ``values``: secrets known beforehand.

    Nothing else is changed. ``flush`` gives what is left of an unfinished line.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = tuple(values)
        self._rest = b""
        self._find: Callable[[bytes], list[tuple[int, int]]] | None = None

        @lru_cache(maxsize=4096)
        def line(raw: bytes) -> bytes:
            return self._mask(raw)

        self._line = line

    @property
    def waiting(self) -> bool:
        return bool(self._rest)

    def feed(self, data: bytes) -> bytes:
        end = max(data.rfind(end) for end in _ENDS) + 1
        if not end:
            self._rest += data
            return self.flush() if len(self._rest) > _LONGEST else b""
        whole, self._rest = self._rest + data[:end], data[end:]
        return self._few(whole) if len(whole) < _FLOOD else self._many(whole)

    def flush(self) -> bytes:
        rest, self._rest = self._rest, b""
        return self._few(rest)

    def _few(self, data: bytes) -> bytes:
        if not data:
            return data
        if not self._values and not _may_hold(_without_figures(data)):
            return data
        return (
            b"".join(map(self._line, data.splitlines(keepends=True)))
            if b"PRIVATE KEY" not in data
            else (self._mask(data))
        )

    def _many(self, data: bytes) -> bytes:
        if b"PRIVATE KEY" in data:  # the one secret of several lines
            return self._mask(data)
        if self._find is None:
            from mtpdoctor.log.engines import HYPERSCAN_FROM, make_engine

            words: Sequence[bytes] = [w.encode() for w in (*TRIGGERS, *(v.lower() for v in self._values))]
            self._find = make_engine(words, size=HYPERSCAN_FROM).find
        lowered = _without_figures(data)
        out: list[bytes] = []
        at = 0
        for _, hit in self._find(lowered):
            if hit < at:
                continue
            start = data.rfind(b"\n", at, hit) + 1 or at
            end = data.find(b"\n", hit) + 1 or len(data)
            out += (data[at:start], self._line(data[start:end]))
            at = end
        out.append(data[at:])
        return b"".join(out)

    def _mask(self, raw: bytes) -> bytes:
        text = raw.decode("utf-8", "surrogateescape")
        return mask_values(mask_secrets(text), self._values).encode("utf-8", "surrogateescape")


def _without_figures(data: bytes) -> bytes:
    """In small letters, and of the same length, so that places stay."""
    lowered = data.lower()
    for words, harmless in _FIGURES:
        lowered = lowered.replace(words, harmless)
    return lowered


def _may_hold(lowered: bytes) -> bool:
    return any(word in lowered for word in _TRIGGERS)


_TRIGGERS = tuple(word.encode() for word in TRIGGERS)
