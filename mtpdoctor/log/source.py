"""Inputs of a log reading: plain, compressed, UTF-16 and piped files as random-access bytes.

Plain files are read with ``pread`` where they lie (no mmap: mapped pages would count as memory).
Compressed, transcoded and piped input is written once to an unlinked temporary file (small ones stay
in memory), so that every input can be read at any offset with flat memory.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, BinaryIO

from mtpdoctor.errors import UserError
from mtpdoctor.log.binary import binary_kind, compression_of

_PIECE = 1 << 18
_IN_MEMORY = 8 << 20  # spilled input up to this size stays in memory
_BOMS = (  # UTF-32 first: its little-endian mark starts with UTF-16's
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class LogSource:
    """One input. ``name`` is for people ("standard input" for ``-``); ``size`` counts decompressed
    bytes (UTF-8 where the input was UTF-16); ``truncated`` names damage that was read around."""

    __slots__ = ("_base", "_fd", "_file", "name", "size", "truncated")

    def __init__(
        self, name: str, size: int, *, fd: int = -1, base: int = 0, file: IO[bytes] | None = None
    ) -> None:
        self.name = name
        self.size = size
        self.truncated: str | None = None
        self._fd = fd
        self._base = base
        self._file = file

    @staticmethod
    def of_bytes(data: bytes, name: str = "log") -> LogSource:
        """A source over bytes in memory, taken as they are (no decompression)."""
        return LogSource(name, len(data), file=io.BytesIO(data))

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; short only at the end (or where the file shrank)."""
        size = min(size, self.size - offset)
        if size <= 0 or offset < 0:
            return b""
        if isinstance(self._file, io.BytesIO):
            return self._file.getbuffer()[offset : offset + size].tobytes()
        fd = self._fd if self._file is None else self._file.fileno()
        data = _pread(fd, size, offset + self._base)
        while data and len(data) < size:
            more = _pread(fd, size - len(data), offset + self._base + len(data))
            if not more:
                break
            data += more
        if len(data) < size and self._file is None:
            self.truncated = f"the file shrank while it was read: read up to byte {offset + len(data)}"
        return data

    def grown(self) -> int:
        """Takes in what was written to a plain file since: how many bytes. Negative: it is that much shorter
        than it was, and begun anew or cut (nothing is taken in). 0 for compressed and piped input."""
        if self._fd < 0 or self._file is not None:
            return 0
        more = os.fstat(self._fd).st_size - self._base - self.size
        if more > 0:
            self.size += more
        return more

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LogSource:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # interpreter shutdown
            self.close()


def _pread(fd: int, size: int, offset: int) -> bytes:
    try:
        return os.pread(fd, size, offset)
    except OSError as e:
        raise UserError(f"reading the log failed at byte {offset}: {e.strerror}") from None


def open_source(path: str, *, stdin: BinaryIO | None = None, limit: int | None = None) -> LogSource:
    """The input at ``path``; ``-`` is ``stdin`` (default: the process's own).

    ``limit``: bytes that compressed input is unpacked to at most; the rest is left out and said so
    (``truncated``). An empty input is a source of size 0. Raises UserError: no such file, a directory, no permission,
    something that is no log (an executable, an image, weights, an archive), nothing readable in a
    damaged compressed file.
    """
    if path == "-":
        return _open_stream("standard input", stdin if stdin is not None else sys.stdin.buffer)
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as e:
        raise _cannot_open(path, e) from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        os.close(fd)
        raise UserError(f"{path}: is a directory", hint="name the log file itself")
    if not stat.S_ISREG(mode):
        with os.fdopen(fd, "rb", buffering=0) as f:
            return _open_stream(path, f)
    return _open_regular(path, fd, 0, limit)


def open_stream(name: str, stream: IO[bytes], *, limit: int | None = None) -> LogSource:
    """The input that ``stream`` gives from where it stands (a member of an archive, a remote file), unpacked
    where it is compressed. ``limit`` as for :func:`open_source`; it holds for plain input too. Raises UserError.
    """

    def read(n: int) -> bytes:
        try:
            return stream.read(n) or b""
        except (OSError, EOFError) as e:
            raise UserError(f"{name}: reading failed: {getattr(e, 'strerror', None) or e}") from None

    return _spilled(name, read, limit)


def _cannot_open(path: str, e: Exception) -> UserError:
    code = getattr(e, "errno", None)
    if code == errno.ENOENT:
        return UserError(f"{path}: no such file", hint="check the path, or use '-' for standard input")
    if code in (errno.EACCES, errno.EPERM):
        return UserError(f"{path}: permission denied", hint="read it as a user who may, or pipe it in")
    return UserError(f"{path!r}: cannot be opened: {getattr(e, 'strerror', None) or e}")


def _open_stream(name: str, stream: IO[bytes]) -> LogSource:
    try:
        fd = stream.fileno()
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
    except (OSError, AttributeError, ValueError):
        regular = False
    if regular:  # "< server.log": read it where it lies
        at = os.lseek(fd, 0, os.SEEK_CUR)
        return _open_regular(name, os.dup(fd), at)

    def read(n: int) -> bytes:
        try:
            return stream.read(n) or b""
        except OSError as e:
            raise UserError(f"{name}: reading failed: {e.strerror}") from None

    return _spilled(name, read)


def _open_regular(name: str, fd: int, base: int, limit: int | None = None) -> LogSource:
    size = max(os.fstat(fd).st_size - base, 0)
    source = LogSource(name, size, fd=fd, base=base)
    try:
        head = source.read_at(0, 4096)
        if not compression_of(head) and not _encoding_of(head):
            _refuse_binary(source)
            return source
        position = 0

        def read(n: int) -> bytes:
            nonlocal position
            data = source.read_at(position, n)
            position += len(data)
            return data

        spilled = _spilled(name, read, limit)
    except BaseException:
        source.close()
        raise
    source.close()
    return spilled


def _encoding_of(head: bytes) -> str | None:
    return next((name for bom, name in _BOMS if head.startswith(bom)), None)


def _spilled(name: str, read: Callable[[int], bytes], limit: int | None = None) -> LogSource:
    """What ``read`` gives, decompressed and transcoded, as a source of its own: all of it, or ``limit`` bytes."""
    from mtpdoctor.log.decompress import Damage, decompressed

    first = b""
    while len(first) < 4096:  # pipes give little at a time
        piece = read(4096 - len(first))
        if not piece:
            break
        first += piece
    pieces: Iterator[bytes] = _pieces(first, read)
    damage: Damage = Damage()
    kind = compression_of(first)
    if kind:
        pieces = decompressed(kind, pieces, damage)
    spill = _Spill(name)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4096:
            break
    encoding = _encoding_of(head)
    rest = _chain(head, pieces)
    try:
        for piece in _transcoded(rest, encoding) if encoding else rest:
            if limit is not None and spill.size + len(piece) > limit:
                spill.write(piece[: limit - spill.size])
                damage.text = f"it unpacks to more than {limit >> 20} MiB: the rest is left out"
                break
            spill.write(piece)
        source = spill.source()
        source.truncated = damage.text
        if kind and damage.text and not source.size:
            raise UserError(
                f"{name}: nothing could be read from it: {damage.text}", hint="copy the file again"
            )
        if not encoding:
            _refuse_binary(source, inside=kind)
    except BaseException:
        spill.close()
        raise
    return source


def _pieces(first: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = read(_PIECE)


def _chain(head: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from rest


def _transcoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


class _Spill:
    """Grows in memory first, then in an unlinked temporary file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file: IO[bytes] = io.BytesIO()
        self.size = 0

    def write(self, data: bytes) -> None:
        try:
            if self.size <= _IN_MEMORY < self.size + len(data):
                import tempfile

                large = tempfile.TemporaryFile(prefix="mtpdoctor-")  # noqa: SIM115 - lives as long as the source
                self._file.seek(0)
                large.write(self._file.read())
                self._file = large
            self._file.write(data)
        except OSError as e:
            raise UserError(
                f"{self._name}: cannot be unpacked to a temporary file: {e.strerror}",
                hint="free some space, or point TMPDIR to a larger disk",
            ) from None
        self.size += len(data)

    def source(self) -> LogSource:
        self._file.flush()
        return LogSource(self._name, self.size, file=self._file)

    def close(self) -> None:
        self._file.close()


def _refuse_binary(source: LogSource, inside: str | None = None) -> None:
    what = binary_kind(source.read_at(0, 1 << 16))
    if what is None:
        return
    where = f"{source.name}: " + (f"inside the {inside} file is " if inside else "is ")
    raise UserError(f"{where}{what}, not a log", hint="give the text that the server printed")
