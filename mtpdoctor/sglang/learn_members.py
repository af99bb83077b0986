"""The attributes of SGLang's classes and the arguments of its functions, learned from the sources.

Of a class: its bases, what its body defines, and what its methods set on ``self``. Arguments are kept where they changed from one
release to another. Written as ``members.json.gz`` (read by ``members``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtpdoctor.sglang.assigned import assigned
from mtpdoctor.sglang.learn_history import is_kernel
from mtpdoctor.sglang.lines import digest_of
from mtpdoctor.sglang.members import (
    ANY,
    ATTRIBUTES,
    BASE,
    BUCKETS,
    DIGEST,
    FIRST,
    FUNCTION,
    MEMBERS_FILE,
    METHOD,
    SET,
    bucket_of,
    unwritten,
)
from mtpdoctor.sglang.packed import open_packed, write_packed
from mtpdoctor.sglang.store import release_order, sort_releases

Signature = tuple[str, ...]


@dataclass(slots=True)
class Members:
    """Of one file, or of a release. ``taken``: arguments by (class or "", function)."""

    classes: dict[str, set[str]] = field(default_factory=dict)
    taken: dict[tuple[str, str], set[Signature]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def add(self, other: Members) -> None:
        for name, words in other.classes.items():
            self.classes.setdefault(name, set()).update(words)
        for key, found in other.taken.items():
            self.taken.setdefault(key, set()).update(found)
        self.elsewhere |= other.elsewhere


def members_of(tree: ast.Module) -> Members:
    """The members of the classes of one file, and the arguments of its functions."""
    out = Members()
    _block(tree.body, "", out)
    for node in ast.walk(tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and not _is_self(target.value):
                out.elsewhere.add(target.attr)
    return out


def _block(body: Iterable[ast.stmt], owner: str, out: Members) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            words = out.classes.setdefault(node.name, set())
            words.add(BASE)  # that it is there
            words.update(BASE + name for base in node.bases if (name := _last(base)))
            words.update(_defined(node))
            _block(node.body, node.name, out)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not is_kernel(node):
                out.taken.setdefault((owner, node.name), set()).add(_signature(node, bool(owner)))
        elif isinstance(node, ast.If | ast.Try):
            _block([*node.body, *node.orelse], owner, out)
            for handler in getattr(node, "handlers", ()):
                _block(handler.body, owner, out)


def _defined(node: ast.ClassDef) -> Iterator[str]:
    fields: list[str] = []
    for part in ast.walk(node):
        for target in _targets(part):
            if isinstance(target, ast.Attribute) and _is_self(target.value):
                yield target.attr
        if isinstance(part, ast.Call) and _last(part.func) == "setattr" and len(part.args) > 1:
            name = part.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
                yield name.value
    for statement in _flat(node.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields.append(statement.target.id)
        elif isinstance(statement, ast.Assign):
            yield from (n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name))
    # An annotation alone defines something in data classes only; nobody asks for one that is nowhere set.
    yield from fields


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _flat([*node.body, *node.orelse])


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    for target in assigned(node):
        if isinstance(target, ast.Tuple | ast.List):
            yield from target.elts
        else:
            yield target


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Signature:
    """Names that must be given, names with "=" that may, "*" and "**"."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    static = any(_last(d) == "staticmethod" for d in node.decorator_list)
    skip = 1 if method and plain and not static else 0
    must = len(plain) - len(args.defaults)
    out = [a.arg if n < must else f"{a.arg}=" for n, a in enumerate(plain)][skip:]
    if args.vararg is not None:
        out.append("*")
    for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        out.append(a.arg if default is None else f"{a.arg}=")
    if args.kwarg is not None:
        out.append(ANY)
    return tuple(out)


# -- the table -----------------------------------------------------------------------------------------------------

# class or "=function" -> a base (":Name"), a digest of an attribute ("~abc") or written arguments (".name a b=") -> releases
Rows = dict[str, dict[str, set[int]]]


def write_members(folder: Path, learned: Mapping[str, Members]) -> tuple[str, ...]:
    """Bring the table up to date; returns the releases that were left out (as the history of functions does): what arguments
    were is not kept where they never changed."""
    table = open_packed(folder / MEMBERS_FILE)
    old: list[str] = table.head.get("releases", [])
    given = sort_releases(learned)
    rows: Rows = {}
    if set(old) <= set(given):
        releases = new = given
    else:
        new = [r for r in given if release_order(r) > release_order(old[-1])]
        if not new or old[-1] not in learned:
            return tuple(r for r in given if r not in old)
        releases = [*old, *new]
        for name in table.names():
            _read(rows, table.text(name))
        _extend(rows, learned[old[-1]], len(old))
    for release in new:
        _enter(rows, learned[release], releases.index(release))
    _write(folder, releases, rows)
    return ()


def _enter(rows: Rows, members: Members, at: int) -> None:
    for owner, words in members.classes.items():
        here = rows.setdefault(owner, {})
        for word in words:
            here.setdefault(word if word.startswith(BASE) else ATTRIBUTES + digest_of(word), set()).add(at)
    for key, found in members.taken.items():
        for written in _forms(key, found):
            rows.setdefault(key[0] or FUNCTION + key[1], {}).setdefault(written, set()).add(at)
    here = rows.setdefault(SET, {})
    for word in members.elsewhere:
        here.setdefault(ATTRIBUTES + digest_of(word), set()).add(at)


def _forms(key: tuple[str, str], found: Iterable[Signature]) -> Iterator[str]:
    owner, function = key
    return (" ".join((f"{METHOD}{function if owner else ''}", *taken)) for taken in found)


def _extend(rows: Rows, members: Members, count: int) -> None:
    """What the newest known release takes and the table does not hold was so in all ``count`` releases that had the function."""
    for key, found in members.taken.items():
        owner, function = key
        here = rows.setdefault(owner or FUNCTION + function, {})
        head = f"{METHOD}{function if owner else ''}"
        if any(word.split(" ")[0] == head for word in here):
            continue
        there = here.get(ATTRIBUTES + digest_of(function)) if owner else None
        for written in _forms(key, found):
            here[written] = set(there) if there is not None else {count - 1}


def _read(rows: Rows, text: str) -> None:
    here: dict[str, set[int]] = {}
    for row in text.split("\n")[1:-1]:
        if row.startswith("#"):
            here = rows.setdefault(row[1:], {})
            continue
        written, _, rest = row.partition(" ")
        words = [rest]
        if rest.startswith(ATTRIBUTES):
            words = [ATTRIBUTES + rest[n : n + DIGEST] for n in range(1, len(rest), DIGEST)]
        elif rest.startswith(BASE):
            words = [BASE, *(BASE + name for name in rest.split(" ")[1:])]
        for word in words:
            here.setdefault(word, set()).update(unwritten(written))


def _write(folder: Path, releases: list[str], rows: Rows) -> None:
    members: dict[str, list[str]] = {f"b{n:02}": [] for n in range(BUCKETS)}
    for name in sorted(rows):
        if lines := list(_lines(rows[name])):
            members[bucket_of(name)] += [f"#{name}", *lines]
    texts = {name: "\n" + "".join(f"{line}\n" for line in lines) for name, lines in members.items()}
    write_packed(folder / MEMBERS_FILE, {"releases": releases}, texts)


def _lines(words: Mapping[str, set[int]]) -> Iterator[str]:
    """One line for all that the same releases have. Arguments only of functions whose arguments changed."""
    spans: dict[str, tuple[list[str], list[str]]] = {}
    forms: dict[str, list[str]] = {}
    for word, numbers in sorted(words.items()):
        if word.startswith(METHOD):
            forms.setdefault(word.split(" ")[0], []).append(word)
        else:
            bases, attributes = spans.setdefault(_written(numbers), ([], []))
            (bases if word.startswith(BASE) else attributes).append(word[1:])
    for written, (bases, attributes) in spans.items():
        if bases:
            yield " ".join((written, BASE, *(b for b in bases if b)))
        if attributes:
            yield f"{written} {ATTRIBUTES}{''.join(attributes)}"
    for found in forms.values():
        if len(found) > 1:
            yield from (f"{_written(words[w])} {w}" for w in found)


def _written(numbers: set[int]) -> str:
    out: list[list[int]] = []
    for at in sorted(numbers):
        if out and out[-1][1] == at - 1:
            out[-1][1] = at
        else:
            out.append([at, at])
    return "".join(chr(FIRST + a) + chr(FIRST + b) for a, b in out)
