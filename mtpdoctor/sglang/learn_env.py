"""Reads the environment variables of a release off its source: ``srt/environ.py`` and every direct read."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from mtpdoctor.sglang.evaluate import Evaluator
from mtpdoctor.sglang.modules import ClassRef, Module, Unresolved, plain
from mtpdoctor.sglang.source import SourceTree

_NAME = re.compile(r"(?:SGLANG|SGL)_[A-Z0-9_]+$")
_MENTION = re.compile(r"[\"'](?:SGLANG|SGL)_[A-Z0-9_]+[\"']")
_GONE = re.compile(
    r"((?:SGLANG|SGL)_[A-Z0-9_]+)\s+(?:has been removed|is no longer supported|is deprecated\b|was removed)"
)
_JOINED = re.compile(r"[\"']\s*\n\s*f?[\"']")  # adjacent literals: one message over several lines
_FLAG = re.compile(r"--[a-z][\w-]+(?:=\w+)?")
_INSTEAD = re.compile(r"\b(?:use|set)\s+'?(SGLANG_[A-Z0-9_]+)", re.I)
_GETTERS = {
    "getenv": "str",
    "get": "str",  # os.environ.get
    "get_bool_env_var": "bool",
    "get_int_env_var": "int",
    "get_float_env_var": "float",
}
_DEFAULTS = {"get_bool_env_var": "false", "get_int_env_var": 0, "get_float_env_var": 0.0}
_SKIP = ("sglang/test/", "/tests/", "/test/")


@dataclass(slots=True)
class LearnedEnv:
    """One environment variable of one release.

    ``default`` is what SGLang uses when it is unset (as declared; for booleans a bool), None when unset
    means "not given" and "<...>" where it is computed. ``replacement`` is the variable or flag that the
    release itself names instead; ``deprecated`` is set when the release warns about the variable.
    """

    name: str
    type: str = "str"
    default: Any = None
    deprecated: bool = False
    replacement: str | None = None


def rewrites_sgl_prefix(source: SourceTree) -> bool:
    """Whether the release reads ``SGL_X`` as ``SGLANG_X`` (it renames every such variable at start)."""
    return 'startswith("SGL_")' in (source.read("sglang/srt/environ.py") or "")


def learn_env(source: SourceTree, evaluator: Evaluator | None = None) -> dict[str, LearnedEnv]:
    """Variables named ``SGLANG_*``/``SGL_*`` that the release reads, and all of its ``Envs`` class."""
    evaluator = evaluator or Evaluator(source)
    out: dict[str, LearnedEnv] = {}
    told: list[str] = []
    for path in source.files():
        if path == "sglang/srt/environ.py" or any(part in path for part in _SKIP):
            continue
        text = source.read(path) or ""
        if _MENTION.search(text):
            _scan_reads(text, path, evaluator, out)
            told.append(text)
    module = evaluator.module("sglang.srt.environ")
    if module is not None:
        _declared(module, evaluator, out)
    for text in told:
        _told(_JOINED.sub("", text), out)
    return dict(sorted(out.items()))


def _declared(module: Module, evaluator: Evaluator, out: dict[str, LearnedEnv]) -> None:
    node = module.bindings.get("Envs")
    if isinstance(node, ast.ClassDef):
        for name, value in ClassRef(module, node).members().items():
            if isinstance(value, ast.Call) and name.isupper():
                kind = ast.unparse(value.func).split(".")[-1]
                types = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float"}
                env = LearnedEnv(name, next((t for k, t in types.items() if kind.startswith(k)), "str"))
                args = [*value.args, *(k.value for k in value.keywords if k.arg == "default")]
                if args:
                    env.default = _value(args[0], module, evaluator)
                out[name] = env
                for keyword in value.keywords:  # EnvBoolWithAlias(True, deprecated_name="OLD"): 0.5.13 on
                    if keyword.arg == "deprecated_name" and isinstance(keyword.value, ast.Constant):
                        _mark_deprecated(str(keyword.value.value), name, out)
    for stmt in ast.walk(module.tree):  # _deprecated_ms_to_s = {"OLD": "NEW"}, applied in a loop
        if not isinstance(stmt, ast.Assign) or not isinstance(stmt.value, ast.Dict):
            continue
        if "deprecated" in ast.unparse(stmt.targets[0]):
            for old, new in zip(stmt.value.keys, stmt.value.values, strict=True):
                if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
                    _mark_deprecated(str(old.value), str(new.value), out)
    for call in ast.walk(module.tree):
        if isinstance(call, ast.Call):
            _deprecation(call, module, out)
    _registry(module.bindings.get("_DEPRECATED_ENVS"), out)


def _deprecation(call: ast.Call, module: Module, out: dict[str, LearnedEnv]) -> None:
    """``_print_deprecated_env(...)`` and ``_warn_deprecated_env_to_cli_flag(...)``.

    The order of the names changed between releases; the function's own parameter names tell it.
    """
    function = ast.unparse(call.func)
    if "deprecated_env" not in function:
        return
    definition = module.bindings.get(function)
    params = [a.arg for a in definition.args.args] if isinstance(definition, ast.FunctionDef) else []
    given = {p: a.value for p, a in zip(params, call.args, strict=False) if isinstance(a, ast.Constant)}
    old = given.get("old_name") or given.get("env_name")
    if not isinstance(old, str):
        return
    flag = _FLAG.search(str(given.get("suggestion") or ""))
    new = given.get("new_name") or (flag[0] if flag else None)
    _mark_deprecated(old, new if isinstance(new, str) else None, out)


def _registry(node: ast.AST | tuple[str, str] | None, out: dict[str, LearnedEnv]) -> None:
    """``_DEPRECATED_ENVS = {"OLD": _DeprecatedEnv(replacement="NEW", note="--flag")}`` (0.5.14 on)."""
    if not isinstance(node, ast.Dict):
        return
    for key, item in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(item, ast.Call):
            given = {k.arg: k.value.value for k in item.keywords if isinstance(k.value, ast.Constant)}
            note = str(given.get("note") or "")
            flag, variable = _FLAG.search(note), _INSTEAD.search(note)
            new = given.get("replacement") or (flag[0] if flag else variable[1] if variable else None)
            _mark_deprecated(str(key.value), new if isinstance(new, str) else None, out)


def _mark_deprecated(old: str, new: str | None, out: dict[str, LearnedEnv]) -> None:
    env = out.setdefault(old, LearnedEnv(old))
    env.deprecated, env.replacement = True, new


def _told(text: str, out: dict[str, LearnedEnv]) -> None:
    """Warnings that say a variable they have just read is gone: "X has been removed: ... Use --flag"."""
    for match in _GONE.finditer(text):
        rest = text[match.end() : match.end() + 400]
        flag = re.search(r"\b[Uu]se\s+(--[a-z][\w-]+)", rest)
        if match[1] in out:
            _mark_deprecated(match[1], flag[1] if flag else None, out)


def _scan_reads(text: str, path: str, evaluator: Evaluator, out: dict[str, LearnedEnv]) -> None:
    name = path[: -len(".py")].replace("/", ".").removesuffix(".__init__")
    module = evaluator.module(name)
    if module is None:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            _read_call(node, module, evaluator, out)
            if "deprecated_env" in ast.unparse(node.func):
                _deprecation(node, module, out)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("os.environ", "environ"):
            if isinstance(node.ctx, ast.Load) and (found := _named(node.slice)):
                out.setdefault(found, LearnedEnv(found))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = _named(node.left)
            if found and "environ" in ast.unparse(node.comparators[0]):
                out.setdefault(found, LearnedEnv(found))


def _read_call(node: ast.Call, module: Module, evaluator: Evaluator, out: dict[str, LearnedEnv]) -> None:
    function = ast.unparse(node.func)
    short = function.split(".")[-1].lstrip("_")
    if short not in _GETTERS or not node.args or (short == "get" and "environ" not in function):
        return
    name = _named(node.args[0])
    if not name:
        return
    extra = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "default")]
    default = _value(extra[0], module, evaluator) if extra else _DEFAULTS.get(short)
    kind = _GETTERS[short]
    if kind == "bool":
        default = str(default).lower() in ("true", "1", "yes", "y")
    known = out.get(name)
    # Several places may read one variable: the most telling read (typed, with a default) is kept.
    if known is None or (known.default is None and known.type == "str"):
        out[name] = LearnedEnv(name, kind, default)


def _named(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.match(node.value):
        return node.value
    return None


def _value(node: ast.expr, module: Module, evaluator: Evaluator) -> Any:
    try:
        value = plain(evaluator.value(node, module))
    except Unresolved:
        return f"<{ast.unparse(node)}>"
    return (
        value
        if isinstance(value, (str, int, float, bool, list, dict, type(None)))
        else f"<{ast.unparse(node)}>"
    )
