"""The compiled knowledge on disk: JSON lines in the user's cache folder.

The first line holds ids and literals of all rules and where each rule lies in the rest, so that a
run reads rules only when they match. The key covers the package's version and name, size and times
of every source file; a checksum covers the content. Whatever is wrong with the file, it is as if it
was not there. Nothing here raises on I/O errors: a cache is never needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from mtpdoctor import __version__
from mtpdoctor.kb.codec import rule_in, rule_out
from mtpdoctor.kb.knowledge import Knowledge, RuleHead, head_of, literals_of
from mtpdoctor.kb.resolution import Resolution
from mtpdoctor.kb.resolution_source import resolution_in, resolution_out
from mtpdoctor.kb.types import Rule
from mtpdoctor.paths import cache_folder

FORMAT = 6


def source_key(files: Sequence[Path]) -> str:
    """Changes whenever a source file, the package or the cache's own format does."""
    parts = [f"{FORMAT} {__version__}"]
    for path in files:
        try:
            stat = path.stat()
        except OSError:
            continue
        parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}")
    return "\n".join(parts)


def cache_file(folders: Sequence[Path]) -> Path | None:
    """Where the compiled form of these folders is kept; None when there is no cache folder."""
    try:
        base = cache_folder()
    except Exception:  # no home, broken environment: work without a cache
        return None
    name = f"{zlib.crc32(os.fsencode(os.pathsep.join(map(str, folders)))):08x}"
    return base / f"knowledge-{name}.jsonl"


def read(path: Path, key: str) -> Knowledge | None:
    """The knowledge of a cache file, None when it is missing, stale or damaged."""
    try:
        data = path.read_bytes()
        end = data.index(b"\n") + 1
        head = json.loads(data[:end])
        if head["key"] != key or head["crc"] != zlib.crc32(data[end:]):
            return None
        literals: list[str] = head["literals"]
        heads = [
            RuleHead(i, role, predicts, tuple(literals[n] for n in ns), releases, scope)
            for i, role, predicts, ns, releases, scope, _, _ in head["rules"]
        ]
        resolution_start = end + head["resolution"]
        places = [(end + start, end + start + size) for *_, start, size in head["rules"]]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None

    def make(index: int) -> Rule:
        start, stop = places[index]
        return rule_in(json.loads(data[start:stop]))

    def resolution() -> Resolution:
        return resolution_in(json.loads(data[resolution_start:]))

    return Knowledge(heads, literals, make, resolution)


def write(path: Path, key: str, rules: Sequence[Rule], resolution: Resolution) -> bool:
    """Keep compiled rules and the resolution; False when it cannot be written."""
    literals = literals_of(rules)
    number = {literal: i for i, literal in enumerate(literals)}
    body, entries = bytearray(), []
    for rule in rules:
        head = head_of(rule)
        record = json.dumps(rule_out(rule), ensure_ascii=False, separators=(",", ":")).encode()
        numbers = [number[p] for p in head.literals]
        place = [len(body), len(record)]
        entries.append([head.id, head.role, head.predicts, numbers, head.releases, head.scope, *place])
        body += record + b"\n"
    steps = len(body)
    body += json.dumps(resolution_out(resolution), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    crc = zlib.crc32(bytes(body))
    first = {"key": key, "crc": crc, "literals": literals, "rules": entries, "resolution": steps}
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(json.dumps(first, separators=(",", ":")).encode() + b"\n" + bytes(body))
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True
