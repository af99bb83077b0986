"""The annotations of a class body's fields, as syntax: ``A[type, Arg(...)]``, ``Optional[type]``."""

from __future__ import annotations

import ast


def last_name(func: ast.expr) -> str:
    return ast.unparse(func).split(".")[-1]


def is_derived(annotation: ast.expr) -> bool:
    """``A[T, Derived(...)]``: filled at run time, not a field of ServerArgs."""
    parts = annotated(annotation)
    return parts is not None and any(
        isinstance(m, ast.Call) and last_name(m.func) == "Derived" for m in parts[1]
    )


def annotated(annotation: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
    if not isinstance(annotation, ast.Subscript) or last_name(annotation.value) not in ("A", "Annotated"):
        return None
    inside = annotation.slice
    if isinstance(inside, ast.Tuple) and len(inside.elts) > 1:
        return inside.elts[0], inside.elts[1:]
    return None


def without_optional(node: ast.expr) -> ast.expr:
    """``Optional[X]``, ``Union[X, None]`` and ``X | None`` to X."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    parts: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and last_name(node.value) == "Optional":
        return node.slice
    if (
        isinstance(node, ast.Subscript)
        and last_name(node.value) == "Union"
        and isinstance(node.slice, ast.Tuple)
    ):
        parts = node.slice.elts
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        pending: list[ast.expr] = [node]
        while pending:
            item = pending.pop()
            if isinstance(item, ast.BinOp) and isinstance(item.op, ast.BitOr):
                pending += [item.left, item.right]
            else:
                parts.append(item)
    kept = [p for p in parts if ast.unparse(p) != "None"]
    return kept[0] if len(kept) == 1 else node
