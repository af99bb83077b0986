"""Which names a file has only where a package is there, or under a condition, read from its source. Written as
``optional.json`` (see ``optional``).

A name counts where every binding of it at the top level of the file is an import inside ``try``, or inside ``if``, or a
stand-in for it (None, an exception): without the package, or where the condition does not hold, the name is None, an
exception, or not there at all, and the code that uses it fails long after.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.by_release import write_rows
from mtpdoctor.sglang.optional import FORMAT, OPTIONAL_FILE, read_optional

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

Found = tuple[str, str, str]  # file, name, "module|conditions" (conditions: names, "try" among them)
_LEFT_OUT = lazy(r"sglang/(?:test|eval|benchmark|lang)/")
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_TYPES_ALONE = "TYPE_CHECKING"
_TRIED, _FIRM = "try", "!"


def learn_optional(source: SourceTree) -> list[Found]:
    """The names of the release's files that are there under a condition alone."""
    return sorted(
        (path, name, how)
        for path in source.files()
        if path.startswith("sglang/") and path.endswith(".py") and not _LEFT_OUT.match(path)
        for name, how in _read(source.read(path) or "")
    )


@lru_cache(maxsize=16384)  # most files are the same from release to release
def _read(text: str) -> frozenset[tuple[str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return frozenset()
    bound: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for name, module, under in _bindings(tree.body, frozenset()):
        bound.setdefault(name, []).append((module, under))
    out = set()
    for name, ways in bound.items():
        imports = [(module, under) for module, under in ways if module]
        firm = any(not under for _, under in ways) or any(_FIRM in under for _, under in ways)
        if imports and not firm:
            module, under = imports[0]
            if module.split(".")[0] not in sys.stdlib_module_names:
                out.add((name, f"{module}|{' '.join(sorted(under))}"))
    return frozenset(out)


def _bindings(body: Iterable[ast.stmt], under: frozenset[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Names bound at the top level: the module of an import ("" for a stand-in), and the conditions over it. A binding
    that makes the name usable without the import is ``_FIRM``."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((a.asname or a.name.split(".")[0], a.name, under) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((a.asname or a.name, module, under) for a in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, "", under | {_FIRM}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from _assigned(node, under)
        elif isinstance(node, ast.If):
            names = _names(node.test)
            if _TYPES_ALONE not in names:
                yield from _bindings(node.body, under | (names or {"?"}))
            yield from _bindings(node.orelse, under | ({f"not_{n}" for n in names} or {"?"}))
        elif isinstance(node, ast.Try):
            tried = any(_catches(h) for h in node.handlers)
            yield from _bindings(node.body, under | {_TRIED} if tried else under)
            for handler in node.handlers:
                yield from _bindings(handler.body, under | {_TRIED})
            yield from _bindings([*node.orelse, *node.finalbody], under | {_TRIED} if tried else under)
        elif isinstance(node, (ast.With, ast.For, ast.While)):
            yield from _bindings(node.body, under)


def _assigned(
    node: ast.Assign | ast.AnnAssign, under: frozenset[str]
) -> Iterator[tuple[str, str, frozenset[str]]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    value = node.value
    empty = isinstance(value, ast.Constant) and value.value in (None, False)
    caught = isinstance(value, ast.Name) and _TRIED in under and value.id in ("e", "err", "exc", "error")
    for target in targets:
        for name in (n.id for n in ast.walk(target) if isinstance(n, ast.Name)):
            yield name, "", (under | {_TRIED} if empty or caught else under | {_FIRM})


def _catches(handler: ast.ExceptHandler) -> bool:
    if any(isinstance(node, ast.Raise) for node in ast.walk(handler)):
        return False
    return handler.type is None or bool(_names(handler.type) & _IMPORT_ERRORS)


def _names(test: ast.expr) -> frozenset[str]:
    """What a condition asks, by the names in it, the last part of each; negated ones with "not_" before."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    found = {
        n.attr if isinstance(n, ast.Attribute) else n.id
        for n in ast.walk(test)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    return frozenset(f"not_{n}" if negated else n for n in found)


def write_optional(folder: Path, learned: Mapping[str, list[Found]]) -> None:
    """``learned[release]`` to the table, keeping the releases that it has already."""
    write_rows(folder / OPTIONAL_FILE, FORMAT, {**read_optional(folder), **learned})
