"""Message templates: the literal pieces of the text that a statement can print, with holes between."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mtpdoctor.patterns import lazy

Pieces = tuple[str, ...]  # literals; between two neighbours there is a hole
Scope = Mapping[str, Sequence[ast.expr]]  # variable -> what it may have been assigned

HOLE: Pieces = ("", "")
_MAX_ALTERNATIVES = 12
_PERCENT = lazy(r"%(?:\((\w+)\))?[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[diouxXeEfFgGcrsa%]")
_BRACES = lazy(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


def join(left: Pieces, right: Pieces) -> Pieces:
    """Concatenation of two templates; neighbouring holes become one."""
    middle = left[-1] + right[0]
    out = [*left[:-1], middle, *right[1:]]
    kept = [out[0]]
    for index, piece in enumerate(out[1:], start=1):
        if piece == "" and 0 < index < len(out) - 1:
            continue
        kept.append(piece)
    return tuple(kept)


def templates(node: ast.expr, scope: Scope, depth: int = 0) -> list[Pieces]:
    """Every text an expression may give, as templates. Unknown parts are holes."""
    if depth > 12:
        return [HOLE]
    found = _templates(node, scope, depth)
    return list(dict.fromkeys(found))[:_MAX_ALTERNATIVES] or [HOLE]


def _templates(node: ast.expr, scope: Scope, depth: int) -> Iterable[Pieces]:
    if isinstance(node, ast.Constant):
        return [(node.value,)] if isinstance(node.value, str) else [(str(node.value),)]
    if isinstance(node, ast.JoinedStr):
        return _product(_formatted(part, scope, depth) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _product([templates(side, scope, depth + 1) for side in (node.left, node.right)])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return [percent("".join(p)) for p in templates(node.left, scope, depth + 1) if len(p) == 1]
    if isinstance(node, ast.IfExp):
        return [*templates(node.body, scope, depth + 1), *templates(node.orelse, scope, depth + 1)]
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return [t for value in node.values for t in templates(value, scope, depth + 1)]
    if isinstance(node, ast.NamedExpr):
        return templates(node.value, scope, depth + 1)
    if isinstance(node, ast.Name) and node.id in scope:
        inner = {k: v for k, v in scope.items() if k != node.id}  # msg = msg + "..." must end
        return [t for value in scope[node.id] for t in templates(value, inner, depth + 1)]
    if isinstance(node, ast.Attribute) and node.attr.isupper() and node.attr in scope:
        return [t for value in scope[node.attr] for t in templates(value, {}, depth + 1)]
    if isinstance(node, ast.Call):
        return _called(node, scope, depth)
    return [HOLE]


def _formatted(part: ast.expr, scope: Scope, depth: int) -> list[Pieces]:
    if isinstance(part, ast.FormattedValue):
        simple = part.format_spec is None and part.conversion in (-1, 115)
        return templates(part.value, scope, depth + 1) if simple else [HOLE]
    return templates(part, scope, depth + 1)


def _called(node: ast.Call, scope: Scope, depth: int) -> Iterable[Pieces]:
    func = node.func
    if isinstance(func, ast.Attribute):
        if func.attr == "format":
            return [braces("".join(p)) for p in templates(func.value, scope, depth + 1) if len(p) == 1]
        if func.attr in ("strip", "lstrip", "rstrip", "lower", "upper", "replace", "expandtabs"):
            return templates(func.value, scope, depth + 1)
        if func.attr in ("dedent", "cleandoc") and node.args:
            return templates(node.args[0], scope, depth + 1)
        if func.attr == "join" and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
            separators = templates(func.value, scope, depth + 1)
            parts: list[list[Pieces]] = []
            for element in node.args[0].elts:
                parts += (
                    [separators, templates(element, scope, depth + 1)]
                    if parts
                    else [templates(element, scope, depth + 1)]
                )
            return _product(parts)
    if isinstance(func, ast.Name) and func.id in ("str", "colored", "red", "dedent") and node.args:
        return templates(node.args[0], scope, depth + 1)
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    returned = scope.get(f"{name}()")  # helpers that build the message
    if returned:
        return [t for value in returned for t in templates(value, {}, depth + 1)]
    return [HOLE]


def _product(parts: Iterable[list[Pieces]]) -> list[Pieces]:
    out: list[Pieces] = [("",)]
    for alternatives in parts:
        out = [join(left, right) for left in out for right in alternatives][:_MAX_ALTERNATIVES]
    return out


def percent(text: str) -> Pieces:
    """``"a %s b"`` to its pieces."""
    out: Pieces = ("",)
    at = 0
    for match in _PERCENT.finditer(text):
        out = join(out, (text[at : match.start()],))
        out = join(out, ("%",) if match[0].endswith("%") else HOLE)
        at = match.end()
    return join(out, (text[at:],))


def braces(text: str) -> Pieces:
    """``"a {} b"`` of str.format to its pieces."""
    out: Pieces = ("",)
    at = 0
    for match in _BRACES.finditer(text):
        out = join(out, (text[at : match.start()],))
        out = join(out, (match[0][0],) if match[0] in ("{{", "}}") else HOLE)
        at = match.end()
    return join(out, (text[at:],))


def show(pieces: Pieces) -> str:
    """The template as people read it, holes as ``{}``."""
    return "{}".join(pieces)


def literal_length(pieces: Pieces) -> int:
    return sum(len(re.sub(r"\s+", "", piece)) for piece in pieces)


@lru_cache(maxsize=65536)
def pattern(pieces: Pieces, whole: bool = True) -> re.Pattern[str]:
    """A regex that the text of this template matches, white space aside: as a whole, or its beginning."""
    glued = []
    for piece in pieces:
        left = r"\s*" if piece[:1].isspace() else ""
        right = r"\s*" if piece[-1:].isspace() else ""
        glued.append(left + r"\s+".join(re.escape(word) for word in piece.split()) + right)
    return re.compile(r"\s*" + r"(?:[\s\S]*?)".join(glued) + (r"\s*\Z" if whole else ""))


def common_beginning(pieces: Pieces, message: str) -> int:
    """How many characters of fixed text a cut or continued ``message`` shares with the template before
    they part; 0 when they part inside a literal."""
    for count in range(len(pieces), 0, -1):
        begun = pattern(pieces[:count], whole=False).match(message)
        if begun is None:
            continue
        rest = "".join(message[begun.end() :].split())
        after = "".join(pieces[count].split()) if count < len(pieces) else ""
        # The cut may fall into the next literal: its beginning then ends the message.
        shared = next((n for n in range(min(len(after), len(rest)), 0, -1) if rest.endswith(after[:n])), 0)
        return literal_length(pieces[:count]) + shared
    squeezed = "".join(message.split())
    return len(squeezed) if squeezed and "".join(pieces[0].split()).startswith(squeezed) else 0
