"""Parsed modules of a source tree and what their names can stand for. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


class Unresolved(Exception):
    """A value that only running the program can tell."""


@dataclass(frozen=True, slots=True)
class ClassRef:
    module: Module
    node: ast.ClassDef

    @property
    def is_enum(self) -> bool:
        return any("Enum" in ast.unparse(b) or ast.unparse(b).endswith("Flag") for b in self.node.bases)

    def members(self) -> dict[str, ast.expr]:
        """Names assigned in the class body, in order."""
        out: dict[str, ast.expr] = {}
        for stmt in self.node.body:
            if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
                out[stmt.targets[0].id] = stmt.value
            elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value:
                out[stmt.target.id] = stmt.value
        return out

    def method(self, name: str) -> ast.FunctionDef | None:
        for stmt in self.node.body:
            if isinstance(stmt, ast.FunctionDef) and stmt.name == name:
                return stmt
        return None


@dataclass(frozen=True, slots=True)
class FunctionRef:
    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class EnumMember:
    owner: ClassRef
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class TypeName:
    """A builtin type used as a value (``type=int``)."""

    name: str


@dataclass(eq=False, slots=True)
class Module:
    """One parsed module and the names bound at its top level (also under ``if`` and ``try``)."""

    name: str
    path: str
    tree: ast.Module
    bindings: dict[str, ast.AST | tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)  # modules imported with *

    def __hash__(self) -> int:
        return id(self)

    def bind(self, body: Iterable[ast.stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.bindings[stmt.name] = stmt
            elif isinstance(stmt, ast.Assign):
                for target in stmt.targets:
                    # ServerArgs = defstruct("ServerArgs", ...) rebuilds a class: the class tells more
                    if isinstance(target, ast.Name) and not isinstance(
                        self.bindings.get(target.id), (ast.ClassDef, ast.FunctionDef)
                    ):
                        self.bindings[target.id] = stmt.value
            elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value:
                self.bindings[stmt.target.id] = stmt.value
            elif isinstance(stmt, ast.ImportFrom):
                base = self.absolute(stmt)
                for alias in stmt.names:
                    if alias.name == "*":
                        self.stars.append(base)
                    else:
                        self.bindings[alias.asname or alias.name] = (base, alias.name)
            elif isinstance(stmt, ast.Import):
                for alias in stmt.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    self.bindings[bound] = (alias.name if alias.asname else bound, "")
            elif isinstance(stmt, ast.If):
                self.bind(stmt.body)
                self.bind(stmt.orelse)
            elif isinstance(stmt, ast.Try):
                for handler in stmt.handlers:  # fallbacks first, so that the real binding wins
                    self.bind(handler.body)
                self.bind(stmt.body)

    def absolute(self, stmt: ast.ImportFrom) -> str:
        if not stmt.level:
            return stmt.module or ""
        parts = self.name.split(".")
        if not self.path.endswith("/__init__.py"):
            parts = parts[:-1]
        parts = parts[: len(parts) - (stmt.level - 1)]
        return ".".join([*parts, stmt.module] if stmt.module else parts)


def plain(value: Any) -> Any:
    """Data only: enum members become their values, references their names."""
    if isinstance(value, EnumMember):
        return value.name if isinstance(value.value, (ClassRef, EnumMember)) else plain(value.value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(plain(k)): plain(v) for k, v in value.items()}
    if isinstance(value, TypeName):
        return value.name
    if isinstance(value, (ClassRef, FunctionRef)):
        return value.node.name
    if isinstance(value, Module):
        return value.name
    return value
