"""The weights of a model as ``ls -l`` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import commonpath, dirname

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_FILE = lazy(
    r"^\s*(?:\d+ )?-[rwxsSt-]{9}[.+@]? +\d+ +\S+ +\S+ +(\d[\d.]*[KMGT]?) .{0,40}? (\S+\.(?:safetensors|bin|gguf|pt|pth))\s*$"
)
_LINK = lazy(
    r"^\s*(?:\d+ )?l[rwxsSt-]{9}[.+@]? +\d+ +\S+ +\S+ +\d[\d.]*[KMGT]? .{0,40}? \S+\.(?:safetensors|bin|gguf|pt|pth) -> (/\S+)\s*$"
)
_SHARD = lazy(r"-(\d{5})-of-(\d{5})\.")
_TOTAL = lazy(r"^total \d[\d.]*[KMGT]?\s*$")
_POINTER = frozenset(map(str, range(100, 200)))  # bytes of a Git LFS pointer
_FORMATS = {"safetensors": "safetensors", "bin": "bin", "gguf": "gguf", "pt": "bin", "pth": "bin"}
_NOT_WEIGHTS = ("training_args", "optimizer", "scheduler.", "rng_state", "tokenizer", "adapter_model")


def listing(lines: Sequence[Line]) -> Iterator[Observation]:
    sizes: dict[str, tuple[str, Line]] = {}
    whole = False
    yield from _links(lines)
    for line in lines:
        if line.body.startswith("total ") and _TOTAL.match(line.body) is not None:
            whole = True
        elif line.body.find("-r", 0, 12) >= 0 and (m := _FILE.match(line.body)) is not None:
            name = m[2].rpartition("/")[2]
            if not name.startswith(_NOT_WEIGHTS):
                if name in sizes and sizes[name][0] != m[1]:
                    return  # of several folders, or while it was being loaded down
                sizes[name] = (m[1], line)
    if sizes:
        yield from _told(sizes, whole)


def _links(lines: Sequence[Line]) -> Iterator[Observation]:
    """Weights that are links out of their folder: where to, and the folder that holds all targets."""
    found = [
        (m[1], line)
        for line in lines
        if " -> /" in line.body and "lr" in line.body[:12] and (m := _LINK.match(line.body)) is not None
    ]
    if not found:
        return
    target, first = found[0]
    folder = commonpath([dirname(to) for to, _ in found])
    yield Observation("log.weights_link", target, first)
    if folder.count("/") > 1:  # not all of /data
        yield Observation("log.weights_link_folder", folder, first)


def _told(sizes: dict[str, tuple[str, Line]], whole: bool) -> Iterator[Observation]:
    first = next(iter(sizes.values()))[1]
    kinds = {_FORMATS[name.rpartition(".")[2]] for name in sizes}
    shards = {
        m[2]: {s[1] for n in sizes if (s := _SHARD.search(n))} for n in sizes if (m := _SHARD.search(n))
    }
    if len(kinds) == 1:
        yield Observation("model.weights_format", kinds.pop(), first)
    lacking = None
    if len(shards) == 1:
        number, there = next(iter(shards.items()))
        lacking = int(number) - len(there)
        if whole or not lacking:
            yield Observation("model.weights_missing", lacking, first)
    for name, found in (
        ("empty", [line for size, line in sizes.values() if size == "0"]),
        ("pointers", [line for size, line in sizes.values() if size in _POINTER]),
    ):
        if found or lacking == 0:  # a part of a listing shows what is wrong, not that all is well
            yield Observation(f"model.weights_{name}", len(found), found[0] if found else first)
