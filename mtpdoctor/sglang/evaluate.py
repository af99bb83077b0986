"""A small static evaluator over SGLang's source: names, constants, enums, simple calls. Executes nothing.

It knows just enough Python to answer "what are the choices and the default of this flag" in every
release since 0.4.6. What it cannot decide raises :class:`Unresolved` with the source text.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Mapping
from typing import Any

from mtpdoctor.sglang.modules import ClassRef, EnumMember, FunctionRef, Module, TypeName, Unresolved, plain
from mtpdoctor.sglang.source import SourceTree

_OPERATORS: Mapping[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
    ast.Mod: operator.mod,
}
_BUILTIN_TYPES = ("str", "int", "float", "bool", "list", "dict", "tuple", "set")
_MAX_DEPTH = 100


class Evaluator:
    """Evaluates expressions of one source tree. ``special`` may claim calls before the general rules do."""

    def __init__(self, source: SourceTree) -> None:
        self.source = source
        self._modules: dict[str, Module | None] = {}
        self._depth = 0
        self.special: dict[str, Any] = {}  # function name -> callable(call node, module, scope)

    # -- modules and names ---------------------------------------------------------------------

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = self._parse(name)
        return self._modules[name]

    def _parse(self, name: str) -> Module | None:
        if name != "sglang" and not name.startswith("sglang."):
            return None
        stem = name.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            text = self.source.read(path)
            if text is not None:
                try:
                    tree = ast.parse(text)
                except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
                    return None
                module = Module(name, path, tree)
                module.bind(tree.body)
                return module
        return None

    def lookup(self, module: Module, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> Any:
        """The value a module-level name stands for."""
        key = (module.name, name)
        if key in seen or not self._binds(module, name):
            raise Unresolved(name)
        bound = module.bindings.get(name)
        if bound is None:
            star = next(m for m in map(self.module, module.stars) if m is not None and self._binds(m, name))
            return self.lookup(star, name, seen | {key})
        if isinstance(bound, tuple):
            return self._imported(bound, seen | {key})
        if isinstance(bound, ast.ClassDef):
            return ClassRef(module, bound)
        if isinstance(bound, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return FunctionRef(module, bound)
        assert isinstance(bound, ast.expr)
        return self.value(bound, module)

    def _binds(self, module: Module, name: str, depth: int = 0) -> bool:
        if name in module.bindings:
            return True
        stars = (self.module(star) for star in module.stars)
        return depth < 4 and any(m is not None and self._binds(m, name, depth + 1) for m in stars)

    def _imported(self, bound: tuple[str, str], seen: frozenset[tuple[str, str]]) -> Any:
        base, name = bound
        target = self.module(base)
        if not name:
            if target is None:
                raise Unresolved(base)
            return target
        if target is not None and self._binds(target, name):
            return self.lookup(target, name, seen)
        sub = self.module(f"{base}.{name}")
        if sub is None:
            raise Unresolved(f"{base}.{name}")
        return sub

    # -- expressions ---------------------------------------------------------------------------

    def value(self, node: ast.expr, module: Module, scope: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression; enum members and classes are references. Raises Unresolved."""
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise Unresolved("too deep")
            return self._value(node, module, scope or {})
        finally:
            self._depth -= 1

    def plain(self, node: ast.expr, module: Module, scope: Mapping[str, Any] | None = None) -> Any:
        """Like :meth:`value`, with enum members replaced by their values and tuples by lists."""
        return plain(self.value(node, module, scope))

    def _value(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in scope:
                return scope[node.id]
            if node.id in _BUILTIN_TYPES and node.id not in module.bindings:
                return TypeName(node.id)
            return self.lookup(module, node.id)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            out: list[Any] = []
            for element in node.elts:
                if isinstance(element, ast.Starred):
                    out.extend(self.iterate(self.value(element.value, module, scope)))
                else:
                    out.append(self.value(element, module, scope))
            return out
        if isinstance(node, ast.Dict):
            return self._dict(node, module, scope)
        if isinstance(node, ast.JoinedStr):
            return "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else str(self.plain(part.value, module, scope))  # type: ignore[attr-defined]
                for part in node.values
            )
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand, module, scope)
            if isinstance(node.op, ast.USub):
                return -operand
            if isinstance(node.op, ast.Not):
                return not operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = (self.value(n, module, scope) for n in (node.left, node.right))
            if (isinstance(left, dict) and isinstance(right, list)) or isinstance(right, dict):
                left, right = list(left), list(right)
            try:
                return _OPERATORS[type(node.op)](left, right)
            except (TypeError, ValueError, ArithmeticError):
                raise Unresolved(ast.unparse(node)) from None
        if isinstance(node, ast.BoolOp):
            return self._bool(node, module, scope)
        if isinstance(node, ast.IfExp):
            branch = node.body if self.value(node.test, module, scope) else node.orelse
            return self.value(branch, module, scope)
        if isinstance(node, ast.Attribute):
            if ast.unparse(node) == "sys.maxsize":
                return sys.maxsize
            return self.attribute(self.value(node.value, module, scope), node.attr)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            out = []
            self._comprehend(node, 0, module, dict(scope), out)
            return out
        if isinstance(node, ast.Subscript):
            try:
                return self.value(node.value, module, scope)[self.value(node.slice, module, scope)]
            except (TypeError, KeyError, IndexError):
                raise Unresolved(ast.unparse(node)) from None
        if isinstance(node, ast.Call):
            return self._call(node, module, scope)
        raise Unresolved(ast.unparse(node))

    def _dict(self, node: ast.Dict, module: Module, scope: Mapping[str, Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                merged = self.value(item, module, scope)
                if not isinstance(merged, dict):
                    raise Unresolved(ast.unparse(node))
                out.update(merged)
                continue
            try:
                resolved = self.value(item, module, scope)
            except Unresolved:
                resolved = None  # only the keys matter where dictionaries list choices
            name = plain(self.value(key, module, scope))
            out[name if not isinstance(name, list) else str(name)] = resolved
        return out

    def _bool(self, node: ast.BoolOp, module: Module, scope: Mapping[str, Any]) -> Any:
        result: Any = None
        for part in node.values:
            result = self.value(part, module, scope)
            if bool(result) == isinstance(node.op, ast.Or):
                break
        return result

    def _comprehend(
        self,
        node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
        depth: int,
        module: Module,
        scope: dict[str, Any],
        out: list[Any],
    ) -> None:
        if depth == len(node.generators):
            out.append(self.value(node.elt, module, scope))
            return
        generator = node.generators[depth]
        if not isinstance(generator.target, ast.Name):
            raise Unresolved(ast.unparse(node))
        for item in self.iterate(self.value(generator.iter, module, scope)):
            scope[generator.target.id] = item
            if all(self._compare(test, module, scope) for test in generator.ifs):
                self._comprehend(node, depth + 1, module, scope, out)

    def _compare(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> bool:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left = self.value(node.left, module, scope)
            right = self.value(node.comparators[0], module, scope)
            op = node.ops[0]
            if isinstance(op, (ast.Is, ast.Eq)):
                return bool(left == right)
            if isinstance(op, (ast.IsNot, ast.NotEq)):
                return bool(left != right)
            if isinstance(op, ast.In):
                return left in self.iterate(right)
            if isinstance(op, ast.NotIn):
                return left not in self.iterate(right)
        raise Unresolved(ast.unparse(node))

    def iterate(self, value: Any) -> list[Any]:
        if isinstance(value, ClassRef) and value.is_enum:
            return [self.attribute(value, name) for name in value.members() if not name.startswith("_")]
        if isinstance(value, (list, dict, str)):
            return list(value)
        raise Unresolved("iteration")

    def attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Module):
            return self.lookup(owner, name)
        if isinstance(owner, EnumMember) and name in ("value", "name"):
            return owner.value if name == "value" else owner.name
        if isinstance(owner, ClassRef):
            members = owner.members()
            if name in members:
                return self._member(owner, name, members)
            for base in owner.node.bases:
                try:
                    return self.attribute(self.value(base, owner.module), name)
                except Unresolved:
                    continue
        raise Unresolved(name)

    def _member(self, owner: ClassRef, name: str, members: Mapping[str, ast.expr]) -> Any:
        if owner.is_enum:
            try:
                return EnumMember(owner, name, self.value(members[name], owner.module))
            except Unresolved:
                return EnumMember(owner, name, name.lower())  # auto()
        body: dict[str, Any] = {}
        for other, node in members.items():  # earlier names of the class body are in scope
            if other == name:
                break
            if isinstance(node, ast.Constant):
                body[other] = node.value
        return self.field_default(members[name], owner.module, body)

    def field_default(self, node: ast.expr, module: Module, scope: Mapping[str, Any] | None = None) -> Any:
        """A class attribute's value, through ``field(default=...)`` of dataclasses and msgspec."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "field":
            for keyword in node.keywords:
                if keyword.arg == "default":
                    return self.value(keyword.value, module, scope)
                if keyword.arg == "default_factory":
                    if isinstance(keyword.value, ast.Lambda):
                        return self.value(keyword.value.body, module, scope)
                    made = self.value(keyword.value, module, scope)
                    if isinstance(made, TypeName):
                        return {} if made.name == "dict" else []
                    if isinstance(made, FunctionRef):
                        return self.returned(made)
            raise Unresolved(ast.unparse(node))
        return self.value(node, module, scope)

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, node: ast.Call, module: Module, scope: Mapping[str, Any]) -> Any:
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name in self.special:
            return self.special[name](node, module, scope)
        if isinstance(func, ast.Name) and name in ("list", "tuple", "set", "sorted", "frozenset", "dict"):
            if not node.args:
                return {} if name == "dict" else []
            value = self.value(node.args[0], module, scope)
            if name == "dict":
                return value
            items = self.iterate(value)
            return sorted(items) if name == "sorted" else items
        if isinstance(func, ast.Attribute):
            if name == "get" and not node.args:
                return self.env_default(func.value, module, scope)
            owner = self.value(func.value, module, scope)
            done = _method(owner, name, node)
            if done is not None:
                return done
            target = self.attribute(owner, name) if not isinstance(owner, ClassRef) else None
            if isinstance(owner, ClassRef) and (method := owner.method(name)) is not None:
                target = FunctionRef(owner.module, method)
        else:
            target = self.value(func, module, scope)
        if isinstance(target, FunctionRef):
            return self.returned(target)
        raise Unresolved(ast.unparse(node))

    def env_default(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
        """``envs.NAME.get()``: the variable's declared default."""
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] == "envs":
            declared = self.module("sglang.srt.environ")
            owner = declared.bindings.get("Envs") if declared else None
            if declared and isinstance(owner, ast.ClassDef):
                made = ClassRef(declared, owner).members().get(node.attr)
                if isinstance(made, ast.Call) and made.args:
                    return self.value(made.args[0], declared)
        raise Unresolved(ast.unparse(node))

    def returned(self, function: FunctionRef) -> Any:
        """What a helper without required parameters returns: its last return that can be evaluated
        (earlier ones are shortcuts of a running server)."""
        args = function.node.args
        if len(args.args) > len(args.defaults) and [a.arg for a in args.args] not in (["self"], ["cls"]):
            raise Unresolved(function.node.name)
        scope = self.local_imports(function.node, function.module)
        returns = [n for n in ast.walk(function.node) if isinstance(n, ast.Return) and n.value is not None]
        for stmt in sorted(returns, key=lambda n: -n.lineno):
            assert stmt.value is not None
            try:
                return self.value(stmt.value, function.module, scope)
            except Unresolved:
                continue
        raise Unresolved(function.node.name)

    def local_imports(self, node: ast.AST, module: Module) -> dict[str, Any]:
        """Names that a function body imports from SGLang."""
        scope: dict[str, Any] = {}
        for stmt in ast.walk(node):
            if isinstance(stmt, ast.ImportFrom):
                for alias in stmt.names:
                    try:
                        bound = self._imported((module.absolute(stmt), alias.name), frozenset())
                    except Unresolved:
                        continue
                    scope[alias.asname or alias.name] = bound
        return scope


def _method(owner: Any, name: str, node: ast.Call) -> Any:
    if isinstance(owner, dict) and name in ("keys", "values"):
        return list(owner) if name == "keys" else list(owner.values())
    if isinstance(owner, (list, dict)) and name == "copy" and not node.args:
        return type(owner)(owner)
    if isinstance(owner, str) and name in ("lower", "upper", "strip") and not node.args:
        return getattr(owner, name)()
    return None
