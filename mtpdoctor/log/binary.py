"""Telling by its first bytes what an input is, if it is no log."""

from __future__ import annotations

_COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
)
_MAGIC = (
    (b"\x7fELF", "an ELF executable or library"),
    (b"MZ\x90\x00", "a Windows executable"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (or a wheel, a .pt or .npz file)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"GGUF", "GGUF weights"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"LPKSHHRH", "a systemd journal file (export it with journalctl)"),
    (b"\x50\x2a\x4d\x18", "an LZ4 or skippable zstd frame"),
    (b"\x04\x22\x4d\x18", "an LZ4 file (unpack it with lz4 -d)"),
    (b"\x00asm", "a WebAssembly module"),
)
# every byte that text may hold: printable ASCII, \t \n \r, escapes and backspaces of terminals, high bytes
_TEXT = bytes(b for b in range(256) if (b >= 0x20 and b != 0x7F) or b in b"\t\n\r\x1b\x08\x0c\x07")


def compression_of(head: bytes) -> str | None:
    """gzip, zstd, xz or bzip2, by magic; the name of the file does not count."""
    for magic, name in _COMPRESSED:
        if head.startswith(magic):
            if name == "bzip2" and head[3:4] not in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"):
                continue
            return name
    return None


def binary_kind(head: bytes) -> str | None:
    """What the data is, as a noun phrase for people, or None when it may be a log.

    ``head``: the first bytes, tens of thousands are best. NUL bytes alone do not make a binary: a
    log rotated under a running server begins with a hole of them.
    """
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if head[257:262] == b"ustar":
        return "a tar archive (unpack it first)"
    if len(head) > 9 and head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 30:
        return "a safetensors file"
    if head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05") and b"\n" not in head[:4]:
        return "a Python pickle"
    seen = head.replace(b"\x00", b"")
    if not seen:
        return None
    strange = len(seen.translate(None, _TEXT))
    if strange > len(seen) // 10:
        return "binary data"
    if strange > len(seen) // 50:
        text = seen.decode("utf-8", "replace")
        if text.count("\ufffd") > len(text) // 5:
            return "binary data"
    return None
