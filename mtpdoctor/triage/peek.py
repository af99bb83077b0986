"""A look at both ends of a file: is it a log, when was it written, which launch does it say it is?

Cheap (some 70 KiB of a file), and only used to decide which files belong together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from mtpdoctor.log.binary import binary_kind, compression_of

HEAD, TAIL = 64 << 10, 8 << 10  # bytes
_TIME = re.compile(rb"(20\d\d-[01]\d-[0-3]\d)[T ,]{1,2}([0-2]\d:[0-5]\d:[0-5]\d)")
# SGLang's own; a transport may print another time zone in front of it
_OWN = re.compile(rb"\[(20\d\d-[01]\d-[0-3]\d) ([0-2]\d:[0-5]\d:[0-5]\d)[ \]]")
_ARGS = re.compile(rb"server_args=(?:ServerArgs\(|\{)")
_FIELD = {
    name: re.compile(
        rb"(?<![\w])\\*'?" + name.encode() + rb"\\*'?\s*[=:]\s*\\*(?:'([^'\\]*)|\"([^\"\\]*)|(-?\d+))"
    )
    for name in ("model_path", "nnodes", "node_rank", "dist_init_addr", "random_seed", "port")
}
_RANK = re.compile(rb" ((?:(?:DP|PP|TP|EP|ATTN_TP|MOE_DP)\d+ ?)+)\]")
_JSON_LINE = re.compile(rb"\s*\{.*\"(?:log|msg|message|MESSAGE|text|line)\"\s*:")
_LINES_OF_JSON = re.compile(rb"\s*[\[{]")


@dataclass(frozen=True, slots=True)
class Peek:
    """``no_log`` says what it is instead, when it is none. Times are as printed, without a zone; ``own``: by SGLang
    itself, not by what carried the lines."""

    no_log: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    own: bool = False
    has_args: bool = False
    model: str | None = None
    nnodes: int | None = None
    node_rank: int | None = None
    address: str | None = None
    seed: str | None = None
    port: str | None = None
    ranks: frozenset[str] = frozenset()  # that its first lines carry, as "DP1 TP3"


def peek_of(head: bytes, tail: bytes = b"", *, name: str = "") -> Peek:
    """The look at a file of which ``head`` and ``tail`` (b"" when unknown) are the ends. A compressed head
    is unpacked as far as it goes."""
    kind = compression_of(head)
    if kind:
        head, tail = unpacked_head(kind, head), b""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head, tail = head.decode("utf-16", "replace").encode(), b""
    no_log = binary_kind(head) or _other_text(head, name)
    if no_log:
        return Peek(no_log=no_log)
    own = _OWN.search(head) is not None
    pattern = _OWN if own else _TIME
    start = _time(pattern.search(head))
    every = list(pattern.finditer(tail)) or list(pattern.finditer(head))
    last = every[-1] if every else None
    found = _ARGS.search(head)
    ranks = frozenset(m[1].decode().strip() for m in _RANK.finditer(head))
    if not found:
        return Peek(start=start, end=_time(last), own=own, ranks=ranks)
    fields: dict[str, str] = {}
    for field, wanted in _FIELD.items():
        m = wanted.search(head, found.end(), found.end() + 40_000)
        if m:
            fields[field] = next(g for g in m.groups() if g is not None).decode("utf-8", "replace")
    return Peek(
        start=start,
        end=_time(last),
        own=own,
        has_args=True,
        model=fields.get("model_path"),
        nnodes=_number(fields.get("nnodes")),
        node_rank=_number(fields.get("node_rank")),
        address=fields.get("dist_init_addr"),
        seed=fields.get("random_seed"),
        port=fields.get("port"),
        ranks=ranks,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _time(m: re.Match[bytes] | None) -> datetime | None:
    if m is None:
        return None
    try:
        return datetime.fromisoformat(f"{m[1].decode()} {m[2].decode()}")
    except ValueError:
        return None


def unpacked_head(kind: str, data: bytes) -> bytes:
    from mtpdoctor.log.decompress import Damage, decompressed

    out = b""
    for piece in decompressed(kind, iter([data]), Damage()):
        out += piece
        if len(out) >= HEAD:
            break
    return out[:HEAD]


def _other_text(head: bytes, name: str) -> str | None:
    """A JSON document (a config, a report), as opposed to a log whose lines are JSON."""
    lowered = name.lower()
    if lowered.endswith((".json", ".jsonl", ".ndjson")) or head[:1] in (b"{", b"["):
        lines = [line for line in head.split(b"\n", 5)[:5] if line.strip()]
        if lines and any(_JSON_LINE.match(line) for line in lines):
            return None
        if lowered.endswith((".json", ".jsonl", ".ndjson")) or (
            _LINES_OF_JSON.match(head) and lines and lines[0].strip() in (b"{", b"[")
        ):
            return "a JSON document"
    return None
