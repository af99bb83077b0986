"""From what the person gave to the files there: folders, globs, archives, URLs, lists of names."""

from __future__ import annotations

import glob
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from mtpdoctor.errors import UserError
from mtpdoctor.triage.archives import Unpacked, is_archive, looks_like_archive, unpack
from mtpdoctor.triage.gather import Item
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.peek import HEAD, TAIL, Peek, peek_of, unpacked_head
from mtpdoctor.triage.remote import ends_of, is_url, list_remote, open_remote

_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_NO_LOGS = frozenset(
    {
        "7z", "bin", "bmp", "c", "cc", "cfg", "conf", "cpp", "csv", "cu", "db", "dll", "egg", "exe", "gif", "gguf",
        "h", "html", "ini", "ipynb", "jinja", "jpeg", "jpg", "js", "lock", "md", "model", "npy", "npz", "nsys-rep",
        "o", "onnx", "parquet", "pb", "pdf", "pickle", "pid", "pkl", "png", "pt", "pth", "py", "pyc", "rar", "rst",
        "safetensors", "service", "sh", "so", "sock", "sqlite", "svg", "toml", "whl", "xml", "yaml", "yml",
    }
)  # fmt: skip
OTHER = "other kinds of files"


@dataclass(slots=True)
class Found:
    """What there is. ``places``: where members of archives were copied to; ``errors``: inputs that could not be
    read, and why. Close it when the triage is over: the copies go."""

    items: list[Item] = field(default_factory=list)
    peeks: dict[str, Peek] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    errors: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _seen: set[tuple[int, int]] = field(default_factory=set)

    @property
    def folder(self) -> str:
        """The private folder for members of archives."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="mtpdoctor-triage-", ignore_cleanup_errors=True)
        return self._folder.name

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Found:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def find(
    paths: Iterable[str], *, stdin: BinaryIO | None = None, limits: Limits | None = None, look: bool = True
) -> Found:
    """The files at ``paths``. ``-`` stands for a list of them on ``stdin``, one a line or NUL-separated.

    ``look``: take a look at both ends of each, so that files of one launch can be told. What cannot be read
    stands in ``errors``; nothing is raised for it.
    """
    limits = limits or Limits()
    found = Found()
    try:
        for path in _listed(paths, stdin):
            try:
                _take(path, found, limits)
            except UserError as error:
                found.errors.append((path, f"{error}" + (f" ({error.hint})" if error.hint else "")))
        _look(found, look)
    except BaseException:
        found.close()
        raise
    return found


def _listed(paths: Iterable[str], stdin: BinaryIO | None) -> Iterator[str]:
    for path in paths:
        if path != "-":
            yield path
        elif stdin is not None:
            data = stdin.read()
            for name in data.split(b"\0" if b"\0" in data else b"\n"):
                name = name if b"\0" in data else name.rstrip(b"\r")
                if name:
                    yield os.fsdecode(name)


def _take(path: str, found: Found, limits: Limits) -> None:
    if is_url(path):
        if path.startswith("file://"):
            from urllib.parse import unquote

            _take(unquote(path[len("file://") :].removeprefix("localhost")), found, limits)
            return
        _take_remote(path, found, limits)
        return
    if os.path.isdir(path):
        _walk(path, found, limits)
    elif os.path.lexists(path):
        _take_file(path, found, limits, given=True)
    elif glob.has_magic(path):
        names = sorted(glob.glob(path, recursive=True))
        if not names:
            raise UserError(f"{path}: nothing fits it", hint="check the pattern")
        for name in names:
            if os.path.isdir(name):
                _walk(name, found, limits)
            elif why := _no_log_by_name(name):
                found.skipped[why] += 1
            else:
                _take_file(name, found, limits, given=False)
    else:
        raise UserError(f"{path}: no such file or folder", hint="check the path")


def _walk(folder: str, found: Found, limits: Limits) -> None:
    for base, folders, names in os.walk(
        folder, onerror=lambda e: found.errors.append((e.filename, str(e.strerror)))
    ):
        folders[:] = sorted(f for f in folders if f not in _FOLDERS and not f.startswith("."))
        for name in sorted(names):
            why = _no_log_by_name(name)
            if why:
                found.skipped[why] += 1
                continue
            path = os.path.join(base, name)
            try:
                _take_file(path, found, limits, given=False)
            except UserError as error:
                found.errors.append((path, str(error)))


def _no_log_by_name(path: str) -> str | None:
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if is_archive(name):
        return None
    if name.startswith(".") or name.endswith("~") or name.rpartition(".")[2] in _NO_LOGS:
        return OTHER
    return None


def _member_no_log(name: str) -> str | None:
    return "archives within archives" if is_archive(name) else _no_log_by_name(name)


def _take_file(path: str, found: Found, limits: Limits, *, given: bool) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(status.st_mode):
        if given:
            found.items.append(Item(path, None, given=True))  # a pipe: read it as it comes
        else:
            found.skipped["pipes, sockets and devices"] += 1
        return
    if status.st_ino and (status.st_dev, status.st_ino) in found._seen:
        found.skipped["named twice"] += 1
        return
    found._seen.add((status.st_dev, status.st_ino))
    if is_archive(path) or (given and _is_archive_inside(path)):
        try:
            stream = open(path, "rb")  # noqa: SIM115 - closed below; an error of opening is another one
        except OSError as error:
            raise UserError(f"{path}: {error.strerror or error}") from None
        with stream:
            _add(unpack(path, stream, status.st_size, found.folder, limits, wanted=_member_no_log), found)
        return
    if not status.st_size and not given:
        found.skipped["empty"] += 1
        return
    found.items.append(Item(path, status.st_size, given=given))


def _is_archive_inside(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return looks_like_archive(stream.read(4096), unpacked_head)
    except OSError:
        return False


def _take_remote(url: str, found: Found, limits: Limits) -> None:
    listed = list_remote(url)
    given = len(listed) == 1 and listed[0][0].rstrip("/") == url.rstrip("/")
    for name, size in listed:
        why = None if given else _no_log_by_name(name)
        if why:
            found.skipped[why] += 1
        elif is_archive(name):
            stream, length = open_remote(name)
            with stream:
                _add(unpack(name, stream, length, found.folder, limits, wanted=_member_no_log), found)
        elif size == 0 and not given:
            found.skipped["empty"] += 1
        else:
            found.items.append(Item(name, size, given=given))


def _add(unpacked: Unpacked, found: Found) -> None:
    found.items += unpacked.items
    found.places |= unpacked.places
    found.peeks |= unpacked.peeks
    found.skipped.update(unpacked.skipped)
    found.notes += unpacked.notes


def _look(found: Found, look: bool) -> None:
    """Looks at both ends of every file; what a folder holds beside logs goes."""
    wanted = [
        i for i in found.items if i.path not in found.peeks and (look or not i.given) and i.size is not None
    ]
    remote = [i.path for i in wanted if is_url(i.path)]
    for path, head, tail in _local_ends(i for i in wanted if not is_url(i.path)):
        found.peeks[path] = peek_of(head, tail, name=path)
    for path, head, tail in ends_of(remote, HEAD, TAIL) if remote else ():
        found.peeks[path] = peek_of(head, tail, name=path)
    kept = []
    for item in found.items:
        peek = found.peeks.get(item.path)
        if peek is not None and peek.no_log and not item.given:
            found.skipped[peek.no_log] += 1
        else:
            kept.append(item)
    found.items = kept


def _local_ends(items: Iterable[Item]) -> Iterator[tuple[str, bytes, bytes]]:
    for item in items:
        try:
            with open(item.path, "rb", buffering=0) as file:
                head = file.read(HEAD)
                tail = b""
                if (item.size or 0) > HEAD:
                    file.seek(max((item.size or 0) - TAIL, 0))
                    tail = file.read(TAIL)
        except OSError:
            continue  # said when it is examined
        yield item.path, head, tail
