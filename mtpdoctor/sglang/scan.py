"""Reading one source file: its raise, assert and log statements, their messages and conditions."""

from __future__ import annotations

import ast
import copy
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mtpdoctor.sglang.templates import HOLE, Pieces, percent, show, templates

_LOGGERS = {
    "debug",
    "info",
    "warning",
    "warn",
    "error",
    "critical",
    "exception",
    "fatal",
    "warning_once",
    "info_once",
    "log_info_on_rank0",
    "log_debug_on_rank0",
    "print_info_once",
    "print_warning_once",
    "print_deprecated_warning",
    "rank0_log",
    "rank0_print",
    "print",
    "write",
    "exit",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition on the way to a statement: ``source`` evaluates to ``holds`` there."""

    source: str
    holds: bool


@dataclass(frozen=True, slots=True)
class RaiseSite:
    """A statement that raises, asserts or logs.

    ``template`` shows holes as ``{}``; "" for a messageless assert. ``reads`` are the attribute names that
    the guards look at (``page_size``, ``hf_config.architectures``), fields of ServerArgs first.
    """

    file: str  # "sglang/srt/server_args.py"
    function: str  # qualified: "ServerArgs._handle_page_size"
    line: int
    end_line: int
    kind: str  # raise | assert | log
    exception: str  # "ValueError"; the logger's method for kind "log"
    template: str
    pieces: Pieces
    guards: tuple[Guard, ...]
    reads: tuple[str, ...]
    code: str  # first source line of the statement, stripped


def scan(path: str, text: str, *, with_guards: bool = True) -> Iterator[RaiseSite]:
    """Statements of one file's text. A file that is not valid Python has none.

    Without guards it is several times faster; ``guards`` and ``reads`` are then empty.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
        return
    yield from Scanner(path, text.splitlines(), tree, with_guards).run()


Tests = tuple[tuple[ast.expr, bool], ...]  # conditions as parsed, and whether they hold


class Scanner:
    """Walks one file; every statement found goes through ``_add`` with the conditions on the way to it."""

    after_refusals = True  # what an earlier statement refuses is a condition of the later ones too

    def __init__(self, path: str, lines: list[str], tree: ast.Module, with_guards: bool) -> None:
        self.path, self.lines, self.tree, self.with_guards = path, lines, tree, with_guards
        self.sites: list[RaiseSite] = []
        self._sources: dict[int, str] = {}  # id of a condition's node -> its source
        self.constants: dict[str, list[ast.expr]] = {}

    def run(self) -> list[RaiseSite]:
        for node in statements(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if len(node.body) > 7 or (node.end_lineno or 0) - node.lineno > 40:
                    continue
                returns = [r.value for r in ast.walk(node) if isinstance(r, ast.Return) and r.value]
                if 0 < len(returns) < 4:
                    self.constants[f"{node.name}()"] = returns
        for stmt in self.tree.body:
            if isinstance(stmt, ast.ClassDef):
                for inner in stmt.body:
                    self._constant(inner)
            self._constant(stmt)
        self._block(self.tree.body, "", (), dict(self.constants))
        return self.sites

    def _constant(self, stmt: ast.stmt) -> None:
        if not isinstance(stmt, ast.Assign) or not isinstance(stmt.targets[0], ast.Name):
            return
        if not stmt.targets[0].id.isupper():
            return  # may be assigned anew anywhere
        if isinstance(stmt.value, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            self.constants[stmt.targets[0].id] = [stmt.value]

    def _block(
        self, body: list[ast.stmt], where: str, guards: Tests, scope: dict[str, list[ast.expr]]
    ) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{where}.{stmt.name}" if where else stmt.name
                body = stmt.body
                if isinstance(stmt, ast.ClassDef):  # its own names are not in scope in its methods
                    body = [s for s in body if not isinstance(s, (ast.Assign, ast.AnnAssign))]
                self._block(body, inner, (), dict(scope))
                continue
            self._statement(stmt, where, guards, scope)
            if isinstance(stmt, ast.If):
                test = stmt.test
                taken, other = dict(scope), dict(scope)
                self._block(stmt.body, where, (*guards, (test, True)), taken)
                self._block(stmt.orelse, where, (*guards, (test, False)), other)
                _merge(scope, taken, other)
                refuses = isinstance(stmt.body[-1], ast.Raise)
                if _leaves(stmt.body) and not stmt.orelse and (self.after_refusals or not refuses):
                    # past it, the test was false
                    guards = (*guards, (test, False))
            elif isinstance(stmt, (ast.For, ast.AsyncFor, ast.While)):
                loop = (*guards, (stmt.test, True)) if isinstance(stmt, ast.While) else guards
                self._block(stmt.body, where, loop, scope)
                self._block(stmt.orelse, where, guards, scope)
            elif isinstance(stmt, (ast.With, ast.AsyncWith)):
                self._block(stmt.body, where, guards, scope)
            elif isinstance(stmt, ast.Try):
                self._block(stmt.body, where, guards, scope)
                for handler in stmt.handlers:
                    self._block(handler.body, where, guards, scope)
                self._block(stmt.orelse, where, guards, scope)
                self._block(stmt.finalbody, where, guards, scope)
            elif isinstance(stmt, ast.Match):
                for case in stmt.cases:
                    self._block(case.body, where, guards, scope)

    def _source(self, test: ast.expr) -> str:
        """A condition's source, with calls of one-line helpers (``self.uses_x()``) written out."""
        key = id(test)
        if key not in self._sources:
            self._sources[key] = ast.unparse(self.inlined(test))
        return self._sources[key]

    def inlined(self, test: ast.expr) -> ast.expr:
        """A condition with calls of one-line helpers written out."""
        whole: ast.expr = _Inline(self.constants).visit(copy.deepcopy(test))
        return whole

    def _statement(self, stmt: ast.stmt, where: str, guards: Tests, scope: dict[str, list[ast.expr]]) -> None:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            scope[stmt.targets[0].id] = [stmt.value]
        elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value:
            scope[stmt.target.id] = [stmt.value]
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
            old = scope.get(stmt.target.id, [])
            # The variable's earlier texts are spliced in, for the name itself means the new text now.
            scope[stmt.target.id] = [ast.BinOp(before, stmt.op, stmt.value) for before in old]
        elif isinstance(stmt, ast.Raise) and stmt.exc is not None:
            self._raise(stmt, stmt.exc, where, guards, scope)
        elif isinstance(stmt, ast.Assert):
            pieces: list[Pieces] = [("",)]
            if stmt.msg is not None:
                pieces = templates(stmt.msg, scope)
            self._add(stmt, where, "assert", "AssertionError", pieces, (*guards, (stmt.test, False)), scope)
        elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
            self._log(stmt, stmt.value, where, guards, scope)

    def _raise(
        self,
        stmt: ast.Raise,
        exc: ast.expr,
        where: str,
        guards: Tests,
        scope: dict[str, list[ast.expr]],
    ) -> None:
        if isinstance(exc, ast.Name) and exc.id in scope:  # error = ValueError(...); raise error
            made = [value for value in scope[exc.id] if isinstance(value, ast.Call)]
            exc = made[0] if made else exc
        if isinstance(exc, ast.Call) and isinstance(exc.func, ast.Name):
            # raise _died(rank): the helper builds the exception
            made = [v for v in scope.get(f"{exc.func.id}()", ()) if isinstance(v, ast.Call)]
            exc = made[0] if made else exc
        name = ast.unparse(exc.func if isinstance(exc, ast.Call) else exc)
        pieces: list[Pieces] = [("",)]
        if isinstance(exc, ast.Call):
            given = [*exc.args, *(k.value for k in exc.keywords if k.arg in ("msg", "message", "detail"))]
            texts = [t for arg in given[:3] for t in templates(arg, scope) if t != HOLE]
            pieces = texts if len(given) > 1 and texts else templates(given[0], scope) if given else pieces
        self._add(stmt, where, "raise", name, pieces, guards, scope)

    def _log(
        self,
        stmt: ast.Expr,
        call: ast.Call,
        where: str,
        guards: Tests,
        scope: dict[str, list[ast.expr]],
    ) -> None:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in _LOGGERS or not call.args:
            return
        texts = call.args
        if name in ("log_info_on_rank0", "log_debug_on_rank0") and len(texts) > 1:
            texts = texts[1:]
        pieces = templates(texts[0], scope)
        if len(texts) > 1 and isinstance(texts[0], ast.Constant) and isinstance(texts[0].value, str):
            pieces = [percent(texts[0].value)]
        self._add(stmt, where, "log", name, pieces, guards, scope)

    def _add(
        self,
        stmt: ast.stmt,
        where: str,
        kind: str,
        exception: str,
        pieces: list[Pieces],
        guards: Tests,
        scope: dict[str, list[ast.expr]],
    ) -> None:
        code = self.lines[stmt.lineno - 1].strip() if stmt.lineno <= len(self.lines) else ""
        shown: tuple[Guard, ...] = ()
        if self.with_guards:
            shown = tuple(Guard(self._source(test), holds) for test, holds in guards)
        reads = tuple(_reads(shown, scope))
        for one in pieces:
            self.sites.append(
                RaiseSite(
                    file=self.path,
                    function=where,
                    line=stmt.lineno,
                    end_line=stmt.end_lineno or stmt.lineno,
                    kind=kind,
                    exception=exception,
                    template=show(one),
                    pieces=one,
                    guards=shown,
                    reads=reads,
                    code=code,
                )
            )


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement, handler and case below ``tree``: several times faster than a walk over every expression."""
    pending = deque([tree])
    while pending:
        node = pending.popleft()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, name, None)
            if isinstance(below, list):
                pending += below
                yield from below


class _Inline(ast.NodeTransformer):
    """Replaces calls without arguments by what the helper of this file returns, one level deep."""

    def __init__(self, helpers: dict[str, list[ast.expr]]) -> None:
        self.helpers = helpers

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        returned = self.helpers.get(f"{name}()", [])
        if node.args or node.keywords or len(returned) != 1:
            return node
        simple = isinstance(returned[0], (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Attribute))
        return copy.deepcopy(returned[0]) if simple and len(ast.unparse(returned[0])) < 160 else node


def _merge(
    scope: dict[str, list[ast.expr]], left: dict[str, list[ast.expr]], right: dict[str, list[ast.expr]]
) -> None:
    for name in {*left, *right}:
        values = [*left.get(name, ()), *right.get(name, ())]
        unique = list({id(value): value for value in values}.values())
        scope[name] = unique[-6:]


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _reads(guards: Iterable[Guard], scope: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Attributes the guards look at; a local variable counts as the attributes it was computed from."""
    seen: set[str] = set()
    for guard in guards:
        try:
            tree = ast.parse(guard.source, mode="eval")
        except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
            continue
        pending: list[ast.AST] = [tree]
        followed: set[str] = set()
        while pending:
            for node in ast.walk(pending.pop()):
                if isinstance(node, ast.Attribute):
                    dotted = ast.unparse(node)
                    name = re.sub(r"^(?:self\.)?(?:server_args|args|cfg|view|resolved)\.|^self\.", "", dotted)
                    if re.fullmatch(r"[A-Za-z_][\w.]*", name) and name not in seen:
                        seen.add(name)
                        yield name
                elif isinstance(node, ast.Name) and node.id in scope and node.id not in followed:
                    followed.add(node.id)
                    pending.extend(scope[node.id][:2])
