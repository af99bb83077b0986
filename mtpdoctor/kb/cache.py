"""The compiled knowledge on disk: one file in the user's cache folder, in the interpreter's own ``marshal`` form.

Its head holds ids and literals of all rules and where each rule lies in the rest, so that a run makes
rules only when they match. The key covers the package's version and name, size and times of every
source file; a checksum covers the content. Whatever is wrong with the file, it is as if it was not
there. Nothing here raises on I/O errors: a cache is never needed.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtpdoctor import __version__
from mtpdoctor.kb.checkpoints import Checkpoints
from mtpdoctor.kb.codec import condition_out, rule_in, rule_out
from mtpdoctor.kb.knowledge import Knowledge, Prediction, RuleHead, head_of, literals_of, prediction_of
from mtpdoctor.kb.resolution import Resolution
from mtpdoctor.kb.resolution_source import resolution_in, resolution_out
from mtpdoctor.kb.types import Rule
from mtpdoctor.paths import cache_folder

FORMAT = 10


def source_key(files: Sequence[Path]) -> str:
    """Changes whenever a source file, the package or the cache's own format does."""
    parts = [f"{FORMAT} {marshal.version} {__version__}"]
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
    return base / f"knowledge-{name}.bin"


def read(path: Path, key: str) -> Knowledge | None:
    """The knowledge of a cache file, None when it is missing, stale or damaged."""
    try:
        if not path.is_file():  # nothing there, or a pipe or device, which never ends
            return None
        data = path.read_bytes()
        start = data.index(b"\n") + 1
        checksum, size = (int(word, 16) for word in data[:start].split())
        if checksum != zlib.crc32(memoryview(data)[start:]):
            return None
        end = start + size
        written_for, literals, heads, places, *others = marshal.loads(data[start:end])
        of_predictions, of_resolution, of_checkpoints = others
        if written_for != key:
            return None
        heads = tuple(map(RuleHead._make, heads))
    except (OSError, ValueError, EOFError, TypeError):
        return None

    def part(place: tuple[int, int]) -> Any:
        return marshal.loads(memoryview(data)[end + place[0] : end + place[0] + place[1]])

    return Knowledge(
        heads,
        literals,
        lambda index: rule_in(part(places[index])),
        lambda: resolution_in(part(of_resolution)),
        lambda: [Prediction(*row) for row in part(of_predictions)],
        lambda: _checkpoints_of(part(of_checkpoints)),
    )


def _checkpoints_of(data: Any) -> Checkpoints:
    from mtpdoctor.kb.checkpoints_source import checkpoints_in  # few runs ask for them

    return checkpoints_in(data)


def write(
    path: Path, key: str, rules: Sequence[Rule], resolution: Resolution, checkpoints: Checkpoints
) -> bool:
    """Keep compiled rules, the resolution and the checkpoints; False when it cannot be written."""
    from mtpdoctor.kb.checkpoints_source import checkpoints_out

    body = bytearray()

    def placed(part: Any) -> tuple[int, int]:
        written = marshal.dumps(part)
        body.extend(written)
        return len(body) - len(written), len(written)

    places = [placed(rule_out(rule)) for rule in rules]
    predicting = [prediction_of(rule) for rule in rules if rule.predicts is not None]
    of_predictions = placed([(*row, condition_out(condition)) for *row, condition in predicting])
    of_resolution = placed(resolution_out(resolution))
    of_checkpoints = placed(checkpoints_out(checkpoints))
    heads = [tuple(head_of(rule)) for rule in rules]
    head = marshal.dumps(
        (key, literals_of(rules), heads, places, of_predictions, of_resolution, of_checkpoints)
    )
    content = head + bytes(body)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(b"%08x %x\n" % (zlib.crc32(content), len(head)) + content)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True
