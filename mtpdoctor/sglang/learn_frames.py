"""Where the functions stand that show up in tracebacks of failed launches, release by release.

A frame ``File ".../server_args.py", line 4211, in check_server_args`` says which releases it can be
from. The index is written as ``frames.json.gz``: line spans of functions, as changes between releases.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.store import FORMAT, sort_releases

FRAMES_FILE = "frames.json.gz"
# Files that a launch passes through, and those whose checks end one.
_FILES = lazy(
    r"sglang/(?:launch_server|srt/server_args|cli/\w+|srt/arg_groups/\w+"
    r"|srt/entrypoints/(?:engine|http_server|http_server_engine)"
    r"|srt/managers/(?:scheduler|tp_worker|tp_worker_overlap_thread|data_parallel_controller|tokenizer_manager"
    r"|template_manager|detokenizer_manager)"
    r"|srt/model_executor/(?:model_runner|model_runner_kv_cache_mixin|cuda_graph_runner|pool_configurator"
    r"|piecewise_cuda_graph_runner)"
    r"|srt/model_executor/\w*/?model_runner\w*"
    r"|srt/configs/(?:model_config|load_config)|srt/model_loader/(?:loader|weight_utils|utils)"
    r"|srt/layers/attention/attention_registry|srt/speculative/(?:eagle_worker\w*|spec_info|draft_utils)"
    r"|srt/distributed/parallel_state|srt/mem_cache/(?:memory_pool|kv_cache_configurator|mamba_radix_cache)"
    r"|srt/utils/(?:common|hf_transformers_utils|hf_transformers/\w+)|srt/(?:utils|hf_transformers_utils))\.py$"
)

Spans = list[list[int]]  # [first line, last line] of each function of one name
Functions = dict[str, Spans]


def learn_frames(source: SourceTree) -> dict[str, Functions]:
    """Function spans of the indexed files of one release; decorators count as the function's."""
    out: dict[str, Functions] = {}
    for path in source.files():
        if not _FILES.match(path):
            continue
        try:
            tree = ast.parse(source.read(path) or "")
        except SyntaxError:
            continue
        spans: Functions = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                spans.setdefault(node.name, []).append([node.lineno, node.end_lineno or node.lineno])
        spans["<module>"] = [[1, len(tree.body) and (tree.body[-1].end_lineno or 1)]]
        out[path] = {name: sorted(found) for name, found in spans.items()}
    return out


def write_frames(folder: Path, learned: Mapping[str, Mapping[str, Functions]]) -> None:
    """``learned[release][file][function]`` to the index, keeping the releases it already has."""
    known = read_frames(folder)
    for release, files in learned.items():
        known[release] = {path: dict(functions) for path, functions in files.items()}
    releases = sort_releases(known)
    table: dict[str, dict[str, list[list[object]]]] = {}
    for path in sorted({p for files in known.values() for p in files}):
        names = sorted({n for files in known.values() for n in files.get(path, ())})
        table[path] = {}
        for name in names:
            rows: list[list[object]] = []
            for index, release in enumerate(releases):
                spans = known[release].get(path, {}).get(name)
                if spans is None:
                    continue
                flat = [number for first, last in spans for number in (first, last - first)]
                if rows and rows[-1][1] == index - 1 and rows[-1][2] == flat:
                    rows[-1][1] = index
                else:
                    rows.append([index, index, flat])
            table[path][name] = rows
    # One file a line, so that dating a log parses only the files it names.
    lines = [json.dumps({"format": FORMAT, "releases": releases})]
    lines += [f"{path}\t{json.dumps(rows, separators=(',', ':'))}" for path, rows in table.items()]
    # A fixed time stamp: the same facts give the same bytes.
    (folder / FRAMES_FILE).write_bytes(gzip.compress("\n".join(lines).encode(), compresslevel=9, mtime=0))


def _open(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Releases of the index, and each file's table as JSON text; empty when there is no index."""
    path = folder / FRAMES_FILE
    if not path.is_file():
        return [], {}
    head, *lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    releases: list[str] = json.loads(head)["releases"]
    rows = (line.partition("\t") for line in lines)
    return releases, {file: text for file, _, text in rows}


def read_frames(folder: Path) -> dict[str, dict[str, Functions]]:
    """The index expanded by release; empty when there is none."""
    releases, files = _open(folder)
    out: dict[str, dict[str, Functions]] = {release: {} for release in releases}
    for file, text in files.items():
        for name, rows in json.loads(text).items():
            for first, last, flat in rows:
                spans = [[flat[i], flat[i] + flat[i + 1]] for i in range(0, len(flat), 2)]
                for index in range(first, last + 1):
                    out[releases[index]].setdefault(file, {})[name] = spans
    return out


def releases_of_frames(
    folder: Path, frames: Iterable[tuple[str, int, str]]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Releases in which every ``(path, line, function)`` can stand, and the frames that decided it.

    Frames of files or functions that the index does not have say nothing. The set is empty when the frames
    contradict one another (a patched installation) or none said anything.
    """
    releases, files = _open(folder)
    every = set(range(len(releases)))
    left = set(every)
    used: list[str] = []
    parsed: dict[str, dict[str, list[tuple[int, int, list[int]]]]] = {}
    for where, line, function in frames:
        file = _known_file(where, files)
        if file is None:
            continue
        if file not in parsed:
            parsed[file] = json.loads(files[file])
        fits = {
            index
            for first, last, flat in parsed[file].get(function, ())
            if any(flat[i] <= line <= flat[i] + flat[i + 1] for i in range(0, len(flat), 2))
            for index in range(first, last + 1)
        }
        if fits and fits != every:
            left &= fits
            used.append(f"{file.rsplit('/', 1)[-1]}:{line} in {function}")
    return (frozenset(releases[i] for i in left), tuple(used)) if used else (frozenset(), ())


def _known_file(where: str, files: Mapping[str, object]) -> str | None:
    parts = where.replace("\\", "/").split("/")
    for start, part in enumerate(parts):
        candidate = "/".join(parts[start:])
        if part == "sglang" and candidate in files:
            return candidate
    return None
