"""Decompression that reads up to damage and says where it was.

All four formats may hold several members one after another. Input is fed in small pieces so that
memory stays flat however well it was compressed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from mtpdoctor.errors import UserError

_FEED = 2048  # of input at a time: zstd can blow up 4 bytes to 128 KiB
_OUT = 1 << 18


class Damage:
    """What was wrong with a stream; ``text`` is None as long as nothing was."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text: str | None = None


class _Member(ABC):
    """One member of a compressed stream. ``feed`` gives output pieces and may raise ``errors``."""

    errors: tuple[type[BaseException], ...] = ()

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    @property
    @abstractmethod
    def ended(self) -> bool: ...

    @property
    @abstractmethod
    def rest(self) -> bytes:
        """Input after the end of the member."""


class _Gzip(_Member):
    def __init__(self) -> None:
        import zlib

        self._d = zlib.decompressobj(31)
        self.errors = (zlib.error,)

    def feed(self, data: bytes) -> Iterator[bytes]:
        before = self._d.copy()
        try:
            out = self._d.decompress(data, _OUT)
        except self.errors:
            # the bytes of this piece before the damage are still good: get them one by one
            self._d = before
            for i in range(len(data)):
                yield self._d.decompress(data[i : i + 1])
            raise
        yield out
        while self._d.unconsumed_tail and not self._d.eof:
            yield self._d.decompress(self._d.unconsumed_tail, _OUT)

    @property
    def ended(self) -> bool:
        return self._d.eof

    @property
    def rest(self) -> bytes:
        return self._d.unused_data


class _Std(_Member):
    """bz2 and lzma share one interface."""

    def __init__(self, decompressor: Any, errors: tuple[type[BaseException], ...]) -> None:
        self._d = decompressor
        self.errors = errors

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._d.decompress(data, _OUT)
        while not self._d.eof and not self._d.needs_input:
            yield self._d.decompress(b"", _OUT)

    @property
    def ended(self) -> bool:
        return bool(self._d.eof)

    @property
    def rest(self) -> bytes:
        return bytes(self._d.unused_data)


class _Zstd(_Member):
    def __init__(self) -> None:
        import zstandard

        self._d = zstandard.ZstdDecompressor().decompressobj()
        self.errors = (zstandard.ZstdError,)

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._d.decompress(data)

    @property
    def ended(self) -> bool:
        return bool(self._d.eof)

    @property
    def rest(self) -> bytes:
        return bytes(self._d.unused_data)


def _bz2() -> _Member:
    import bz2

    return _Std(bz2.BZ2Decompressor(), (OSError, ValueError, EOFError))


def _xz() -> _Member:
    import lzma

    return _Std(lzma.LZMADecompressor(), (lzma.LZMAError, EOFError))


_MEMBERS: dict[str, Callable[[], _Member]] = {"gzip": _Gzip, "bzip2": _bz2, "xz": _xz, "zstd": _Zstd}


def decompressed(kind: str, pieces: Iterator[bytes], damage: Damage) -> Iterator[bytes]:
    """The decompressed bytes of ``pieces``. Never raises for bad data: stops and fills ``damage``.

    Raises UserError when the library for ``kind`` is not installed.
    """
    try:
        new: Callable[[], _Member] = _MEMBERS[kind]
        member = new()
    except ImportError as e:
        raise UserError(f"{kind} files cannot be read here: {e}", hint="unpack the log first") from None
    position = 0  # of input consumed
    fresh = True  # the member has had no input yet
    members = 0
    for piece in pieces:
        at = 0
        while at < len(piece):
            data = piece[at : at + _FEED]
            if fresh and members:
                data = data.lstrip(b"\x00")  # padding of tapes and block devices between members
                if not data:
                    at += _FEED
                    position += _FEED
                    continue
            try:
                yield from member.feed(data)
            except member.errors as e:
                if fresh and members:
                    damage.text = f"what follows the {kind} data at byte {position} is not {kind}: left out"
                else:
                    damage.text = f"{kind} data is damaged near byte {position} ({e}): read up to there"
                return
            fresh = False
            took = min(_FEED, len(piece) - at)
            if member.ended:
                took -= len(member.rest)
                member = new()
                members += 1
                fresh = True
            at += took
            position += took
    if not fresh:
        damage.text = f"{kind} stream ends early at byte {position}: read up to there"
