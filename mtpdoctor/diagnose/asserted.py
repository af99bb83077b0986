"""A bare ``assert condition``: what it asks, in words, and as a statement whose conditions can be met.

The line stands in the traceback; nothing else is known. Only names that are options of the release, written as SGLang's code writes
them (``self.page_size``, ``server_args.page_size``, ``page_size``), are taken for options.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mtpdoctor.log.types import Frame
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagTable
from mtpdoctor.sglang.raise_sites import Guard, RaiseSite

_CONDITION = lazy(r"^assert\s+(.*)$")
_HELD = lazy(r"^(?:self\.)?(?:(?:server_args|model_runner)\.|get_\w+\(\)\.)?")
_HOLDERS = frozenset(
    ["self", "server_args", "args", "cfg", "view", "model_runner", "runner", "scheduler", "inputs", "resolved", "self.server_args"]
)  # fmt: skip
_GETTERS = frozenset(
    ["get_global_server_args", "get_server_args", "resolved_view", "get_memory", "get_schedule", "get_spec", "get_exec", "get_parallel", "_resolved"]
)  # fmt: skip
# Names of options that SGLang's code uses for other things as well.
_NOT_ALONE = frozenset({"log_level", "file_storage_path"})
_PREDICATES = {
    "is_sm90_supported": "the GPU must be of Hopper (SM90)",
    "is_sm100_supported": "the GPU must be of Blackwell (SM100)",
    "is_sm120_supported": "the GPU must be of Blackwell (SM120)",
    "is_blackwell_supported": "the GPU must be of Blackwell",
    "is_hopper_with_cuda_12_3": "the GPU must be of Hopper, with CUDA 12.3 or later",
    "is_cuda": "the GPU must be NVIDIA's",
    "is_hip": "the GPU must be AMD's",
    "is_npu": "the device must be an Ascend NPU",
    "is_cpu": "the device must be a CPU",
    "is_xpu": "the device must be Intel's XPU",
    "is_contiguous": "",
}
_VERBS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("must be", "must not be"),
    ast.NotEq: ("must not be", "must be"),
    ast.Is: ("must be", "must not be"),
    ast.IsNot: ("must not be", "must be"),
    ast.Gt: ("must be greater than", "must be at most"),
    ast.GtE: ("must be at least", "must be less than"),
    ast.Lt: ("must be less than", "must be at least"),
    ast.LtE: ("must be at most", "must be greater than"),
    ast.In: ("must be one of", "must be none of"),
    ast.NotIn: ("must be none of", "must be one of"),
}


def condition_of(code: str) -> ast.expr | None:
    """What a line ``assert condition`` asks; None for other lines and for the first one of several."""
    found = _CONDITION.match(code.strip())
    if found is None:
        return None
    try:
        statement = ast.parse(f"assert {found[1]}").body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return None
    return statement.test if isinstance(statement, ast.Assert) else None


def must(code: str) -> str:
    """A clause that says what the line asks: "page_size must be 64"; "" where it cannot be read."""
    condition = condition_of(code)
    return _must(condition, True) if condition is not None else ""


def site_of_assert(frames: Sequence[Frame], table: FlagTable) -> RaiseSite | None:
    """The line as a statement with one condition; None where it names no option of the release. ``frames``: the innermost first."""
    condition = condition_of(frames[0].code) if frames else None
    if condition is None:
        return None
    named = _Options(table)
    condition = ast.fix_missing_locations(named.visit(condition))
    if not named.found:
        return None
    guard = Guard(ast.unparse(condition), False)
    file = frames[0].path[frames[0].path.rfind("sglang/") :]
    return RaiseSite(
        file, frames[0].function, 0, 0, "assert", "AssertionError", "", ("",), (guard,), tuple(named.found), ""
    )  # fmt: skip


class _Options(ast.NodeTransformer):
    """Every way in which the code names an option, as the option's plain name."""

    def __init__(self, table: FlagTable) -> None:
        self.table = table
        self.found: dict[str, None] = {}

    def _is_option(self, name: str) -> bool:
        spec = self.table.by_dest(name) if "_" in name and name not in _NOT_ALONE else None
        return spec is not None and spec.refused is None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self._is_option(node.id):
            self.found[node.id] = None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        owner = node.value
        holds = (isinstance(owner, ast.Call) and _called(owner) in _GETTERS) or ast.unparse(owner) in _HOLDERS
        if holds and self._is_option(node.attr):
            self.found[node.attr] = None
            return ast.Name(node.attr, ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return node  # what it makes of an option is not known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return node


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rsplit(".", 1)[-1]


def _must(node: ast.expr, holds: bool) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _must(node.operand, not holds)
    if isinstance(node, ast.BoolOp):
        every = isinstance(node.op, ast.And) == holds
        return (", and " if every else ", or ").join(_must(value, holds) for value in node.values)
    if isinstance(node, ast.Compare):
        return _compared(node, holds)
    if isinstance(node, ast.Call):
        return _of_call(node, holds)
    return f"{_name(node)} must be {'true' if holds else 'false'}"


def _compared(node: ast.Compare, holds: bool) -> str:
    left, right = node.left, node.comparators[-1]
    if len(node.ops) > 1:
        if all(isinstance(op, ast.Eq) for op in node.ops) and holds:
            return f"{' and '.join(map(_name, (left, *node.comparators[:-1])))} must be {_name(right)}"
        return f"{ast.unparse(node)} must {'' if holds else 'not '}hold"
    op = node.ops[0]
    if isinstance(right, ast.Constant) and right.value is None:
        given = isinstance(op, (ast.IsNot, ast.NotEq)) == holds
        return f"{_name(left)} must {'not ' if given else ''}be None"
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and _is_zero(right):
        divides = isinstance(op, ast.Eq) == holds
        return f"{_name(left.left)} must {'' if divides else 'not '}be divisible by {_name(left.right)}"
    if (
        isinstance(op, (ast.In, ast.NotIn))
        and isinstance(right, (ast.List, ast.Tuple, ast.Set))
        and right.elts
    ):
        alike = isinstance(op, ast.In) == holds
        return f"{_name(left)} must {'' if alike else 'not '}be {' or '.join(map(_name, right.elts))}"
    verb = _VERBS[type(op)][0 if holds else 1]
    if verb.endswith(" be") and not isinstance(right, ast.Constant) and isinstance(op, (ast.Eq, ast.NotEq)):
        verb += " equal to"
    return f"{_name(left)} {verb} {_name(right)}"


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _of_call(node: ast.Call, holds: bool) -> str:
    name, arguments = _called(node), node.args
    no = "" if holds else "not "
    if said := _PREDICATES.get(name.lstrip("_")):
        return said if holds else said.replace("must be", "must not be")
    if name == "isinstance" and len(arguments) == 2:
        return f"{_name(arguments[0])} must {no}be of type {_name(arguments[1])}"
    if name == "hasattr" and len(arguments) == 2:
        return f"{_name(arguments[0])} must {no}have {ast.unparse(arguments[1]).strip(chr(39))}"
    if name in ("all", "any") and len(arguments) == 1 and isinstance(arguments[0], ast.GeneratorExp):
        every = "each " if (name == "all") == holds else "one "
        return every + _must(arguments[0].elt, holds)
    if name == "is_contiguous" and isinstance(node.func, ast.Attribute):
        return f"{_name(node.func.value)} must {no}be contiguous"
    return f"{_name(node)} must {no}hold"


def _name(node: ast.expr) -> str:
    """As people read it: without what holds it."""
    text = _HELD.sub("", ast.unparse(node))
    return f"({text})" if isinstance(node, (ast.Compare, ast.BoolOp)) else text
