"""The options of SGLang's server for image and video models, read from its source (maintainers' side).

Static: every option string that its own files hand to ``add_argument``. ``write_diffusion`` keeps for each option the
spans of releases that have it, in ``other_parsers.json``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.store import FORMAT, read_table, sort_releases, write_table

TABLE = "other_parsers.json"
_RUNTIME = "sglang/multimodal_gen/runtime/"
_PLACES = (  # beginnings of paths
    _RUNTIME + "server_args",
    _RUNTIME + "entrypoints/cli/serve.py",
    "sglang/multimodal_gen/configs/pipeline_configs/",
)


def learn_diffusion(tree: SourceTree) -> frozenset[str]:
    """The long options of the release's server for image and video models; empty where it has none."""
    found: set[str] = set()
    for path in tree.files():
        if path.startswith(_PLACES) and path.endswith(".py"):
            found |= _options(tree.read(path) or "")
    return frozenset(found)


def _options(source: str) -> set[str]:
    try:
        module = ast.parse(source)
    except SyntaxError:
        return set()
    return {
        argument.value
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
        for argument in node.args
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and argument.value.startswith("--")
    }


def spans_of(learned: Mapping[str, frozenset[str]]) -> dict[str, list[list[Any]]]:
    """Option -> the spans ``[first, last]`` of releases that have it; ``last`` is None in the newest one."""
    releases: Sequence[str] = sort_releases(learned)
    out: dict[str, list[list[Any]]] = {}
    for name in sorted(frozenset().union(*learned.values())):
        spans: list[list[Any]] = []
        before = False
        for release in releases:
            has = name in learned[release]
            if has and not before:
                spans.append([release, release])
            elif has:
                spans[-1][1] = release
            before = has
        if before:
            spans[-1][1] = None
        out[name] = spans
    return out


def known_diffusion(folder: Path, releases: Sequence[str]) -> dict[str, frozenset[str]]:
    """What the table says of each release."""
    rows = read_table(folder / TABLE)["diffusion"] if (folder / TABLE).is_file() else {}
    order = {release: i for i, release in enumerate(releases)}
    out: dict[str, set[str]] = {release: set() for release in releases}
    for name, spans in rows.items():
        for first, last in spans:
            end = len(releases) - 1 if last is None else order.get(last, -1)
            for release in releases[order.get(first, len(releases)) : end + 1]:
                out[release].add(name)
    return {release: frozenset(names) for release, names in out.items()}


def write_diffusion(folder: Path, learned: Mapping[str, frozenset[str]]) -> None:
    """Replace the table's part on the server for image and video models by what was learned of all releases. A folder
    without the table (that of a learned installation) gets none."""
    if not (folder / TABLE).is_file():
        return
    table = read_table(folder / TABLE)
    head = {"format": FORMAT, "router": table["router"]}
    write_table(folder / TABLE, head, {"diffusion": spans_of(learned)})
