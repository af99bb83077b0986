"""What changes inside SGLang's functions from one release to the next, learned from the sources.

Of every function: the conditions that each line runs under (enclosing tests, loops, handlers, and early returns before it), and
for each name how it is set (assignments, defaults), given (keywords of calls) and asked for (tests, ``hasattr``). Written as
``changes.json.gz`` (read by ``changes``), where two releases in a row differ.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtpdoctor.sglang.assigned import assigned
from mtpdoctor.sglang.changes import CHANGES_FILE, FIRST, member_of
from mtpdoctor.sglang.learn_history import is_kernel
from mtpdoctor.sglang.lines import ENTRY, digest_of
from mtpdoctor.sglang.packed import in_members, open_packed, write_packed
from mtpdoctor.sglang.store import release_order, sort_releases

_GROUP = 400_000  # characters of one member, about
_SETTERS = 6  # functions that set an attribute, at most: a name that more have says nothing
_LONG = 80  # characters of a text that is no name of a tensor
_SHORT = 4  # characters of a name that says something by itself
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMMON = frozenset(
    ["self", "cls", "torch", "logger", "True", "False", "None", "forward", "size", "dtype", "device"]
)


@dataclass(slots=True)
class Uses:
    """Of the functions of one name. ``lines``: digest of a line -> digest of its conditions; ``names``: name -> digests of how it is set,
    given or asked for; ``sets``: attribute -> digests of how it is set."""

    lines: dict[str, int] = field(default_factory=dict)
    names: dict[str, frozenset[int]] = field(default_factory=dict)
    sets: dict[str, frozenset[int]] = field(default_factory=dict)


FileUses = dict[str, Uses]
_KNOWN: dict[bytes, Uses] = {}


def uses_of(tree: ast.Module, text: str) -> FileUses:
    """By the name that a traceback gives to a function."""
    rows = text.splitlines()
    out: FileUses = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_kernel(node):
            found = _of_function(node, rows)
            out[node.name] = _joined(out[node.name], found) if node.name in out else found
    return out


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, rows: list[str]) -> Uses:
    written = "\n".join(rows[node.lineno - 1 : node.end_lineno]).encode("utf-8", "replace")
    key = hashlib.blake2b(written, digest_size=16).digest()
    if key not in _KNOWN:
        _KNOWN[key] = _Reader(node, rows).uses()
    return _KNOWN[key]


def _joined(a: Uses, b: Uses) -> Uses:
    lines = {**a.lines, **{k: a.lines.get(k, 0) ^ v for k, v in b.lines.items()}}
    return Uses(lines, _both(a.names, b.names), _both(a.sets, b.sets))


def _both(a: Mapping[str, frozenset[int]], b: Mapping[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    return {name: a.get(name, frozenset()) | b.get(name, frozenset()) for name in {*a, *b}}


class _Reader:
    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, rows: list[str]) -> None:
        self.rows = rows
        self.lines: dict[str, int] = {}
        self.names: dict[str, set[int]] = {}
        self.sets: dict[str, set[int]] = {}
        self.loads = "weight" in node.name  # what such a function writes in quotes are names of tensors
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
        pairs = [*zip(plain, defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        for arg, default in pairs:
            self._name(arg.arg, f"argument {self._text(default) if default is not None else ''}")
        self._block(node.body, ())

    def uses(self) -> Uses:
        return Uses(
            self.lines,
            {n: frozenset(d) for n, d in self.names.items()},
            {n: frozenset(d) for n, d in self.sets.items()},
        )

    def _text(self, node: ast.AST) -> str:
        if isinstance(node, ast.withitem):
            return self._text(node.context_expr)
        return _segment(node, self.rows)

    def _name(self, name: str, how: str) -> None:
        if name not in _COMMON:
            self.names.setdefault(name, set()).add(_number(how))

    def _block(self, body: Iterable[ast.stmt], chain: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue  # read by themselves
            self._statement(node, chain)
            if isinstance(node, ast.If):
                test = self._text(node.test)
                self._block(node.body, (*chain, test))
                self._block(node.orelse, (*chain, f"not {test}"))
                if node.body and isinstance(node.body[-1], _ENDS) and not node.orelse:
                    chain = (*chain, f"not {test}")
            elif isinstance(node, ast.For | ast.AsyncFor):
                self._block([*node.body, *node.orelse], (*chain, f"for {self._text(node.iter)}"))
            elif isinstance(node, ast.While):
                self._block([*node.body, *node.orelse], (*chain, self._text(node.test)))
            elif isinstance(node, ast.With | ast.AsyncWith):
                self._block(node.body, chain)
            elif isinstance(node, ast.Try):
                caught = " ".join(self._text(h.type) if h.type is not None else "any" for h in node.handlers)
                self._block(node.body, (*chain, f"try {caught}"))
                for handler in node.handlers:
                    self._block(handler.body, (*chain, "except"))
                self._block([*node.orelse, *node.finalbody], chain)
            elif isinstance(node, ast.Match):
                for case in node.cases:
                    self._block(case.body, (*chain, "match"))

    def _statement(self, node: ast.stmt, chain: tuple[str, ...]) -> None:
        under = _number("\x00".join(chain))
        parts = _header(node)
        lines = {node.lineno} | {
            at for part in parts for n in ast.walk(part) if (at := getattr(n, "lineno", None)) is not None
        }
        for at in lines:
            if at <= len(self.rows):
                digest = digest_of(self.rows[at - 1])
                self.lines[digest] = self.lines.get(digest, 0) ^ under
        for target in _targets(node):
            how = f"{under} {self._text(node) if not isinstance(node, ast.For | ast.With) else ' '.join(map(self._text, parts))}"
            if isinstance(target, ast.Attribute):
                self._name(target.attr, how)
                if len(target.attr) >= _SHORT:
                    self.sets.setdefault(target.attr, set()).add(_number(how))
            elif isinstance(target, ast.Name):
                self._name(target.id, how)
        tests = [node.test] if isinstance(node, ast.If | ast.While | ast.Assert) else []
        for part in parts:
            for n in ast.walk(part):
                if isinstance(n, ast.IfExp):
                    tests.append(n.test)
                elif isinstance(n, ast.Call):
                    self._call(n)
                elif self.loads and isinstance(n, ast.Constant) and isinstance(n.value, str):
                    self._pieces(n.value, under)
        for test in tests:
            text = self._text(test)
            for n in ast.walk(test):
                if isinstance(n, ast.Name):
                    self._name(n.id, text)
                elif isinstance(n, ast.Attribute):
                    self._name(n.attr, text)

    def _pieces(self, text: str, under: int) -> None:
        if len(text) < _LONG:
            for piece in text.split("."):
                if piece.isidentifier():
                    self._name(piece, f"{text} {under}")

    def _call(self, node: ast.Call) -> None:
        called = self._text(node.func)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._name(keyword.arg, f"{called} {self._text(keyword.value)}")
        if called in ("hasattr", "getattr", "setattr") or called.endswith((".get", ".pop")):
            for arg in node.args[:2]:
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and arg.value.isidentifier():
                    self._name(arg.value, f"{called} {len(node.args)}")


def _header(node: ast.stmt) -> list[ast.AST]:
    """What the statement itself computes, without the statements inside it."""
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.target, node.iter]
    if isinstance(node, ast.With | ast.AsyncWith):
        return list(node.items)
    if isinstance(node, ast.Try | ast.Match):
        return []
    return [node]


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    for target in assigned(node):
        if isinstance(target, ast.Tuple | ast.List):
            yield from target.elts
        elif isinstance(target, ast.Subscript):
            yield target.value
        else:
            yield target


def _segment(node: ast.AST, rows: list[str]) -> str:
    """The text of an expression or statement without its layout; quicker than writing it anew from the syntax."""
    first, last = node.lineno - 1, node.end_lineno  # type: ignore[attr-defined]
    lines = rows[first:last]
    if not lines:
        return ""
    if len(lines) == 1:
        lines = [lines[0][node.col_offset : node.end_col_offset]]  # type: ignore[attr-defined]
    else:
        lines = [lines[0][node.col_offset :], *lines[1:-1], lines[-1][: node.end_col_offset]]  # type: ignore[attr-defined]
    return "".join("".join(lines).split()).replace(",)", ")").replace(",]", "]")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest(), "big")


# -- the table -----------------------------------------------------------------------------------------------------

Entries = dict[str, set[int]]  # digest -> the last releases before a change
Rows = dict[str, dict[str, tuple[Entries, Entries]]]  # file -> function -> of lines, of names
Setters = dict[str, dict[str, set[int]]]  # attribute -> "file,function" -> the last releases before a change


def write_changes(folder: Path, learned: Mapping[str, Mapping[str, FileUses]]) -> tuple[str, ...]:
    """Bring the table up to date; returns the releases that were left out (as the history of functions does)."""
    table = open_packed(folder / CHANGES_FILE)
    old: list[str] = table.head.get("releases", [])
    given = sort_releases(learned)
    rows: Rows = {}
    setters: Setters = {}
    if set(old) <= set(given):
        releases, start = given, 0
    else:
        new = [r for r in given if release_order(r) > release_order(old[-1])]
        if not new or old[-1] not in learned:
            return tuple(r for r in given if r not in old)
        releases, start = [*old, *new], len(old) - 1
        for name in table.names():
            _read(table.text(name), rows, setters, name.startswith("a"))
    for index in range(start + 1, len(releases)):
        before, here = learned[releases[index - 1]], learned[releases[index]]
        _compare(rows, before, here, index - 1)
        _compare_setters(setters, before, here, index - 1)
    _write(folder, releases, rows, setters)
    return ()


def _compare(rows: Rows, before: Mapping[str, FileUses], here: Mapping[str, FileUses], last: int) -> None:
    for file, functions in here.items():
        earlier = before.get(file)
        if earlier is None or earlier is functions:
            continue
        for name, uses in functions.items():
            then = earlier.get(name)
            if then is None or then is uses:
                continue
            lines = [d for d, under in uses.lines.items() if then.lines.get(d, under) != under]
            names = [n for n in {*uses.names, *then.names} if uses.names.get(n) != then.names.get(n)]
            if not lines and not names:
                continue
            of_lines, of_names = rows.setdefault(file, {}).setdefault(name, ({}, {}))
            for digest in lines:
                of_lines.setdefault(digest, set()).add(last)
            for word in names:
                of_names.setdefault(digest_of(word), set()).add(last)


def _compare_setters(
    setters: Setters, before: Mapping[str, FileUses], here: Mapping[str, FileUses], last: int
) -> None:
    then, now = _setters(before), _setters(here)
    for attribute, places in now.items():
        earlier = then.get(attribute)
        if earlier is None or earlier == places or max(len(places), len(earlier)) > _SETTERS:
            continue
        for place in {*places, *earlier}:
            if places.get(place) != earlier.get(place):
                setters.setdefault(attribute, {}).setdefault(place, set()).add(last)


def _setters(files: Mapping[str, FileUses]) -> dict[str, dict[str, frozenset[int]]]:
    out: dict[str, dict[str, frozenset[int]]] = {}
    for file, functions in files.items():
        for name, uses in functions.items():
            for attribute, how in uses.sets.items():
                out.setdefault(attribute, {})[f"{file.removeprefix('sglang/')},{name}"] = how
    return out


def _read(text: str, rows: Rows, setters: Setters, attributes: bool) -> None:
    here: dict[str, tuple[Entries, Entries]] = {}
    for row in text.split("\n")[1:-1]:
        if attributes:
            attribute, *words = row.split(" ")
            for word in words:
                place, _, changes = word.rpartition(",")
                setters.setdefault(attribute, {})[place] = {ord(c) - FIRST for c in changes}
        elif row.startswith("#"):
            here = rows.setdefault(row[1:], {})
        else:
            name, lines, names = row.split(" ")
            here[name] = (_entries(lines), _entries(names))


def _entries(written: str) -> Entries:
    out: Entries = {}
    for n in range(0, len(written), ENTRY):
        out.setdefault(written[n : n + ENTRY - 1], set()).add(ord(written[n + ENTRY - 1]) - FIRST)
    return out


def _write(folder: Path, releases: list[str], rows: Rows, setters: Setters) -> None:
    written = (
        (
            file,
            [
                f"{name} {_packed(lines)} {_packed(names)}"
                for name, (lines, names) in sorted(rows[file].items())
            ],
        )
        for file in sorted(rows)
    )
    members, files = in_members(written, _GROUP)
    by_member: dict[str, list[str]] = {}
    for attribute, places in sorted(setters.items()):
        words = (f"{p},{''.join(chr(FIRST + n) for n in sorted(at))}" for p, at in sorted(places.items()))
        by_member.setdefault(member_of(attribute), []).append(f"{attribute} {' '.join(words)}\n")
    members |= {name: "\n" + "".join(lines) for name, lines in sorted(by_member.items())}
    write_packed(folder / CHANGES_FILE, {"releases": releases, "files": files}, members)


def _packed(entries: Entries) -> str:
    by_release = sorted((last, digest) for digest, found in entries.items() for last in found)
    return "".join(digest + chr(FIRST + last) for last, digest in by_release)
