"""Conditions of SGLang's code, cut down to what a person can look at: server options, variables, fields of config.json.

Each keeps its operator and the value it is compared with; whatever else the condition asks is ``_``. What comes out is
an expression of these names alone (``page_size > 1 and _``), which ``guards`` puts in words and derives edits from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from mtpdoctor.patterns import lazy

OPEN = "_"  # a part that no option, variable or field decides
_OWNED = lazy(
    r"(?:^|\.)(?:server_args|args|cfg|view|resolved|inputs?)(?:\(\))?\.(\w+)$|_args\(\)\.(\w+)$|^self\.(\w+)$"
)
_CONFIG = lazy(
    r"(?:^|\.)(?:hf_text_config|hf_config|text_config|vision_config|model_config|config)(?:\(\))?\.(\w+)$"
)
_ENVS = lazy(r"^envs\.([A-Z0-9_]+)(?:\.get\(\)|\.is_set\(\)|\.value)?$")
_READERS = ("get_bool_env_var", "get_int_env_var", "os.getenv", "os.environ.get", "getenv", "environ.get")
# Too common as names of other things to mean the option where its owner is not named.
_COMMON = frozenset(
    {
        "device",
        "dtype",
        "stream",
        "host",
        "port",
        "revision",
        "config",
        "model_path",
        "version",
        "weight_version",
        "name",
    }
)
_OPS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_MAX = 220  # characters; longer lists of values say little to a person
Scope = Mapping[str, Sequence[ast.expr]]


class FactReader:
    """Reads conditions with what is known of one release: the names of its options (``dests``)."""

    def __init__(self, dests: frozenset[str]) -> None:
        self.dests = dests

    def condition(self, node: ast.expr, scope: Scope) -> str:
        """The condition in its facts; ``_`` where it has none."""
        text = self._condition(node, scope, 0)
        return text if len(text) <= _MAX else OPEN

    def names(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """Every fact that the condition looks at, also through variables it was worked out from."""
        pending: list[tuple[ast.AST, int]] = [(node, 0)]
        followed: set[str] = set()
        while pending:
            top, depth = pending.pop()
            for inner in ast.walk(top):
                if isinstance(inner, (ast.Attribute, ast.Call, ast.Subscript, ast.Name)):
                    name = self._fact(inner, {})
                    if name is not None:
                        yield name
                if (
                    isinstance(inner, ast.Name)
                    and inner.id in scope
                    and inner.id not in followed
                    and depth < 3
                ):
                    followed.add(inner.id)
                    pending += [(value, depth + 1) for value in scope[inner.id][:2]]

    def _condition(self, node: ast.expr, scope: Scope, depth: int) -> str:
        if depth > 8:
            return OPEN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._condition(node.operand, scope, depth + 1)
            return inner if inner == OPEN else f"not ({inner})"
        if isinstance(node, ast.BoolOp):
            parts = list(dict.fromkeys(self._condition(v, scope, depth + 1) for v in node.values))
            if parts == [OPEN]:
                return OPEN
            word = " and " if isinstance(node.op, ast.And) else " or "
            return word.join(f"({p})" if " and " in p or " or " in p else p for p in parts)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node, scope)
        if isinstance(node, ast.Name) and node.id in scope and len(scope[node.id]) == 1:
            value = scope[node.id][0]
            if isinstance(value, (ast.BoolOp, ast.Compare, ast.UnaryOp)):  # a named condition
                inner_scope = {k: v for k, v in scope.items() if k != node.id}
                return self._condition(value, inner_scope, depth + 1)
        return self._fact(node, scope) or OPEN

    def _comparison(self, node: ast.Compare, scope: Scope) -> str:
        left, right = self._operand(node.left, scope), self._operand(node.comparators[0], scope)
        if not (self._tells(left) or self._tells(right)):
            return OPEN
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and left[:1] in "'\"" and self._tells(right):
            return OPEN if right == OPEN else f"{left} {_OPS[type(node.ops[0])]} {right}"
        return f"{left} {_OPS[type(node.ops[0])]} {right}"

    @staticmethod
    def _tells(text: str) -> bool:
        return (
            any(c.isalpha() for c in text)
            and text[:1] not in "'\"["
            and text not in ("None", "True", "False")
        )

    def _operand(self, node: ast.expr, scope: Scope) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
            return repr(node.value)
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
        ):
            return f"-{node.operand.value!r}"
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items = [self._operand(e, scope) for e in node.elts]
            return OPEN if OPEN in items else f"[{', '.join(items)}]"
        if isinstance(node, ast.Name) and node.id.isupper() and len(found := scope.get(node.id, ())) == 1:
            return self._operand(found[0], {})  # a constant of the file
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, (ast.Mod, ast.Mult, ast.FloorDiv, ast.Add, ast.Sub)
        ):
            sign = {ast.Mod: "%", ast.Mult: "*", ast.FloorDiv: "//", ast.Add: "+", ast.Sub: "-"}[
                type(node.op)
            ]
            left, right = self._operand(node.left, scope), self._operand(node.right, scope)
            return OPEN if left == right == OPEN else f"{left} {sign} {right}"
        return self._fact(node, scope) or OPEN

    def _fact(self, node: ast.AST, scope: Scope) -> str | None:
        """The one option, variable or field that an expression is."""
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            return _variable(node.slice)
        if isinstance(node, ast.Name):
            found = scope.get(node.id)
            if found:
                inner = found[0] if len(found) == 1 else None
                return self._fact(inner, {}) if isinstance(inner, (ast.Attribute, ast.Call)) else None
            return node.id if node.id in self.dests and node.id not in _COMMON else None
        if not isinstance(node, ast.Attribute):
            return None
        text = ast.unparse(node)
        if env := _ENVS.match(text):
            return f"envs.{env[1]}.get()"
        if config := _CONFIG.search(text):
            return None if config[1].endswith("config") else f"config.{config[1]}"
        if owned := _OWNED.search(text):
            name = owned[1] or owned[2] or owned[3]
            return name if name in self.dests and not (owned[3] and name in _COMMON) else None
        return None

    def _called(self, node: ast.Call) -> str | None:
        text = ast.unparse(node.func)
        if env := _ENVS.match(text + "()"):
            return f"envs.{env[1]}.get()"
        if node.args and any(text == r or text.endswith(f".{r}") for r in _READERS):
            return _variable(node.args[0])
        if text == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            return self._fact(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()), {})
        return None


def _variable(node: ast.expr) -> str | None:
    name = node.value if isinstance(node, ast.Constant) else None
    return f"envs.{name}.get()" if isinstance(name, str) and name.isupper() else None
