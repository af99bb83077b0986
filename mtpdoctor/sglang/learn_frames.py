"""Where the functions stand that show up in tracebacks of failed launches, release by release.

A frame ``File ".../server_args.py", line 4211, in check_server_args`` says which releases it can be
from. The index is written as ``frames.json.gz`` (read by ``frames``): line spans of functions, as
changes between releases.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.frames import FORMAT, FRAMES_FILE, Functions, read_frames
from mtpdoctor.sglang.store import sort_releases

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

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


def learn_frames(source: SourceTree) -> dict[str, Functions]:
    """Function spans of the indexed files of one release; decorators count as the function's."""
    out: dict[str, Functions] = {}
    for path in source.files():
        if not _FILES.match(path):
            continue
        try:
            tree = ast.parse(source.read(path) or "")
        except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
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
    # Each file's table is compressed by itself, so that dating a log unpacks only those it names.
    body, places = b"", {}
    for path, rows_of in table.items():
        packed = _packed(json.dumps(rows_of, separators=(",", ":")))
        places[path] = [len(body), len(packed)]
        body += packed
    head = json.dumps({"format": FORMAT, "releases": releases, "files": places}, separators=(",", ":"))
    (folder / FRAMES_FILE).write_bytes(_packed(head) + body)


def _packed(text: str) -> bytes:
    # A fixed time stamp: the same facts give the same bytes.
    return gzip.compress((text + "\n").encode(), compresslevel=9, mtime=0)
