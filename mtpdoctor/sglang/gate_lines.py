"""The lines of one file of SGLang with the gates that they run under, and what the file uses and defines."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from sys import intern

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.gate_facts import Conditions, Scope, assigned, attributes_of, either, used_names
from mtpdoctor.sglang.gates import IS, NO_GATES, Gate, Gates
from mtpdoctor.sglang.learn_history import is_kernel

_REGISTERS = lazy(r"register_attention_backend$")
_COMMON = frozenset(dir(builtins)) | {
    "self", "torch", "forward", "__init__", "shape", "logger", "append", "get", "items", "device", "dtype", "to", "size",
}  # fmt: skip


@dataclass(slots=True)
class FileGates:
    """``lines``: gates by function and line without indentation. ``uses``: gates by a name that is used and the function
    (qualified; "" outside of any) that uses it. ``defined``: qualified names, True for classes. ``given``: gates of a
    function that is registered for a value of an option. ``bases`` of the classes."""

    lines: dict[tuple[str, str], Gates] = field(default_factory=dict)
    uses: dict[tuple[str, str], Gates] = field(default_factory=dict)
    defined: dict[str, bool] = field(default_factory=dict)
    given: dict[str, Gates] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)


def gates_of(tree: ast.Module, text: str, dests: frozenset[str]) -> FileGates:
    """``dests``: the fields of ServerArgs, of all releases."""
    reader = _Reader(tree, text.splitlines(), dests)
    reader.block(tree.body, NO_GATES, "", "", {})
    for key in [key for key, gates in reader.out.lines.items() if not gates]:
        del reader.out.lines[key]
    return reader.out


class _Reader:
    def __init__(self, tree: ast.Module, rows: list[str], dests: frozenset[str]) -> None:
        self.rows, self.out = rows, FileGates()
        self.conditions = Conditions(dests, attributes_of(tree))

    def block(self, body: list[ast.stmt], gates: Gates, where: str, function: str, scope: Scope) -> None:
        """``where``: qualified name of what the statements stand in; ``function``: as a traceback names it."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._define(node, gates, where, function)
            elif isinstance(node, ast.ClassDef):
                name = f"{where}.{node.name}" if where else node.name
                self.out.defined[name] = True
                self.out.bases[name] = tuple(b for base in node.bases if (b := _last(base)))
                self.block(node.body, gates, name, "", {})
            elif isinstance(node, ast.If):
                self._expression(node.test, gates, where, function)
                yes, no = self.conditions.when(node.test, scope), self.conditions.unless(node.test, scope)
                self.block(node.body, gates | yes, where, function, scope)
                self.block(node.orelse, gates | no, where, function, scope)
                if not node.orelse and _ends(node.body):
                    gates = gates | no
                elif node.orelse and _ends(node.orelse):
                    gates = gates | yes
            else:
                self._statement(node, gates, where, function, scope)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, gates: Gates, where: str, function: str
    ) -> None:
        if is_kernel(node):
            return
        name = where if function else f"{where}.{node.name}" if where else node.name
        if not function:
            self.out.defined[name] = False
            for decorator in node.decorator_list:
                if given := _registered(decorator):
                    self.out.given[name] = given
        self.block(node.body, gates, name, node.name, assigned(node))

    def _statement(self, node: ast.stmt, gates: Gates, where: str, function: str, scope: Scope) -> None:
        if function:
            self._line(function, node.lineno, gates)
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.AnnAssign) and child is node.annotation:
                continue  # a type is no use of a class
            if isinstance(child, ast.expr):
                self._expression(child, gates, where, function)
            elif isinstance(child, ast.withitem):
                self._expression(child.context_expr, gates, where, function)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                self.block(child.body, gates, where, function, scope)
        for part in ("body", "orelse", "finalbody"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                self.block(inner, gates, where, function, scope)

    def _line(self, function: str, at: int, gates: Gates) -> None:
        key = (intern(function), self.rows[at - 1].strip())
        here = self.out.lines.get(key)
        self.out.lines[key] = gates if here is None else here & gates

    def _expression(self, node: ast.expr, gates: Gates, where: str, function: str) -> None:
        for name in used_names(node):
            if name not in _COMMON:
                key = (intern(name), where)
                here = self.out.uses.get(key)
                self.out.uses[key] = gates if here is None or not gates else either((here, gates))
        if function:
            for at in {part.lineno for part in ast.walk(node) if isinstance(part, ast.expr)}:
                self._line(function, at, gates)


def _registered(decorator: ast.expr) -> Gates:
    """``@register_attention_backend("fa3")``."""
    if isinstance(decorator, ast.Call) and decorator.args and _REGISTERS.search(ast.unparse(decorator.func)):
        value = decorator.args[0]
        if isinstance(value, ast.Constant):
            return frozenset({Gate("attention_backend", IS, (str(value.value),))})
    return NO_GATES


def _ends(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _last(node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
