"""Where SGLang raises what, release by release, and which options decide it: for failures that no rule knows.

Written as ``sites.json.gz`` (read by ``site_table``). Of a statement is kept: file, function, exception, the fixed
pieces of its message, the releases it stands in, and of its conditions the facts (``guard_facts``). No code.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.guard_facts import OPEN, FactReader
from mtpdoctor.sglang.learn_history import learned_files
from mtpdoctor.sglang.packed import write_packed
from mtpdoctor.sglang.scan import Scanner, Tests, statements
from mtpdoctor.sglang.site_table import BETWEEN, SITES_FILE, read_sites
from mtpdoctor.sglang.store import sort_releases
from mtpdoctor.sglang.templates import Pieces, literal_length

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

MIN_LITERAL = 6  # characters of fixed text that tell a message from others
MAX_LITERAL = 110  # characters that are kept: by then a message is told from all others
_MAX_GUARDS = 6  # the innermost; what lies further out says little of this statement
_KERNELS = lazy(r"sglang/(?:kernels|jit_kernel)/")
_EXITS = frozenset({"exit", "_exit", "quit", "abort"})
_GROUP = 2500  # statements of one member, about


@dataclass(frozen=True, slots=True)
class LearnedSite:
    """One statement, without its file."""

    function: str
    exception: str
    pieces: Pieces  # ("",) for a bare assertion
    guards: tuple[str, ...]  # "!" before one that must not hold; outermost first
    reads: tuple[str, ...]  # facts looked at in another way than those of ``guards``


class _SiteScanner(Scanner):
    """Only what ends a process, with facts for conditions. What earlier statements refuse is left out: it is no reason
    of this one, and changes without it."""

    after_refusals = False

    def __init__(self, path: str, tree: ast.Module, reader: FactReader) -> None:
        super().__init__(path, [], tree, False)
        self.reader = reader
        self.found: list[LearnedSite] = []
        self.last_words = set(_before_exit(tree))

    def _log(
        self,
        stmt: ast.Expr,
        call: ast.Call,
        where: str,
        guards: Tests,
        scope: dict[str, list[ast.expr]],
    ) -> None:
        func = call.func
        refusal = (
            isinstance(func, ast.Attribute) and func.attr == "error" and "parser" in ast.unparse(func.value)
        )
        if refusal or id(stmt) in self.last_words:
            super()._log(stmt, call, where, guards, scope)

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
        shown: list[str] = []
        reads: dict[str, None] = {}
        for test, holds in guards:
            whole = self.inlined(test)
            text = self.reader.condition(whole, scope)
            if text != OPEN:
                shown.append(text if holds else f"!{text}")
            reads |= dict.fromkeys(self.reader.names(whole, scope))
        shown = shown[-_MAX_GUARDS:]
        said = " ".join(shown)
        more = tuple(name for name in reads if name not in said)[:8]
        if kind == "assert" and _KERNELS.match(self.path):
            return  # of shapes and layouts, by the hundred
        for one in dict.fromkeys(map(shortened, pieces)):
            told = literal_length(one) >= MIN_LITERAL
            if told or (kind == "assert" and shown):
                self.found.append(
                    LearnedSite(where, exception.split(".")[-1], one if told else ("",), tuple(shown), more)
                )


def _before_exit(tree: ast.Module) -> Iterator[int]:
    """Calls that are followed by the end of the process in the same block."""
    for node in (tree, *statements(tree)):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(block, list):
                continue
            for at, stmt in enumerate(block):
                if isinstance(stmt, ast.Expr) and any(map(_exits, block[at + 1 : at + 4])):
                    yield id(stmt)


def _exits(stmt: ast.stmt) -> bool:
    if not isinstance(stmt, ast.Expr) or not isinstance(stmt.value, ast.Call):
        return False
    func = stmt.value.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in _EXITS or name == "kill_process_tree"


def shortened(pieces: Pieces) -> Pieces:
    """The beginning of a message; what was cut off is a hole."""
    out: list[str] = []
    left = MAX_LITERAL
    for piece in pieces:
        if len(piece) > left:
            return (*out, piece[:left], "") if left else (*out, "")
        out.append(piece)
        left -= len(piece)
    return tuple(out)


def sites_of(path: str, text: str, dests: frozenset[str]) -> tuple[LearnedSite, ...]:
    """Statements of one file, each once; none of a file that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
        return ()
    scanner = _SiteScanner(path, tree, FactReader(dests))
    scanner.run()
    return tuple(dict.fromkeys(scanner.found))


Sites = dict[str, tuple[LearnedSite, ...]]


def learn_sites(
    source: SourceTree,
    dests: frozenset[str],
    cache: dict[tuple[str, bytes], tuple[LearnedSite, ...]] | None = None,
) -> Sites:
    """File -> its statements. ``dests``: fields of ServerArgs, of all releases; ``cache`` as for ``learn_history``."""
    cache = {} if cache is None else cache
    out: Sites = {}
    for path in learned_files(source):
        text = source.read(path) or ""
        key = (path, hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())
        if key not in cache:
            cache[key] = sites_of(path, text, dests)
        if cache[key]:
            out[path] = cache[key]
    return out


def write_sites(folder: Path, learned: Mapping[str, Sites]) -> None:
    """``learned[release][file]`` to the table, keeping the releases that it has already."""
    known: dict[str, Sites] = {
        release: {
            file: tuple(LearnedSite(s.function, s.exception, s.pieces, s.guards, s.reads) for s in found)
            for file, found in files.items()
        }
        for release, files in read_sites(folder).items()
    }
    known.update(learned)
    releases = sort_releases(known)
    held: dict[str, dict[LearnedSite, list[int]]] = {}
    for index, release in enumerate(releases):
        for file, found in known[release].items():
            rows = held.setdefault(file, {})
            for site in found:
                rows.setdefault(site, []).append(index)
    _write(folder, releases, held)


def _write(folder: Path, releases: list[str], held: Mapping[str, Mapping[LearnedSite, list[int]]]) -> None:
    numbers: dict[Pieces, int] = {("",): 0}
    groups: list[list[int]] = [[]]  # of each text: the members with statements that say it
    members: dict[str, str] = {}
    files: dict[str, int] = {}
    rows: dict[str, list[list[object]]] = {}

    def close() -> None:
        if rows:
            members[f"s{len(members):02}"] = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
            rows.clear()

    for file in sorted(held):
        if sum(map(len, rows.values())) > _GROUP:
            close()
        files[file] = len(members)
        for site, at in sorted(
            held[file].items(), key=lambda item: (item[0].function, item[1], item[0].pieces)
        ):
            number = numbers.setdefault(site.pieces, len(numbers))
            if number == len(groups):
                groups.append([])
            if len(members) not in groups[number]:
                groups[number].append(len(members))
            row: list[object] = [site.function, site.exception, number, _spans(at, len(releases))]
            if site.guards or site.reads:
                row.append("\n".join(site.guards))
            if site.reads:
                row.append(" ".join(site.reads))
            rows.setdefault(file, []).append(row)
    close()
    texts = sorted(numbers, key=lambda pieces: numbers[pieces])
    members["texts"] = BETWEEN.join("\x1f".join(pieces) for pieces in texts)
    members["where"] = " ".join(",".join(map(str, of)) for of in groups)
    write_packed(folder / SITES_FILE, {"releases": releases, "files": files}, members)


def _spans(held: list[int], count: int) -> str:
    """Numbers of releases as ranges, "" for all, the last left out where it is the newest: "0-5 9-"."""
    out: list[list[int]] = []
    for at in held:
        if out and out[-1][1] == at - 1:
            out[-1][1] = at
        else:
            out.append([at, at])
    if out == [[0, count - 1]]:
        return ""
    return " ".join(f"{a}-{'' if b == count - 1 else b}" for a, b in out)
