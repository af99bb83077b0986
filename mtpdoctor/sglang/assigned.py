"""What a statement of Python assigns to."""

from __future__ import annotations

import ast


def assigned(node: ast.AST) -> list[ast.expr]:
    """The targets as they stand: a tuple is one target."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        return [node.target]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.optional_vars for item in node.items if item.optional_vars is not None]
    return []
