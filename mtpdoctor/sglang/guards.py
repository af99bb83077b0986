"""The conditions that lead to an error, in the user's words, and edits that would make one of them false.

For failures that no rule knows. Such an edit is a guess from the source: always risky, never safe.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, FlagTable
from mtpdoctor.sglang.guard_facts import OPEN
from mtpdoctor.sglang.raise_sites import Guard, RaiseSite

_OWNER = lazy(r"^(?:self\.)?(?:server_args|args|cfg|view|resolved|inputs?)\.|^self\.")
_CONFIG = lazy(r"(?:^|\.)(?:hf_text_config|hf_config|text_config|model_config|config)\.(\w+)$")
_ENV = lazy(r"^envs\.([A-Z0-9_]+)\.(?:get|is_set)\(\)$")
_COMPARED: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("is", "is not"),
    ast.NotEq: ("is not", "is"),
    ast.Gt: ("is greater than", "is at most"),
    ast.GtE: ("is at least", "is less than"),
    ast.Lt: ("is less than", "is at least"),
    ast.LtE: ("is at most", "is greater than"),
    ast.In: ("is one of", "is none of"),
    ast.NotIn: ("is none of", "is one of"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
    ast.Lt: ast.GtE,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ORDERED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_RANKS = frozenset({"--tp-size", "--tensor-parallel-size", "--tp"})
_SOMETHING = "something else holds"
# Never offered: taking these away leaves nothing of what was asked for, or starts another model.
_KEPT = frozenset({"model_path", "tokenizer_path", "host", "port", "device", "nnodes", "node_rank"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """Edits that would make a guard false, as far as the source tells, and the guard in words."""

    edits: tuple[Edit, ...]
    why: str

    @property
    def gives_up_gpus(self) -> bool:
        """Nothing but one GPU in place of several."""
        return all(e.value == "1" and e.name in _RANKS for e in self.edits)


def guard_words(site: RaiseSite, table: FlagTable) -> tuple[str, ...]:
    """The conditions under which the statement is reached, outermost first, with flags named as typed."""
    return tuple(words for guard in site.guards if (words := in_words(guard, table)))


def flags_read(site: RaiseSite, table: FlagTable) -> tuple[FlagSpec, ...]:
    """Flags whose fields the guards look at."""
    found = (table.by_dest(name.split(".")[0]) for name in site.reads)
    return tuple({spec.name: spec for spec in found if spec is not None}.values())


def config_read(site: RaiseSite) -> tuple[str, ...]:
    """Fields of the model's config.json that the guards look at."""
    found = (_CONFIG.search(name) for name in site.reads)
    return tuple(dict.fromkeys(m[1] for m in found if m and not m[1].endswith("config")))


def variables_read(site: RaiseSite) -> tuple[str, ...]:
    """Environment variables that the guards look at."""
    found = (_ENV.match(name) for name in site.reads)
    return tuple(dict.fromkeys(m[1] for m in found if m))


def names_in(condition: str) -> tuple[str, ...]:
    """The options, variables and fields that a condition of ``guard_facts`` names."""
    tree = _parse(condition)
    if tree is None:
        return ()
    out: dict[str, None] = {}
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.Call, ast.Attribute)) or (isinstance(node, ast.Name) and node.id != OPEN):
            out[ast.unparse(node)] = None
        else:
            pending += ast.iter_child_nodes(node)
    return tuple(out)


class _OnlyOptions(ast.NodeTransformer):
    """Names that are no option of the release are attributes of something else that was called so."""

    def __init__(self, table: FlagTable) -> None:
        self.table = table

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if self.table.by_dest(node.id) is not None else ast.Name(OPEN, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return node  # a variable

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return node  # a field of config.json


def known_part(condition: str, table: FlagTable) -> str:
    """A condition of ``guard_facts`` with the options of this release only; ``_`` where nothing is left."""
    tree = _parse(condition)
    if tree is None:
        return OPEN
    text = ast.unparse(_OnlyOptions(table).visit(tree))
    return text if names_in(text) else OPEN


def in_words(guard: Guard, table: FlagTable) -> str:
    tree = _parse(guard.source)
    words = _phrase(tree, guard.holds, table) if tree is not None else guard.source
    return "" if words == _SOMETHING else words


def _parse(source: str) -> ast.expr | None:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
        return None


def _phrase(node: ast.expr, holds: bool, table: FlagTable) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _phrase(node.operand, not holds, table)
    if isinstance(node, ast.BoolOp):
        both = isinstance(node.op, ast.And) == holds
        parts = [_phrase(value, holds, table) for value in node.values]
        if both and any(p != _SOMETHING for p in parts):  # what is not known goes without saying
            parts = [p for p in parts if p != _SOMETHING]
        inner = [f"({p})" if " or " in p and both else p for p in parts]
        return (" and " if both else " or ").join(inner)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _comparison(node, holds, table)
    if isinstance(node, ast.Name) and node.id == OPEN:
        return _SOMETHING
    spec = _flag(node, table)
    name = _name(node, table)
    if spec is not None and spec.arity == "switch":
        return f"{name} is {'on' if holds else 'off'}"
    if spec is not None:
        return f"{name} is {'given' if holds else 'not given'}"
    return name if holds else f"not {name}"


def _comparison(node: ast.Compare, holds: bool, table: FlagTable) -> str:
    left, op, right = node.left, node.ops[0], node.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None:
        given = isinstance(op, (ast.IsNot, ast.NotEq)) == holds
        return f"{_name(left, table)} is {'given' if given else 'not given'}"
    zero = isinstance(right, ast.Constant) and right.value == 0 and isinstance(op, (ast.Eq, ast.NotEq))
    if zero and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        divisible = isinstance(op, ast.Eq) == holds
        a, b = _name(left.left, table), _name(left.right, table)
        return f"{a} is {'' if divisible else 'not '}divisible by {b}"
    verb = _COMPARED[type(op)][0 if holds else 1]
    return f"{_name(left, table)} {verb} {_name(right, table)}"


def _name(node: ast.expr, table: FlagTable) -> str:
    """An operand as people know it: a flag, a field of config.json, a variable, a value."""
    if isinstance(node, ast.Name) and node.id == OPEN:
        return "a computed value"
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return ", ".join(_name(e, table) for e in node.elts)
    spec = _flag(node, table)
    if spec is not None:
        return spec.name
    text = ast.unparse(node)
    env = _ENV.match(text)
    if env:
        return f"${env[1]}"
    config = _CONFIG.search(text)
    if config:
        return f"the model's {config[1]}"
    if isinstance(node, ast.BinOp):
        operator = {ast.Mod: "%", ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.FloorDiv: "//", ast.Div: "/"}
        sign = operator.get(type(node.op))
        if sign:
            return f"{_name(node.left, table)} {sign} {_name(node.right, table)}"
    return _OWNER.sub("", text)


def _flag(node: ast.expr, table: FlagTable) -> FlagSpec | None:
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        name = _OWNER.sub("", text)
        return table.by_dest(name) if "." not in name else None
    if isinstance(node, ast.Name):
        return table.by_dest(node.id)
    return None


# -- edits -------------------------------------------------------------------------------------------------


def candidate_edits(
    site: RaiseSite, values: Mapping[str, Any], table: FlagTable, limit: int = 6
) -> tuple[Candidate, ...]:
    """Edits to the command that would keep the launch from reaching ``site``; the condition nearest to the
    statement first. ``values`` are the arguments in force, by field; a field that is missing is unknown.

    Guesses from the source: offer them as risky only, and only after they were checked like any fix.
    """
    out: dict[tuple[Edit, ...], Candidate] = {}
    for guard in reversed(site.guards):
        tree = _parse(guard.source)
        if tree is None:
            continue
        why = f"the error needs: {_phrase(tree, guard.holds, table)}"
        for edits in _make(tree, not guard.holds, values, table):
            out.setdefault(edits, Candidate(edits, why))
    # Another value keeps more of what was asked for than a switch, and a switch more than an option less.
    weight = {EditOp.SET: 0, EditOp.ADD: 1, EditOp.REMOVE: 2}
    ranked = sorted(out.values(), key=lambda c: max(weight.get(e.op, 0) for e in c.edits))
    return tuple(ranked)[:limit]


Edits = tuple[Edit, ...]


def _make(node: ast.expr, wanted: bool, values: Mapping[str, Any], table: FlagTable) -> Iterator[Edits]:
    """Edits after which ``node`` is ``wanted``; each yields one way."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _make(node.operand, not wanted, values, table)
    elif isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) != wanted:  # one operand decides
            for value in node.values:
                yield from _make(value, wanted, values, table)
        else:
            ways = [next(_make(value, wanted, values, table), None) for value in node.values]
            if all(way is not None for way in ways):
                yield tuple(edit for way in ways if way is not None for edit in way)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _compare(node, wanted, values, table)
    else:
        spec = _flag(node, table)
        if spec is None or spec.dest in _KEPT:
            return
        if not wanted:
            yield (Edit(EditOp.REMOVE, spec.name),)
        elif spec.arity == "switch":
            yield (Edit(EditOp.ADD, spec.name),)


def _compare(node: ast.Compare, wanted: bool, values: Mapping[str, Any], table: FlagTable) -> Iterator[Edits]:
    left, right = node.left, node.comparators[0]
    op = type(node.ops[0]) if wanted else _OPPOSITE[type(node.ops[0])]
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        yield from _divisible(left, op, right, values, table)
        return
    spec = _flag(left, table)
    if spec is None or spec.dest in _KEPT or spec.arity == "many":
        return
    bound = _value(right, values, table)
    if _met(values.get(spec.dest), op, bound):
        return  # it is so already: not this is what fails
    if isinstance(right, ast.Constant) and right.value is None:
        if op in (ast.Is, ast.Eq):
            yield (Edit(EditOp.REMOVE, spec.name),)
        return
    if op in (ast.Eq, ast.Is):
        yield from _set(spec, bound)
    elif op is ast.In and isinstance(bound, list):
        for choice in bound[:3]:
            yield from _set(spec, choice)
    elif op in (ast.NotEq, ast.IsNot, ast.NotIn):
        if isinstance(bound, bool):
            yield from _set(spec, not bound)
        else:
            yield (Edit(EditOp.REMOVE, spec.name),)
    elif isinstance(bound, (int, float)) and not isinstance(bound, bool):
        step = 1 if isinstance(bound, int) else 0.01
        yield from _set(spec, {ast.Gt: bound + step, ast.Lt: bound - step}.get(op, bound))


def _met(now: Any, op: type[ast.cmpop], bound: Any) -> bool:
    """Does the value in force meet the comparison? False where one of the two is not known."""
    if now is None or bound is None or isinstance(now, (list, dict)):
        return False
    if op in (ast.In, ast.NotIn):
        return isinstance(bound, list) and (now in bound) == (op is ast.In)
    if op in (ast.Eq, ast.Is, ast.NotEq, ast.IsNot):
        return bool((now == bound) == (op in (ast.Eq, ast.Is)))
    sign = _ORDERED.get(op)
    numbers = all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in (now, bound))
    return sign is not None and numbers and bool(sign(now, bound))


def holds_here(condition: str, values: Mapping[str, Any], table: FlagTable) -> bool | None:
    """Does a condition on options hold with the values in force? None where they do not tell."""
    tree = _parse(condition)
    return _holds(tree, values, table) if tree is not None else None


def _holds(node: ast.expr, values: Mapping[str, Any], table: FlagTable) -> bool | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _holds(node.operand, values, table)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        parts = [_holds(value, values, table) for value in node.values]
        decides = isinstance(node.op, ast.Or)
        return decides if decides in parts else None if None in parts else not decides
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1):
        spec = _flag(node, table)
        return bool(values[spec.dest]) if spec is not None and values.get(spec.dest) is not None else None
    op, bound = type(node.ops[0]), _value(node.comparators[0], values, table)
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
        a, b = _value(node.left.left, values, table), _value(node.left.right, values, table)
        now = a % b if isinstance(a, int) and isinstance(b, int) and b else None
    else:
        now = _value(node.left, values, table)
    if now is None or bound is None:
        return None
    return _met(now, op, bound)


def _divisible(
    left: ast.BinOp, op: type[ast.cmpop], right: ast.expr, values: Mapping[str, Any], table: FlagTable
) -> Iterator[Edits]:
    """Make ``a % b == 0`` true: a to the multiple below (or b itself), else b to 1."""
    if op is not ast.Eq or not (isinstance(right, ast.Constant) and right.value == 0):
        return
    first, second = _flag(left.left, table), _flag(left.right, table)
    a, b = _value(left.left, values, table), _value(left.right, values, table)
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a % b == 0:
        return
    if first is not None and isinstance(a, int) and isinstance(b, int) and b > 0:
        yield from _set(first, max(a // b, 1) * b)
    if second is not None and isinstance(a, int) and isinstance(b, int) and a > 0:
        yield from _set(second, next((n for n in range(min(a, b), 0, -1) if a % n == 0), 1))


def _set(spec: FlagSpec, value: Any) -> Iterator[Edits]:
    if value is None or isinstance(value, (list, dict)):
        return
    if spec.arity == "switch":
        yield (Edit(EditOp.ADD if value else EditOp.REMOVE, spec.name),)
    elif not spec.choices or str(value) in map(str, spec.choices):
        text = f"{value:g}" if isinstance(value, float) else str(value)
        yield (Edit(EditOp.SET, spec.name, text),)


def _value(node: ast.expr, values: Mapping[str, Any], table: FlagTable) -> Any:
    """A constant, or the value in force of a flag; None when unknown."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, values, table)
        return -inner if isinstance(inner, (int, float)) else None
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items = [_value(e, values, table) for e in node.elts]
        return None if None in items else items
    spec = _flag(node, table)
    return values.get(spec.dest) if spec is not None else None
