"""What a condition of SGLang's code says of server options and variables: the gates that hold where it is true, or false.

A gate is what an edit of the command can make false: ``server_args.enable_x``, ``get_moe_a2a_backend().is_deepep()``,
``page_size > 1``, ``_use_aiter`` (a constant of the file, set from a variable). What else a condition asks is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.gates import CALLS, IS, NO_GATES, OFF, OVER, Gate, Gates

# Names of a thing that is made of an option under another name.
_MADE_OF = {
    "spec_algorithm": "speculative_algorithm",
    "backend_str": "attention_backend",
    "transfer_backend": "disaggregation_transfer_backend",
    "is_dp_attention_enabled": "enable_dp_attention",
    "is_tbo_enabled": "enable_two_batch_overlap",
    "is_sbo_enabled": "enable_single_batch_overlap",
}
# Options that are the purpose of a launch or decide nothing of what runs, and names too common to mean the option.
_NEVER = frozenset(
    {
        "model_path", "tokenizer_path", "tp_size", "nnodes", "node_rank", "device", "dtype", "host",
        "port", "stream", "revision", "config", "version", "name", "base_gpu_id", "gpu_id_step",
        "trust_remote_code", "is_embedding", "served_model_name", "load_format", "quantization",
        "context_length", "dist_init_addr", "weight_version", "log_level", "speculative_num_steps",
        "speculative_eagle_topk", "speculative_num_draft_tokens", "mem_fraction_static", "help", "enabled",
        "backend", "size", "mode", "warmups", "api_key", "random_seed", "json_model_override_args",
        "max_running_requests", "max_total_tokens", "model_impl", "chat_template", "tokenizer_mode",
        "download_dir", "log_requests", "nccl_port", "disaggregation_mode", "disable_overlap_schedule",
        "tokenizer_worker_num", "reasoning_parser", "tool_call_parser", "pp_rank", "dp_rank",
        "speculative_draft_model_path", "kv_cache_dtype", "page_size", "chunked_prefill_size",
        "crash_dump_folder", "enable_metrics_for_all_schedulers", "language_only", "language_model_only",
        "encoder_only", "attn_dp_size", "max_lora_rank", "attn_cp_size",
    }
)  # fmt: skip
_READERS = ("get_bool_env_var", "get_int_env_var", "os.getenv", "os.environ.get", "getenv", "environ.get")
_ENV = lazy(r"^envs\.([A-Z][A-Z0-9_]+)(?:\.get|\.is_set)?(?:\(\))?$")
_MAKERS = (".from_string", "Algorithm", "Backend", "Mode")
_ARGS = ("global_server_args_dict", "server_args_dict")
_MAX_DEPTH = 6


Scope = Mapping[str, list[ast.expr]]


@dataclass(frozen=True)
class SetTo:
    """What an attribute of ``self`` or a name of the module is set to, in which function ("" outside of any)."""

    value: ast.expr
    function: str


def either(parts: Iterable[Gates]) -> Gates:
    """What holds where one of several sets of gates does: what all have, or the values of one option together."""
    found = list(parts)
    if not found:
        return NO_GATES
    common = frozenset.intersection(*found)
    names = set.intersection(*({g.name for g in part if g.how == IS} for part in found))
    merged = {
        Gate(name, IS, tuple(sorted({v for part in found for g in part if g.name == name for v in g.values})))
        for name in names
        if not any(g.name == name for g in common)
    }
    return common | merged


class Conditions:
    """Reads the conditions of one file. ``dests``: the fields of ServerArgs; ``attributes``: what the file sets
    ``self.x`` and its own names to (``self.x`` under that name)."""

    def __init__(self, dests: frozenset[str], attributes: Mapping[str, list[SetTo]]) -> None:
        self.dests, self.attributes = dests, attributes

    def when(self, node: ast.expr, scope: Scope, depth: int = 0) -> Gates:
        """What surely holds where ``node`` is true."""
        if depth > _MAX_DEPTH:
            return NO_GATES
        if isinstance(node, ast.BoolOp):
            parts = [self.when(v, scope, depth + 1) for v in node.values]
            return NO_GATES.union(*parts) if isinstance(node.op, ast.And) else either(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.unless(node.operand, scope, depth + 1)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, node.ops[0], scope, depth)
        if (name := self._fact(node, scope, depth)) is not None:
            return frozenset({Gate(name)})
        if (found := self._is_value(node, scope, depth)) is not None:
            return found
        parts = []
        for value, function in self._set_to(node, scope):
            if isinstance(value, ast.Constant):
                if value.value:
                    parts.append(frozenset({Gate(CALLS + function)}) if function else NO_GATES)
            else:
                parts.append(self.when(value, _without(scope, node), depth + 1))
        return either(parts)

    def unless(self, node: ast.expr, scope: Scope, depth: int = 0) -> Gates:
        """What surely holds where ``node`` is false."""
        if depth > _MAX_DEPTH:
            return NO_GATES
        if isinstance(node, ast.BoolOp):
            parts = [self.unless(v, scope, depth + 1) for v in node.values]
            return NO_GATES.union(*parts) if isinstance(node.op, ast.Or) else either(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.when(node.operand, scope, depth + 1)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            opposite = _OPPOSITE.get(type(node.ops[0]))
            return NO_GATES if opposite is None else self._compared(node, opposite(), scope, depth)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "is_none"
        ):
            made = self._fact(node.func.value, scope, depth)
            return frozenset({Gate(made)}) if made else NO_GATES
        if (name := self._fact(node, scope, depth)) is not None:
            return _off(name)
        set_to = self._set_to(node, scope)
        if len(set_to) == 1 and not isinstance(set_to[0][0], ast.Constant):
            return self.unless(set_to[0][0], _without(scope, node), depth + 1)
        return NO_GATES

    def _set_to(self, node: ast.expr, scope: Scope) -> list[tuple[ast.expr, str]]:
        if isinstance(node, ast.Name):
            if local := scope.get(node.id):
                return [(value, "") for value in local]
            return [(s.value, s.function) for s in self.attributes.get(node.id, ())]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return [(s.value, s.function) for s in self.attributes.get(f"self.{node.attr}", ())]
        return []

    def _is_value(self, node: ast.expr, scope: Scope, depth: int) -> Gates | None:
        """``get_moe_a2a_backend().is_deepep()``; None for anything else."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args):
            return None
        value = node.func.attr.removeprefix("is_")
        if value == node.func.attr or (owner := self._fact(node.func.value, scope, depth)) is None:
            return None
        return NO_GATES if value == "none" else frozenset({Gate(owner, IS, (value,))})

    def _compared(self, node: ast.Compare, op: ast.cmpop, scope: Scope, depth: int) -> Gates:
        name, values = self._fact(node.left, scope, depth), _constants(node.comparators[0])
        if name is None or not values:
            return NO_GATES
        first = values[0]
        if isinstance(op, (ast.Is, ast.Eq, ast.In)):
            if values in ([None], [False]):
                return _off(name)
            if values == [True]:
                return frozenset({Gate(name)})
            if None in values or "null" in values or isinstance(first, int):
                return NO_GATES
            return frozenset({Gate(name, IS, tuple(sorted(map(str, values))))})
        if isinstance(op, (ast.IsNot, ast.NotEq)):
            if values in ([None], [False]):
                return frozenset({Gate(name)})
            return _off(name) if values == [True] else NO_GATES
        if isinstance(op, (ast.Gt, ast.GtE)) and isinstance(first, int) and not isinstance(first, bool):
            return frozenset({Gate(name, OVER, (str(first - isinstance(op, ast.GtE)),))})
        return NO_GATES

    def _fact(self, node: ast.expr, scope: Scope, depth: int) -> str | None:
        """The option or variable that an expression is."""
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, (ast.Attribute, ast.Call)) and (found := _ENV.match(ast.unparse(node))):
            return f"${found[1]}"
        if isinstance(node, ast.Call):
            return self._called(node, scope, depth)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self._dest(str(node.slice.value)) if ast.unparse(node.value) in _ARGS else None
        if not isinstance(node, (ast.Attribute, ast.Name)):
            return None
        named = self._dest(node.attr if isinstance(node, ast.Attribute) else node.id)
        if named is not None:
            return named
        set_to = self._set_to(node, scope)
        if len(set_to) != 1 or isinstance(set_to[0][0], (ast.BoolOp, ast.Compare, ast.UnaryOp)):
            return None
        return self._fact(set_to[0][0], _without(scope, node), depth + 1)

    def _called(self, node: ast.Call, scope: Scope, depth: int) -> str | None:
        called = ast.unparse(node.func)
        if node.args and any(called == r or called.endswith("." + r) for r in _READERS):
            name = first.value if isinstance(first := node.args[0], ast.Constant) else None
            return f"${name}" if isinstance(name, str) and name.isupper() else None
        if called == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            return self._dest(str(node.args[1].value))
        if called in ("bool", "str", "int") or called.endswith(_MAKERS):
            return self._fact(node.args[0], scope, depth + 1) if len(node.args) == 1 else None
        last = called.rsplit(".", 1)[-1]
        if node.args or node.keywords or not last.startswith(("get_", "is_")):
            return None
        return self._dest(last.removeprefix("get_"))

    def _dest(self, name: str) -> str | None:
        name = _MADE_OF.get(name, name)
        return name if name in self.dests and name not in _NEVER else None


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.LtE: ast.Gt,
    ast.Lt: ast.GtE,
    ast.NotIn: ast.In,
}


def _off(name: str) -> Gates:
    return frozenset({Gate(name, OFF)}) if name.startswith("disable_") else NO_GATES


def _without(scope: Scope, node: ast.expr) -> Scope:
    return {k: v for k, v in scope.items() if k != node.id} if isinstance(node, ast.Name) else scope


def _constants(node: ast.expr) -> list[str | int | bool | None] | None:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, int))):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        inner = [_constants(e) for e in node.elts]
        return None if not inner or None in inner else [v for one in inner if one for v in one]
    if isinstance(node, ast.Attribute) and node.attr.isupper():  # a member of an enumeration
        return [None] if node.attr == "NONE" else [node.attr.lower()]
    return None


def attributes_of(tree: ast.Module) -> dict[str, list[SetTo]]:
    """What the file sets ``self.x`` (under that name) and its own names to."""
    out: dict[str, list[SetTo]] = {}

    def walk(node: ast.AST, where: str, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner, called = where, function
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = f"{where}.{child.name}" if where else child.name
                called = function or (inner if not isinstance(child, ast.ClassDef) else "")
            elif isinstance(child, ast.Assign):
                for target in child.targets:
                    if (name := _target(target, bool(function))) is not None:
                        out.setdefault(name, []).append(SetTo(child.value, function))
            walk(child, inner, called)

    walk(tree, "", "")
    return out


def _target(node: ast.expr, inside: bool) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return node.id if isinstance(node, ast.Name) and not inside else None


def assigned(node: ast.AST) -> dict[str, list[ast.expr]]:
    """The local names of a function, and what they are set to."""
    out: dict[str, list[ast.expr]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Name):
                    out.setdefault(target.id, []).append(part.value)
    return out


def used_names(node: ast.AST) -> Iterator[str]:
    """Names that are called or handed on; not those that an instance is only held against."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _CHECKS:
            pending += part.args[:1]
        elif isinstance(part, ast.Attribute):
            yield part.attr
            pending.append(part.value)
        elif isinstance(part, ast.Name):
            yield part.id
        else:
            pending += ast.iter_child_nodes(part)


_CHECKS = frozenset({"isinstance", "issubclass", "super", "cast"})
