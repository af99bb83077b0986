"""Which flags of different releases are one option: what the parsers tell, plus ``renames.yaml``.

Compiled into ``options.json`` when releases are learned, so that a diagnosis parses no YAML.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.sglang.learn_flags import LearnedFlag
from mtpdoctor.sglang.store import FORMAT, sort_releases, write_table

Tables = Mapping[str, Mapping[str, LearnedFlag]]  # release -> flag name -> flag


def write_options(folder: Path, flags: Tables, fields: Mapping[str, Iterable[str]]) -> None:
    """Write ``options.json`` of a table folder. ``fields``: the ServerArgs fields of each release."""
    explicit = _load_yaml(folder / "renames.yaml")
    foreign = _load_yaml(folder / "foreign_flags.yaml")
    moves: dict[str, list[dict[str, Any]]] = {}
    for row in explicit.get("edits", ()):
        moves.setdefault(row["old"], []).append(
            {k: v for k, v in row.items() if k not in ("old", "evidence")}
        )
    write_table(
        folder / "options.json",
        {
            "format": FORMAT,
            "groups": option_groups(flags, fields, explicit.get("same", ())),
        },
        {
            "moves": moves,
            "values": {r["old"]: {"new": r["new"], "map": r["map"]} for r in explicit.get("values", ())},
            "foreign": dict(_foreign(foreign)),
        },
    )


def _load_yaml(path: Path) -> dict[str, Any]:
    import yaml  # a dependency of maintainers' commands only; diagnosing reads the compiled table

    if not path.is_file():
        return {}
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold a mapping")
    return data


def _foreign(data: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for project, flags in data.items():
        for name, entry in flags.items():
            if isinstance(entry, str):
                entry = {"edits": [f"set {entry} {{value}}"], "why": "the same option under another name"}
            yield name, {"of": project, **entry}


def option_groups(
    flags: Tables, fields: Mapping[str, Iterable[str]], same: Iterable[Mapping[str, Any]] = ()
) -> list[list[str]]:
    """Groups of fields that were one option over time, newest name first.

    Joined: the fields that one spelling set in different releases; a deprecated flag and the flag of the
    same shape that the parser names instead; the pairs of ``renames.yaml``. Never joined: two fields of
    one and the same release, for they can hold different values.
    """
    order = sort_releases(flags)
    dests = {r: {*fields[r], *(flag.dest for flag in flags[r].values())} for r in order}
    present = {dest: {r for r in order if dest in dests[r]} for r in order for dest in dests[r]}
    parent: dict[str, str] = {}

    def root(dest: str) -> str:
        while parent.get(dest, dest) != dest:
            dest = parent[dest]
        return dest

    def members(dest: str) -> list[str]:
        return [d for d in {*parent, *parent.values(), dest} if root(d) == root(dest)]

    def join(left: str, right: str) -> None:
        lefts, rights = members(left), members(right)
        if root(left) == root(right):
            return
        if any(present.get(a, set()) & present.get(b, set()) for a in lefts for b in rights):
            return
        parent[root(left)] = root(right)
        parent.setdefault(root(right), root(right))

    seen: dict[str, str] = {}
    for release in order:
        table = flags[release]
        for flag in table.values():
            if flag.const is not None or flag.refused is not None:
                continue
            if flag.name in seen:
                join(seen[flag.name], flag.dest)
            seen[flag.name] = flag.dest
            other = table.get(flag.replacement or "")
            if flag.deprecated and other is not None and _same_shape(flag, other):
                join(flag.dest, other.dest)
    for row in same:
        for left, right in itertools.pairwise(seen[name] for name in row["names"] if name in seen):
            join(left, right)
    newest = {field: max(order.index(r) for r in releases) for field, releases in present.items()}
    groups: dict[str, set[str]] = {}
    for dest in parent:
        groups.setdefault(root(dest), set()).update({dest, root(dest)})
    rows = [sorted(g, key=lambda d: (-newest.get(d, -1), d)) for g in groups.values() if len(g) > 1]
    return sorted(rows)


def _same_shape(old: LearnedFlag, new: LearnedFlag) -> bool:
    if old.arity != new.arity or new.const is not None:
        return False
    return not (old.choices and new.choices and not set(map(str, old.choices)) <= set(map(str, new.choices)))
