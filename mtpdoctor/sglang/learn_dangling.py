"""Which imports within SGLang a release cannot fulfil, read from its source. Written as ``dangling.json`` (see ``dangling``).

Every import counts, those inside functions too: they fail when the function is reached. Left out are imports for type
checkers alone, and modules that make their names while they run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.by_release import write_rows
from mtpdoctor.sglang.dangling import DANGLING_FILE, FORMAT, read_dangling

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

Import = tuple[str, str, str]  # file, module, name ("": the module)
_LEFT_OUT = lazy(r"sglang/(?:test|eval|benchmark)/")
_OWN = lazy(r"(?:python\.)?sglang(?:\.|$)")
_STAR, _DYNAMIC = "*", "__getattr__"


def learn_dangling(source: SourceTree) -> list[Import]:
    """The imports that the release's own files cannot fulfil."""
    files = {
        path: _read(path, source.read(path) or "") for path in source.files() if path.startswith("sglang/")
    }
    names = _Names({_module(path): defined for path, (defined, _) in files.items()})
    found = {
        (path, module, name)
        for path, (_, imports) in files.items()
        if not _LEFT_OUT.match(path)
        for module, name in imports
        if not names.has(module, name)
    }
    return sorted(found)


@lru_cache(maxsize=16384)  # most files are the same from release to release
def _read(path: str, text: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """What a file defines at its top level, and what it imports of SGLang."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return frozenset(), frozenset()
    return frozenset(_defined(tree.body, path)), frozenset(_imports(tree, path))


class _Names:
    """What the modules of one release have."""

    def __init__(self, modules: Mapping[str, frozenset[str]]) -> None:
        self.modules = modules
        self.packages = {m.rsplit(".", i)[0] for m in self.modules for i in range(1, m.count(".") + 1)}

    def has(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> bool:
        whole = f"{module}.{name}" if name else module
        if whole in self.modules or whole in self.packages:
            return True
        defined = self.modules.get(module, frozenset())
        if not name or module in seen:
            return False
        if name in defined or _DYNAMIC in defined:
            return True
        stars = [n[1:] for n in defined if n.startswith(_STAR)]
        return any(not _OWN.match(s) or self.has(s, name, seen | {module}) for s in stars)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _absolute(node: ast.ImportFrom, path: str) -> str:
    if not node.level:
        return node.module or ""
    folders = path.split("/")[: -node.level]
    return ".".join([*folders, node.module] if node.module else folders)


def _defined(body: Iterable[ast.stmt], path: str) -> Iterator[str]:
    """Names at a module's top level, whatever they are; another module's whole names as ``*module``."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Import):
            yield from ((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            star = f"*{_absolute(node, path)}"
            yield from (star if a.name == "*" else a.asname or a.name for a in node.names)
        else:
            yield from (
                n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            )
            for field in ("body", "orelse", "finalbody"):
                yield from _defined(getattr(node, field, ()), path)
            for handler in getattr(node, "handlers", ()):
                yield from _defined(handler.body, path)


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, str]]:
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if _OWN.match(a.name))
        elif isinstance(node, ast.ImportFrom) and _OWN.match(module := _absolute(node, path)):
            yield module, ""
            yield from ((module, a.name) for a in node.names if a.name != "*")


def write_dangling(folder: Path, learned: Mapping[str, list[Import]]) -> None:
    """``learned[release]`` to the table, keeping the releases that it has already."""
    known = {**read_dangling(folder), **learned}
    kept = {release: list(_telling(imports)) for release, imports in known.items()}
    write_rows(folder / DANGLING_FILE, FORMAT, kept)


def _telling(imports: list[Import]) -> Iterator[Import]:
    """Where the module is missing, that says it; its names need not."""
    missing = {module for _, module, name in imports if not name}
    return (found for found in imports if not found[2] or found[1] not in missing)
