"""Logs behind URLs, through fsspec: s3://, gs://, hdfs://, memory:// and whatever else it has a driver for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from mtpdoctor.errors import UserError

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "hdfs": "hdfs", "abfs": None, "az": None}
_THREADS = 16


def is_url(path: str) -> bool:
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme.replace("+", "").replace("-", "").replace("::", "").isalnum()


def list_remote(url: str) -> list[tuple[str, int | None]]:
    """Files at, under, or fitting ``url``, with their sizes, sorted. Raises UserError."""
    fs, path = _filesystem(url)
    with _told(url):
        if any(c in path for c in "*?["):
            found = fs.glob(path, detail=True)
        elif fs.isdir(path):
            found = fs.find(path, detail=True)
        else:
            found = {path: fs.info(path)}
        files = [
            (str(fs.unstrip_protocol(name)), info.get("size"))
            for name, info in found.items()
            if info.get("type") != "directory"
        ]
    if not files:
        raise UserError(f"{url}: no files there", hint="check the address")
    return sorted(files)


def open_remote(url: str) -> tuple[IO[bytes], int | None]:
    """The file as a stream (seekable where the driver can), and its size. Raises UserError."""
    fs, path = _filesystem(url)
    with _told(url):
        stream = fs.open(path, "rb")
        return _Told(url, stream), getattr(stream, "size", None)  # type: ignore[return-value]


def ends_of(urls: Iterable[str], head: int, tail: int) -> Iterator[tuple[str, bytes, bytes]]:
    """The first ``head`` and last ``tail`` bytes of each; empty where one cannot be read. Many at a time."""
    from concurrent.futures import ThreadPoolExecutor

    def ends(url: str) -> tuple[str, bytes, bytes]:
        try:
            stream, size = open_remote(url)
            with stream:
                first = stream.read(head)
                last = b""
                if size is not None and size > head:
                    stream.seek(max(size - tail, 0))
                    last = stream.read(tail)
            return url, first, last
        except UserError:
            return url, b"", b""  # said when it is examined

    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(ends, urls)


def _filesystem(url: str) -> tuple[Any, str]:
    scheme = url.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise UserError(
            f"{url}: reading {scheme}:// needs fsspec, which is not installed", hint=_install(scheme)
        ) from None
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UserError(
            f"{url}: the driver for {scheme}:// is not installed ({error})", hint=_install(scheme)
        ) from None
    except ValueError as error:
        raise UserError(
            f"{url}: {error}", hint="local paths, s3://, gs://, hdfs://, file:// are known"
        ) from None
    except Exception as error:  # a driver that cannot connect raises what it likes
        raise _cannot(url, error) from None
    return fs, path


def _install(scheme: str) -> str:
    extra = _EXTRAS.get(scheme, "remote")
    return f"pip install 'mtpdoctor[{extra}]'" if extra else f"install fsspec and its driver for {scheme}://"


class _told:
    """Turns what drivers raise into one line for people."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, UserError):
            raise _cannot(self._url, error) from None


def _cannot(url: str, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(f"{url}: no such file", hint="check the address")
    if isinstance(error, PermissionError):
        return UserError(f"{url}: permission denied", hint="check the credentials of this environment")
    text = " ".join(str(error).split())[:200]
    return UserError(f"{url}: cannot be read: {type(error).__name__}{': ' + text if text else ''}")


class _Told:
    """A remote stream whose errors are those of files."""

    def __init__(self, url: str, stream: Any) -> None:
        self._url = url
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        with _told(self._url):
            return bytes(self._stream.read(size))
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        with _told(self._url):
            return int(self._stream.seek(offset, whence))
        return 0

    def tell(self) -> int:
        return int(self._stream.tell())

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
