"""The gates of SGLang's functions and lines, release by release: which options and variables they run under.

A line has the gates that enclose it (``gate_lines``). A function has those that all places that use its name have together,
and of the functions and classes that these stand in, some steps far. Written as ``gates.json.gz`` (read by ``gates``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mtpdoctor.sglang.gate_facts import either
from mtpdoctor.sglang.gate_lines import FileGates
from mtpdoctor.sglang.gates import CALLS, GATES_FILE, NO_GATES, Gates, gates_in, of_file, parts_of
from mtpdoctor.sglang.lines import digest_of
from mtpdoctor.sglang.packed import Packed, in_members, open_packed, write_packed
from mtpdoctor.sglang.store import release_order, sort_releases

_DEPTH = 4
_GROUP = 60_000  # characters of one member, about

Lines = dict[str, dict[str, dict[str, Gates]]]  # file -> function -> digest of a line -> gates
Functions = dict[str, dict[str, Gates]]  # file -> function -> gates
Place = tuple[str, str]  # file, qualified name


@dataclass(slots=True)
class LearnedGates:
    """Of one release."""

    lines: Lines
    functions: Functions


def learn_gates(files: Mapping[str, FileGates]) -> LearnedGates:
    """Gates of one release's files."""
    reached = _reached(files)
    lines: Lines = {}
    functions: Functions = {}
    for path, found in files.items():
        for (function, line), gates in found.lines.items():
            whole = _expanded(gates, path, reached)
            of = lines.setdefault(path, {}).setdefault(function, {})
            digest = digest_of(line)
            of[digest] = of[digest] & whole if digest in of else whole
        for name, is_class in found.defined.items():
            if not is_class:
                of_file = functions.setdefault(path, {})
                bare = name.rsplit(".", 1)[-1]
                gates = reached.get((path, name), NO_GATES)
                of_file[bare] = either((of_file[bare], gates)) if bare in of_file else gates
    return LearnedGates(lines, functions)


def _expanded(gates: Gates, path: str, reached: Mapping[Place, Gates]) -> Gates:
    """With what holds where a function runs in place of its name."""
    out = {g for g in gates if not g.name.startswith(CALLS)}
    for gate in gates:
        if gate.name.startswith(CALLS):
            out |= reached.get((path, gate.name[len(CALLS) :]), NO_GATES)
    return frozenset(out)


def _reached(files: Mapping[str, FileGates]) -> dict[Place, Gates]:
    """Gates of every function and class."""
    holders: dict[str, list[Place]] = {}
    for path, found in files.items():
        for name in found.defined:
            bare = name.rsplit(".", 1)[-1]
            if not bare.startswith("__"):
                holders.setdefault(bare, []).append((path, name))
    users: dict[str, list[tuple[Place, Gates]]] = {}
    for path, found in files.items():
        for (bare, where), gates in found.uses.items():
            if bare in holders and bare not in where.split("."):  # what calls itself is no other way in
                users.setdefault(bare, []).append(((path, where), gates))
        for name, bases in found.bases.items():
            for base in bases:
                if base in holders:
                    users.setdefault(base, []).append(((path, name), NO_GATES))
    given = {(path, name): gates for path, found in files.items() for name, gates in found.given.items()}
    known: dict[Place, Gates] = dict(given)
    for _ in range(_DEPTH):
        found_now = dict(given)
        for bare, places in users.items():
            gates = either(_expanded(g, place[0], known) | _whole(place, known) for place, g in places)
            if gates:
                for target in holders[bare]:
                    found_now[target] = found_now.get(target, NO_GATES) | gates
        if found_now == known:
            break
        known = found_now
    return {
        (path, name): gates
        for path, found in files.items()
        for name in found.defined
        if (gates := _whole((path, name), known))
    }


def _whole(place: Place, known: Mapping[Place, Gates]) -> Gates:
    """Of a function also what its class has."""
    path, name = place
    gates = NO_GATES
    while name:
        gates |= known.get((path, name), NO_GATES)
        name = name.rpartition(".")[0]
    return gates


# -- the table -----------------------------------------------------------------------------------------------------

Spans = list[tuple[Gates, int, int]]
Rows = dict[
    str, dict[str, dict[str, Spans]]
]  # file -> function -> digest of a line, "" of the whole function -> spans


def write_gates(folder: Path, learned: Mapping[str, LearnedGates]) -> tuple[str, ...]:
    """Bring the table up to date; returns the releases that were left out: older ones than the newest that is known. With
    the sources of all, the table is made anew."""
    table = open_packed(folder / GATES_FILE)
    old: list[str] = table.head.get("releases", [])
    given = sort_releases(learned)
    rows: Rows = {}
    if set(old) <= set(given):
        releases, new = given, given
    else:
        new = [r for r in given if release_order(r) > release_order(old[-1])]
        releases, rows = [*old, *new], _read(table)
    for release in new:
        at, here = releases.index(release), learned[release]
        for file, functions in here.lines.items():
            for function, found in functions.items():
                for digest, gates in found.items():
                    _add(rows, file, function, digest, gates, at)
        for file, named in here.functions.items():
            for function, gates in named.items():
                _add(rows, file, function, "", gates, at)
    if new:
        _write(folder, releases, rows)
    return tuple(r for r in given if r not in old and r not in new)


def _add(rows: Rows, file: str, function: str, digest: str, gates: Gates, at: int) -> None:
    if not gates:
        return
    spans = rows.setdefault(file, {}).setdefault(function, {}).setdefault(digest, [])
    if spans and spans[-1][0] == gates and spans[-1][2] == at - 1:
        spans[-1] = (gates, spans[-1][1], at)
    else:
        spans.append((gates, at, at))


def _read(table: Packed) -> Rows:
    sets = [gates_in(text) for text in table.head["gates"]]
    rows: Rows = {}
    for file, group in table.groups.items():
        for name, written in of_file(table.text(group), file).items():
            functions = rows.setdefault(file, {}).setdefault(name.removeprefix(">"), {})
            for number, first, last, digests in parts_of(written):
                each = [digests[n : n + 3] for n in range(0, len(digests), 3)] or [""]
                for digest in each:
                    functions.setdefault(digest, []).append((sets[number], first, last))
    for of in rows.values():
        for found in of.values():
            for spans in found.values():
                spans.sort(key=lambda span: span[1])
    return rows


def _write(folder: Path, releases: list[str], rows: Rows) -> None:
    numbers: dict[str, int] = {}
    members, files = in_members(((file, _of_functions(rows[file], numbers)) for file in sorted(rows)), _GROUP)
    write_packed(folder / GATES_FILE, {"releases": releases, "files": files, "gates": list(numbers)}, members)


def _of_functions(functions: Mapping[str, Mapping[str, Spans]], numbers: dict[str, int]) -> list[str]:
    out: list[str] = []
    for function, found in sorted(functions.items()):
        together: dict[tuple[str, int, int], list[str]] = {}
        for digest, spans in sorted(found.items()):
            for gates, first, last in spans:
                key = (" ".join(sorted(map(str, gates))), first, last)
                together.setdefault(key, []).append(digest)
        whole = _parts({key: "" for key, all_of in together.items() if "" in all_of}, numbers)
        lines = _parts({key: text for key, all_of in together.items() if (text := "".join(all_of))}, numbers)
        out += [f"{mark}{function}\t{parts}" for mark, parts in ((">", whole), ("", lines)) if parts]
    return out


def _parts(found: Mapping[tuple[str, int, int], str], numbers: dict[str, int]) -> str:
    return "\t".join(
        f"{numbers.setdefault(text, len(numbers))} {first} {last} {digests}"
        for (text, first, last), digests in sorted(found.items())
    )
