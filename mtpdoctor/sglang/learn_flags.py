"""Reads a release's command-line flags off its source, in all three ways that SGLang declared them.

* argparse: every flag is a ``parser.add_argument`` call in ``ServerArgs.add_cli_args`` (0.4.6-0.5.13.post1)
* fields: the flag is the ``A[type, Arg(...)]`` annotation of a ``ServerArgs`` field (0.5.14 on)
* namespaces: as fields, but the fields sit in ``arg_groups/fields/*.py`` (0.5.20 on)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.sglang.annotations import annotated, is_derived, last_name, without_optional
from mtpdoctor.sglang.deprecation import named_instead, says_deprecated
from mtpdoctor.sglang.evaluate import Evaluator
from mtpdoctor.sglang.modules import ClassRef, FunctionRef, Module, Unresolved, plain
from mtpdoctor.sglang.source import SourceTree


@dataclass(slots=True)
class LearnedFlag:
    """One flag of one release, as its parser declares it.

    ``dest`` is the ``ServerArgs`` field; ``parser_dest`` the parser's own name where that differs.
    ``unresolved`` names the attributes that only a running SGLang can tell.
    """

    name: str
    dest: str
    aliases: list[str] = field(default_factory=list)
    arity: str = "one"  # switch | one | many | optional
    type: str = "str"
    choices: list[Any] | None = None
    default: Any = None
    required: bool = False
    deprecated: bool = False
    replacement: str | None = None  # "--flag" or "--flag=value"
    const: Any = None  # what a switch stores into ``dest`` when that is not True
    fallback: Any = None  # in force when nothing else sets a value although the default is None (0.5.20 on)
    refused: str | None = None  # the parser's error text: the flag is known only to be refused
    parser_dest: str | None = None
    help: str = ""
    unresolved: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LearnedArgs:
    """Flags by name, and every ``ServerArgs`` field with its default (also those without a flag)."""

    flags: dict[str, LearnedFlag]
    fields: dict[str, Any]
    era: str


def learn_flags(source: SourceTree) -> LearnedArgs:
    """Raises UserError when the tree has no ``ServerArgs``."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: SourceTree) -> None:
        self.source = source
        self.eval = Evaluator(source)
        self.eval.special["_declared_default"] = self._declared_default
        self.flags: dict[str, LearnedFlag] = {}
        self.fields: dict[str, tuple[ast.expr, Any, Module]] = {}
        self.era = "argparse"

    def read(self) -> LearnedArgs:
        module = self.eval.module("sglang.srt.server_args")
        node = module.bindings.get("ServerArgs") if module else None
        if module is None or not isinstance(node, ast.ClassDef):
            raise UserError(f"{self.source.origin}: sglang/srt/server_args.py defines no ServerArgs class")
        cls = ClassRef(module, node)
        self._collect_fields(cls)
        add_cli_args = cls.method("add_cli_args")
        if add_cli_args is None:
            raise UserError(f"{self.source.origin}: ServerArgs has no add_cli_args")
        self._body(add_cli_args.body, module, add_cli_args.args.args[-1].arg, {})
        self._field_names(cls)
        defaults = {name: entry[1] for name, entry in self.fields.items()}
        return LearnedArgs(self.flags, defaults, self.era)

    # -- fields ----------------------------------------------------------------------------------

    def _collect_fields(self, cls: ClassRef) -> None:
        owners = [cls]
        for call in ast.walk(cls.module.tree):
            if isinstance(call, ast.Call) and call.args and last_name(call.func) == "collect_input_fields":
                owners.extend(self.eval.value(call.args[0], cls.module))
                self.era = "namespaces"
        for owner in owners:
            for stmt in owner.node.body:
                if not isinstance(stmt, ast.AnnAssign) or not isinstance(stmt.target, ast.Name):
                    continue
                if ast.unparse(stmt.annotation).startswith("ClassVar") or is_derived(stmt.annotation):
                    continue
                default: Any = ...  # no default: the field is required
                if stmt.value is not None:
                    try:
                        default = plain(self.eval.field_default(stmt.value, owner.module))
                    except Unresolved as unknown:
                        default = {"unresolved": str(unknown)}
                self.fields[stmt.target.id] = (stmt.annotation, default, owner.module)

    def _field_names(self, cls: ClassRef) -> None:
        """``args.tp_size = args.tensor_parallel_size`` in from_cli_args: the flag's field is tp_size."""
        method = cls.method("from_cli_args")
        renamed: dict[str, str] = {}
        for stmt in ast.walk(method) if method else ():
            if not isinstance(stmt, ast.Assign) or not isinstance(stmt.value, ast.Attribute):
                continue
            if isinstance(stmt.targets[0], ast.Attribute) and ast.unparse(stmt.value.value) == "args":
                renamed[stmt.value.attr] = stmt.targets[0].attr
        for flag in self.flags.values():
            if flag.dest in renamed:
                flag.parser_dest, flag.dest = flag.dest, renamed[flag.dest]

    def _declared_default(self, node: ast.Call, module: Module, scope: Mapping[str, Any]) -> Any:
        entry = self.fields.get(self.eval.value(node.args[0], module, scope))
        if entry is None or entry[1] is ... or _is_unresolved(entry[1]):
            raise Unresolved(ast.unparse(node))
        return entry[1]

    # -- the body of add_cli_args ------------------------------------------------------------------

    def _body(self, body: list[ast.stmt], module: Module, parser: str, scope: dict[str, Any]) -> None:
        for stmt in body:
            if isinstance(stmt, ast.ImportFrom):
                scope.update(self.eval.local_imports(stmt, module))
            elif isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
                self._assign(stmt.targets[0].id, stmt.value, module, parser, scope)
            elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
                self._call(stmt.value, module, parser, scope)
            elif isinstance(stmt, ast.If):
                self._branch(stmt, module, parser, scope)
            elif isinstance(stmt, (ast.With, ast.Try)):
                self._body(stmt.body, module, parser, scope)
            elif isinstance(stmt, ast.For) and isinstance(stmt.target, ast.Name):
                try:
                    items = self.eval.iterate(self.eval.value(stmt.iter, module, scope))
                except Unresolved:
                    continue
                for item in items:
                    self._body(stmt.body, module, parser, {**scope, stmt.target.id: item})

    def _branch(self, stmt: ast.If, module: Module, parser: str, scope: dict[str, Any]) -> None:
        try:
            taken = stmt.body if self.eval.value(stmt.test, module, scope) else stmt.orelse
        except Unresolved:  # depends on the host: a flag that may exist is a flag
            self._body(stmt.body, module, parser, scope)
            taken = stmt.orelse
        self._body(taken, module, parser, scope)

    def _assign(self, name: str, value: ast.expr, module: Module, parser: str, scope: dict[str, Any]) -> None:
        made = (
            value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
        )
        if made in ("add_argument_group", "add_mutually_exclusive_group"):
            scope.setdefault("<groups>", set()).add(name)
            return
        try:
            scope[name] = self.eval.value(value, module, scope)
        except Unresolved:
            scope.pop(name, None)

    def _call(self, call: ast.Call, module: Module, parser: str, scope: dict[str, Any]) -> None:
        func = call.func
        parsers = {parser, *scope.get("<groups>", ())}
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.attr == "add_argument" and func.value.id in parsers:
                self._add_argument(call, module, scope)
                return
            if func.attr in ("add", "append", "extend") and isinstance(scope.get(func.value.id), list):
                try:
                    added = self.eval.value(call.args[0], module, scope)
                except Unresolved:
                    return
                scope[func.value.id] += self.eval.iterate(added) if func.attr == "extend" else [added]
                return
        passed = next(
            (i for i, a in enumerate(call.args) if isinstance(a, ast.Name) and a.id in parsers), None
        )
        if passed is None:
            return
        if last_name(func) == "add_cli_args_from_dataclass":
            self.era = "fields" if self.era == "argparse" else self.era
            for name in self.fields:
                self._add_field(name)
            return
        target = self._callee(func, module, scope)
        if target is None:
            return
        params = [a.arg for a in target.node.args.args if a.arg not in ("self", "cls")]
        if passed < len(params):
            self._body(target.node.body, target.module, params[passed], {})

    def _callee(self, func: ast.expr, module: Module, scope: Mapping[str, Any]) -> FunctionRef | None:
        try:
            if isinstance(func, ast.Attribute):
                owner = self.eval.value(func.value, module, scope)
                if isinstance(owner, ClassRef):
                    method = owner.method(func.attr)
                    return FunctionRef(owner.module, method) if method else None
                target = self.eval.attribute(owner, func.attr)
            else:
                target = self.eval.value(func, module, scope)
        except Unresolved:
            return None
        return target if isinstance(target, FunctionRef) else None

    # -- one flag ----------------------------------------------------------------------------------

    def _add_argument(self, call: ast.Call, module: Module, scope: Mapping[str, Any]) -> None:
        names = [self._try(a, module, scope) for a in call.args if not isinstance(a, ast.Starred)]
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        options = [n for n in names if isinstance(n, str) and n.startswith("-")]
        if not options:
            return
        flag = _new_flag(options)
        if "dest" in keywords:
            flag.dest = str(self._try(keywords["dest"], module, scope))
        if "type" in keywords:
            flag.type = _type_name(ast.unparse(keywords["type"]))
        self._common(flag, keywords, module, scope)
        flag.required = ast.unparse(keywords["required"]) == "True" if "required" in keywords else False
        self.flags[flag.name] = flag

    def _add_field(self, name: str) -> None:
        annotation, default, module = self.fields[name]
        parts = annotated(annotation)
        if parts is None:
            return
        kind, meta = parts
        keywords: dict[str, ast.expr] = {}
        for item in meta:
            if isinstance(item, ast.Call) and last_name(item.func) == "Arg":
                keywords = {k.arg: k.value for k in item.keywords if k.arg}
                if item.args:
                    keywords.setdefault("help", item.args[0])
                break
            if not isinstance(item, ast.Call):
                keywords = {"help": item}
                break
        else:
            return
        if "no_cli" in keywords and ast.unparse(keywords["no_cli"]) == "True":
            return
        cli = self._try(keywords["cli_name"], module, {}) if "cli_name" in keywords else None
        aliases = self._try(keywords["aliases"], module, {}) if "aliases" in keywords else []
        flag = _new_flag(
            [cli or "--" + name.replace("_", "-"), *(aliases if isinstance(aliases, list) else [])]
        )
        flag.dest = name
        inner = without_optional(kind)
        self._field_type(flag, inner, keywords, module)
        if "action_kwargs" in keywords and isinstance(keywords["action_kwargs"], ast.Dict):
            for key, value in zip(
                keywords["action_kwargs"].keys, keywords["action_kwargs"].values, strict=True
            ):
                if isinstance(key, ast.Constant):
                    keywords[str(key.value)] = value
                    if key.value == "type":
                        flag.type = _type_name(ast.unparse(value))
        self._common(flag, keywords, module, {})
        flag.default = None if default is ... else default
        if _is_unresolved(flag.default):
            flag.unresolved.append("default")
            flag.default = None
        explicit = ast.unparse(keywords["required"]) if "required" in keywords else None
        scalar = (
            flag.arity == "one" and "action" not in keywords and not ast.unparse(inner).startswith("Literal")
        )
        flag.required = scalar and (explicit == "True" or (explicit is None and default is ...))
        self.flags[flag.name] = flag

    def _field_type(
        self, flag: LearnedFlag, inner: ast.expr, keywords: Mapping[str, ast.expr], module: Module
    ) -> None:
        text = ast.unparse(inner)
        parser = _type_name(ast.unparse(keywords["type_parser"])) if "type_parser" in keywords else None
        if "action" in keywords:
            flag.type = parser or "str"
        elif isinstance(inner, ast.Subscript) and text.startswith("Literal["):
            values = self._try(inner.slice, module, {})
            values = values if isinstance(values, list) else [values]
            flag.choices = values
            kind = type(values[0]).__name__ if values else "str"
            flag.type = parser or (kind if kind in ("int", "float") else "str")
        elif re.match(r"(?:typing\.)?[Ll]ist(?:\[|$)", text) and parser is None:
            element = ast.unparse(inner.slice) if isinstance(inner, ast.Subscript) else "str"
            flag.type = element if element in ("int", "float") else "str"
            flag.arity = "many"
        elif text == "bool":
            flag.type, flag.arity = "bool", "switch"
        else:
            flag.type = parser or (text if text in ("int", "float") else "str")

    def _common(
        self, flag: LearnedFlag, keywords: Mapping[str, ast.expr], module: Module, scope: Mapping[str, Any]
    ) -> None:
        """What both ways of declaring a flag share: action, nargs, choices, default, deprecation."""
        action = ast.unparse(keywords["action"]).strip("'\"") if "action" in keywords else ""
        nargs = self._try(keywords["nargs"], module, scope) if "nargs" in keywords else ...
        kind = action.split(".")[-1]
        if kind in ("store_true", "store_false"):
            flag.type, flag.arity = "bool", "switch"
            flag.default = kind == "store_false"
        elif kind == "BooleanOptionalAction":
            flag.type, flag.arity = "bool", "switch"
            flag.aliases += ["--no-" + n[2:] for n in [flag.name, *flag.aliases] if n.startswith("--")]
        elif kind and kind != "store":
            nargs = self._action_nargs(keywords["action"], module, scope) if nargs is ... else nargs
            if nargs == 0:
                flag.type = "bool"
                flag.default = False if kind == "DeprecatedStoreTrueAction" else None
        if nargs is not ...:
            flag.arity = {0: "switch", "?": "optional", "+": "many", "*": "many", None: flag.arity}.get(
                nargs, "many"
            )
            if nargs is None and kind:
                flag.arity = "one"
        if "choices" in keywords:
            choices = self._try(keywords["choices"], module, scope)
            if isinstance(choices, dict) and _is_unresolved(choices):
                flag.unresolved.append("choices")
            elif choices:
                flag.choices = list(choices)
        if "default" in keywords:
            default = self._try(keywords["default"], module, scope)
            if ast.unparse(keywords["default"]).endswith("SUPPRESS"):
                flag.default = None
            elif _is_unresolved(default):
                flag.unresolved.append("default")
            else:
                flag.default = default
        if "const_value" in keywords:
            flag.const = self._try(keywords["const_value"], module, scope)
        elif "const" in keywords:
            flag.const = self._try(keywords["const"], module, scope)
        if "fallback" in keywords:
            flag.fallback = self._try(keywords["fallback"], module, scope)
        help_text = self._try(keywords["help"], module, scope) if "help" in keywords else ""
        flag.help = help_text if isinstance(help_text, str) else ""
        if "error_message" in keywords:
            refused = self._try(keywords["error_message"], module, scope)
            flag.refused = refused if isinstance(refused, str) else ""
        flag.deprecated = kind.startswith("Deprecated") or says_deprecated(flag.help)
        if flag.deprecated:
            new = self._try(keywords["new_flag"], module, scope) if "new_flag" in keywords else None
            named = named_instead(f"{flag.refused or ''} {flag.help}")
            flag.replacement = new if isinstance(new, str) else named

    def _action_nargs(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
        """``nargs`` that a custom action class sets by default; ``...`` when it sets none."""
        try:
            owner = self.eval.value(node, module, scope)
        except Unresolved:
            return ...
        init = owner.method("__init__") if isinstance(owner, ClassRef) else None
        if init is not None:
            named = init.args.args[len(init.args.args) - len(init.args.defaults) :]
            for arg, default in zip(named, init.args.defaults, strict=True):
                if arg.arg == "nargs" and isinstance(default, ast.Constant):
                    return default.value
        return ...

    def _try(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
        try:
            return self.eval.plain(node, module, scope)
        except Unresolved as unknown:
            return {"unresolved": str(unknown)}


def _new_flag(options: list[str]) -> LearnedFlag:
    name = next((o for o in options if o.startswith("--")), options[0])
    return LearnedFlag(name, name.lstrip("-").replace("-", "_"), [o for o in options if o != name])


def _is_unresolved(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"unresolved"}


def _type_name(text: str) -> str:
    return {"loads": "json", "json.loads": "json"}.get(text, text.split(".")[-1])
