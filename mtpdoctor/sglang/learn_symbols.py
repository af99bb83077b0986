"""Which names SGLang's modules have, release by release: what programs around SGLang import.

Written as ``symbols.json.gz`` (read by ``symbols``). Public top-level names of ``sglang`` and ``sglang.srt``: classes,
functions, variables, and what a package's ``__init__`` passes on. Models, tests and diffusion are left out.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.store import sort_releases
from mtpdoctor.sglang.symbols import FORMAT, SYMBOLS_FILE, read_symbols, written_numbers

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

# Models are files by family, which nobody imports by their classes; their modules count.
_LEFT_OUT = lazy(
    r"sglang/(?:multimodal_gen|test|jit_kernel|eval|benchmark|lang/|srt/(?:models|multimodal/processors|debug_utils)/)"
)

Modules = dict[str, list[str]]


def learn_symbols(source: SourceTree) -> Modules:
    """Module -> its names, of one release."""
    out: Modules = {}
    for path in source.files():
        if not path.endswith(".py") or not path.startswith("sglang/") or _LEFT_OUT.match(path):
            continue
        try:
            tree = ast.parse(source.read(path) or "")
        except (SyntaxError, ValueError):
            continue
        package = path.endswith("/__init__.py")
        module = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
        names = {n for n in _names(tree.body, package, module) if not n.startswith("_")}
        out[module] = sorted(names)
    return out


def _names(body: list[ast.stmt], package: bool, module: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom) and package and _own(node):
            yield from (a.asname or a.name for a in node.names if a.name != "*")
            yield from ("*" + _source(node, module) for a in node.names if a.name == "*")
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _names(node.body, package, module)
            yield from _names(node.orelse, package, module)
            for handler in getattr(node, "handlers", ()):
                yield from _names(handler.body, package, module)


def _own(node: ast.ImportFrom) -> bool:
    return node.level > 0 or (node.module or "").startswith("sglang")


def _source(node: ast.ImportFrom, module: str) -> str:
    """The module that a star import takes all names of."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def write_symbols(folder: Path, learned: Mapping[str, Modules]) -> None:
    """``learned[release][module]`` to the table, keeping the releases that it has already."""
    known = {
        **read_symbols(folder),
        **{r: {m: list(n) for m, n in mods.items()} for r, mods in learned.items()},
    }
    releases = sort_releases(known)
    modules: dict[str, dict[str, list[str]]] = {}
    for module in sorted({m for of in known.values() for m in of}):
        spans: dict[str, list[str]] = {}
        for name in ["", *sorted({n for of in known.values() for n in of.get(module, ())})]:
            held = [
                i
                for i, r in enumerate(releases)
                if module in known[r] and (not name or name in known[r][module])
            ]
            spans.setdefault(written_numbers(held), []).append(name)
        modules[module] = spans
    text = json.dumps({"format": FORMAT, "releases": releases, "modules": modules}, separators=(",", ":"))
    (folder / SYMBOLS_FILE).write_bytes(gzip.compress((text + "\n").encode(), compresslevel=9, mtime=0))
