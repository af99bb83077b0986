"""The lines of SGLang's functions that later releases no longer have, learned from the sources.

Only what a traceback can show counts: lines on which some syntax begins, in functions that Python runs. A change of layout
or of comments takes no line away. Written as ``lines.json.gz`` (read by ``lines``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from mtpdoctor.sglang.learn_history import Forms, is_kernel
from mtpdoctor.sglang.lines import FIRST, LINES_FILE, digest_of, unwritten
from mtpdoctor.sglang.packed import in_members, open_packed, write_packed
from mtpdoctor.sglang.store import release_order, sort_releases

_GROUP = 400_000  # characters of one member, about

Lines = dict[str, tuple[tuple[str, ...], frozenset[str]]]  # function -> its forms, digests of its lines
Gone = dict[str, dict[str, dict[str, int]]]  # file -> function -> digest -> last release that has it


def lines_by_function(tree: ast.Module, text: str, forms: Forms) -> Lines:
    """Of every function of one file, by the name that a traceback gives it."""
    rows = text.splitlines()
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_kernel(node):
            begin = {at for part in ast.walk(node) if (at := getattr(part, "lineno", None)) is not None}
            found.setdefault(node.name, set()).update(
                digest_of(rows[at - 1]) for at in begin if at <= len(rows)
            )
    return {name: (forms[name], frozenset(lines)) for name, lines in found.items() if name in forms}


def write_lines(folder: Path, learned: Mapping[str, Mapping[str, Lines]]) -> tuple[str, ...]:
    """Bring the table up to date; returns the releases that were left out.

    As with the history of functions: a new release is added where it comes right after the newest that is known and that
    one's source is at hand too; with the sources of all, the table is made anew.
    """
    table = open_packed(folder / LINES_FILE)
    old: list[str] = table.head.get("releases", [])
    given = sort_releases(learned)
    if set(old) <= set(given):
        releases, start, gone = given, 0, {}
    else:
        new = [r for r in given if release_order(r) > release_order(old[-1])]
        if not new or old[-1] not in learned:
            return tuple(r for r in given if r not in old)
        releases, start, gone = [*old, *new], len(old) - 1, _read(table.text(g) for g in table.names())
    before: Mapping[str, Lines] = {}
    for index in range(start, len(releases)):
        here = learned[releases[index]]
        if index > start:
            _compare(gone, before, here, index)
        before = here
    _write(folder, releases, gone)
    return ()


def _compare(gone: Gone, before: Mapping[str, Lines], here: Mapping[str, Lines], index: int) -> None:
    """``index``: of the release ``here``."""
    for file, functions in here.items():
        earlier = before.get(file)
        if earlier is None or earlier is functions:
            continue
        for name, (forms, lines) in functions.items():
            kept = gone.get(file, {}).get(name, {})
            for digest in lines & kept.keys():
                del kept[digest]  # it came back
            then = earlier.get(name)
            if then is not None and then[0] != forms and (went := then[1] - lines):
                gone.setdefault(file, {}).setdefault(name, {}).update(dict.fromkeys(went, index - 1))


def _read(members: Iterator[str]) -> Gone:
    out: Gone = {}
    for text in members:
        here: dict[str, dict[str, int]] = {}
        for row in text.split("\n")[1:-1]:
            if row.startswith("#"):
                here = out.setdefault(row[1:], {})
                continue
            name, _, written = row.partition(" ")
            here[name] = unwritten(written)
    return out


def _write(folder: Path, releases: list[str], gone: Gone) -> None:
    rows = ((file, _rows(gone[file])) for file in sorted(gone) if any(gone[file].values()))
    members, files = in_members(rows, _GROUP)
    write_packed(folder / LINES_FILE, {"releases": releases, "files": files}, members)


def _rows(functions: Mapping[str, Mapping[str, int]]) -> list[str]:
    out = []
    for name, lines in sorted(functions.items()):
        if lines:
            by_release = sorted(lines.items(), key=lambda entry: (entry[1], entry[0]))
            out.append(f"{name} {''.join(digest + chr(FIRST + last) for digest, last in by_release)}")
    return out
