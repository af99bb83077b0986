"""Following a file that grows, is replaced (rename and create) or emptied (copytruncate)."""

from __future__ import annotations

import contextlib
import os

from mtpdoctor.errors import UserError

_KNOWN = 64  # bytes before the place read up to, by which a file that was written anew is noticed


class FileFollower:
    """Reads what is appended to ``path``. Nothing is read twice, and what was written just before a rotation is
    not lost; rotated parts themselves (``server.log.1``, ``.gz``) are not followed.

    Raises UserError when the file cannot be read at first; later it may be missing for a while.
    """

    def __init__(self, path: str, *, must_exist: bool = True) -> None:
        self.path = path
        self._fd = -1
        self._at = 0
        self._before = b""  # the bytes right before _at
        self.turns = 0  # how often the file was replaced or emptied
        self._open()
        if self._fd < 0 and must_exist:
            raise UserError(
                f"cannot read {path}: {self._why}",
                hint="name the file the server's output goes to (--wait waits for it)",
            )

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes that are new; empty: there is nothing (yet)."""
        if self._fd < 0:
            self._open()
            if self._fd < 0:
                return b""
        self._notice_emptied()
        data = self._read(size)
        if not data and self._replaced():
            data = self._read(size)  # what was written between that look and the rotation
        if not data and self._replaced():
            os.close(self._fd)
            self._fd, self._at, self._before = -1, 0, b""
            self.turns += 1
            self._open()
            data = self._read(size) if self._fd >= 0 else b""
        return data

    def behind(self) -> int:
        """Bytes that wait to be read."""
        try:
            return max(os.fstat(self._fd).st_size - self._at, 0) if self._fd >= 0 else 0
        except OSError:
            return 0

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self._why = error.strerror or str(error)

    def _read(self, size: int) -> bytes:
        try:
            data = os.pread(self._fd, size, self._at)
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from None
        if data:
            self._at += len(data)
            self._before = (self._before + data[-_KNOWN:])[-_KNOWN:]
        return data

    def _notice_emptied(self) -> None:
        """Emptied, and perhaps longer again by now: then what stood before our place is not there any more."""
        emptied = os.fstat(self._fd).st_size < self._at
        if not emptied and self._before:
            with contextlib.suppress(OSError):
                emptied = os.pread(self._fd, len(self._before), self._at - len(self._before)) != self._before
        if emptied:
            self._at, self._before = 0, b""
            self.turns += 1

    def _replaced(self) -> bool:
        try:
            now, mine = os.stat(self.path), os.fstat(self._fd)
        except OSError:  # moved away, and no new one yet: the old one may still be written to
            return False
        return (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)
