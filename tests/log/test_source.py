"""Opening inputs: any packing, any damage, one clear line for what is no log."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.log.source import LogSource, open_source

TEXT = b"".join(b"[2026-11-29 13:46:%02d TP%d] line %d of a log\n" % (i % 60, i % 4, i) for i in range(4000))
NOISE = random.Random(7).randbytes(20_000)  # the same in every process: test names are made of it
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": lambda data: bz2.compress(data, 1),
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,  # as the zstd command does
}


def content(source: LogSource) -> bytes:
    return source.read_at(0, source.size)


def opened(tmp_path: Path, data: bytes, name: str = "server.log") -> LogSource:
    path = tmp_path / name
    path.write_bytes(data)
    return open_source(str(path))


def error(tmp_path: Path, data: bytes) -> str:
    with pytest.raises(UserError) as e:
        opened(tmp_path, data)
    assert "\n" not in str(e.value)
    return str(e.value)


def test_a_plain_file_is_read_where_it_lies(tmp_path: Path) -> None:
    source = opened(tmp_path, TEXT)
    assert (source.size, source.truncated) == (len(TEXT), None)
    assert content(source) == TEXT
    assert source.read_at(100, 50) == TEXT[100:150]
    assert source.read_at(len(TEXT) - 5, 50) == TEXT[-5:]
    assert source.read_at(len(TEXT), 1) == b""


def test_a_file_that_shrinks_while_it_is_read_says_so(tmp_path: Path) -> None:
    source = opened(tmp_path, TEXT)
    os.truncate(tmp_path / "server.log", 1000)
    assert source.read_at(0, len(TEXT)) == TEXT[:1000]
    assert source.truncated == "the file shrank while it was read: read up to byte 1000"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["server.log", "server.log.gz"])  # the name does not count
def test_compressed_files_are_read_as_they_are(tmp_path: Path, kind: str, name: str) -> None:
    pack = PACK[kind]
    source = opened(tmp_path, pack(TEXT[:70_000]) + pack(b"") + pack(TEXT[70_000:]), name)
    assert content(source) == TEXT
    assert source.truncated is None


@pytest.mark.parametrize("kind", PACK)
def test_a_compressed_file_cut_off_is_read_up_to_there(tmp_path: Path, kind: str) -> None:
    data = PACK[kind](os.urandom(200_000).hex().encode() if kind == "bzip2" else TEXT)
    whole = content(opened(tmp_path, data))
    cut = len(data) * 9 // 10
    source = opened(tmp_path, data[:cut])
    assert 0 < source.size < len(whole)
    assert content(source) == whole[: source.size]
    assert source.truncated == f"{kind} stream ends early at byte {cut}: read up to there"


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_damage_in_the_middle_ends_the_reading_there(tmp_path: Path, kind: str) -> None:
    noise = b"".join(b"%d %s\n" % (i, os.urandom(20).hex().encode()) for i in range(20_000))
    data = bytearray(PACK[kind](noise[:500_000]) + PACK[kind](noise[500_000:]))
    at = len(data) * 3 // 4
    data[at : at + 64] = b"\xff" * 64
    source = opened(tmp_path, bytes(data))
    assert source.size >= 500_000
    assert source.truncated is not None
    assert kind in source.truncated
    assert "byte" in source.truncated
    assert noise[:500_000] == content(source)[:500_000]


@pytest.mark.parametrize("kind", PACK)
def test_what_follows_the_compressed_data_is_left_out_and_said(tmp_path: Path, kind: str) -> None:
    packed = PACK[kind](TEXT)
    source = opened(tmp_path, packed + b"this is no compressed data at all, really")
    assert content(source) == TEXT
    assert source.truncated == f"what follows the {kind} data at byte {len(packed)} is not {kind}: left out"


def test_zero_padding_behind_gzip_is_nothing_to_speak_of(tmp_path: Path) -> None:
    source = opened(tmp_path, gzip.compress(TEXT) + bytes(10_000) + gzip.compress(b"more\n"))
    assert (content(source), source.truncated) == (TEXT + b"more\n", None)


def test_a_compressed_file_with_nothing_readable_is_an_error(tmp_path: Path) -> None:
    assert "gzip stream ends early at byte 12" in error(tmp_path, gzip.compress(TEXT)[:12])


def test_large_input_spills_to_an_unlinked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = TEXT * 80  # 12 MB
    source = open_source("-", stdin=io.BytesIO(gzip.compress(text, 1)))
    assert source.size == len(text)
    assert source.read_at(10_000_000, 100) == text[10_000_000:10_000_100]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(UserError, match="temporary file: No space left") as e:
        open_source("-", stdin=io.BytesIO(TEXT * 80))
    assert "TMPDIR" in str(e.value.hint)


def test_standard_input(tmp_path: Path) -> None:
    source = open_source("-", stdin=io.BytesIO(TEXT))
    assert (source.name, content(source)) == ("standard input", TEXT)
    assert content(open_source("-", stdin=io.BytesIO(b""))) == b""
    assert content(open_source("-", stdin=io.BytesIO(PACK["zstd"](TEXT)))) == TEXT


def test_standard_input_from_a_pipe_and_from_a_file(tmp_path: Path) -> None:
    code = (
        "import sys; from mtpdoctor.log.source import open_source as o; s = o('-');"
        "sys.stdout.buffer.write(s.read_at(0, s.size))"
    )
    run = [sys.executable, "-c", code]
    path = tmp_path / "server.log"
    path.write_bytes(TEXT)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run(run, input=TEXT, capture_output=True, env=env, check=True).stdout == TEXT
    with path.open("rb") as f:
        os.lseek(f.fileno(), 100, os.SEEK_SET)  # a shell may have read some lines already
        assert subprocess.run(run, stdin=f, capture_output=True, env=env, check=True).stdout == TEXT[100:]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    import threading

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(TEXT))
    writer.start()
    assert content(open_source(str(fifo))) == TEXT
    writer.join()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_what_powershell_writes_is_read_as_text(tmp_path: Path, encoding: str) -> None:
    bom = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    text = "\u00fcber\r\n\U0001f600 caf\u00e9\r\n" * 5000
    source = opened(tmp_path, (bom + text).encode(encoding))
    assert content(source).decode().lstrip("\ufeff") == text
    packed = open_source("-", stdin=io.BytesIO(gzip.compress((bom + text).encode(encoding))))
    assert content(packed).decode().lstrip("\ufeff") == text


def test_an_empty_file_is_a_source_of_no_bytes(tmp_path: Path) -> None:
    assert opened(tmp_path, b"").size == 0
    assert opened(tmp_path, gzip.compress(b"")).size == 0


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("server.log", TEXT)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(100), "ELF executable"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG image"),
        (zipped(), "zip archive"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "PDF document"),
        ((80).to_bytes(8, "little") + b'{"__metadata__":{"format":"pt"}}', "safetensors"),
        (b"GGUF\x03\x00\x00\x00", "GGUF"),
        (b"server.log" + bytes(247) + b"ustar\x0000" + bytes(247) + TEXT, "tar archive"),
        (bytes(range(256)) * 40, "binary data"),
        (NOISE, "binary data"),
        (b"\x80\x04\x95\x10\x00\x00\x00", "pickle"),
    ],
    ids=["elf", "png", "zip", "pdf", "safetensors", "gguf", "tar", "bytes", "noise", "pickle"],
)
def test_what_is_no_log_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    message = error(tmp_path, data)
    assert what in message
    assert "not a log" in message
    assert str(tmp_path / "server.log") in message
    inside = error(tmp_path, gzip.compress(data))
    assert what in inside
    assert "inside the gzip file" in inside


@pytest.mark.parametrize(
    "data",
    [
        b"caf\xe9 au lait, latin-1\n" * 50,
        "日本語のログ\n".encode("euc-jp") * 5 + TEXT,
        bytes(200_000) + TEXT,  # rotated under a running server
        b"\x1b[31mred\x1b[0m \x08\x08bars\r" * 100,
        TEXT[:3000] + NOISE[:100] + TEXT[:3000],
        b"x",
    ],
    ids=["latin-1", "euc-jp", "zeros-first", "escapes", "noise-within", "one-byte"],
)
def test_odd_text_is_a_log_still(tmp_path: Path, data: bytes) -> None:
    assert content(opened(tmp_path, data)) == data


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        open_source(str(tmp_path / "nope.log"))
    with pytest.raises(UserError, match="is a directory"):
        open_source(str(tmp_path))
    with pytest.raises(UserError, match="cannot be opened"):
        open_source("a\0b")
    secret = tmp_path / "secret.log"
    secret.write_bytes(TEXT)
    secret.chmod(0)
    if os.geteuid() != 0:  # root may read anything
        with pytest.raises(UserError, match="permission denied"):
            open_source(str(secret))
    secret.chmod(stat.S_IRUSR)
    assert open_source(str(secret)).size == len(TEXT)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(PACK)), st.data())
def test_flipped_bytes_never_crash_and_keep_what_came_before(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    packed = bytearray(PACK[kind](TEXT[:20_000]) + PACK[kind](TEXT[20_000:40_000]))
    for at in data.draw(st.lists(st.integers(6, len(packed) - 1), min_size=1, max_size=4)):
        packed[at] ^= data.draw(st.integers(1, 255))
    try:
        source = opened(tmp_path, bytes(packed))
    except UserError as e:
        assert "\n" not in str(e)
        return
    assert source.truncated or source.size >= 20_000
