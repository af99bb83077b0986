"""One option under several names: renames over time, followed both ways.

Reads ``options.json``, compiled by ``learn_options``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import FlagSpec, FlagTable, Translation, flag_table
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order


def _data() -> Mapping[str, Any]:
    return read_table(releases_folder() / "options.json")


@lru_cache(maxsize=4)
def _groups(override: str | None) -> Mapping[str, tuple[str, ...]]:
    groups = _data()["groups"]
    return {dest: (dest, *(other for other in group if other != dest)) for group in groups for dest in group}


def same_option(dest: str) -> tuple[str, ...]:
    """``dest`` first, then the names that the same field of ServerArgs has in other releases."""
    return same_options().get(dest) or (dest,)


def same_options() -> Mapping[str, tuple[str, ...]]:
    """``same_option`` of every field that has several names: for whoever asks for hundreds."""
    # Asked for every argument of every launch: the folder is not looked up each time.
    return _groups(os.environ.get("MTPDOCTOR_KNOWLEDGE"))


def translate_name(name: str, release: Release | None) -> Translation:
    """See :func:`mtpdoctor.sglang.flags.translate`."""
    if release is None:
        return Translation(name)
    table = flag_table(release)
    spec = table.get(name)
    if spec is None and (short := table.resolve(name)) is not None:
        now = _successor(short, table) or short
        return Translation(
            now.name, f"{name} is short for {short.name}" + (f", now {now.name}" if now is not short else "")
        )
    if spec is not None and spec.refused is None:
        successor = _successor(spec, table)
        if successor is None or name == successor.name:
            return Translation(name)
        return Translation(successor.name, f"{name} is deprecated in {table.release}")
    found = _renamed(name, table)
    if found is not None:
        return Translation(found.name, f"{name} is called {found.name} in {table.release}")
    return Translation(None, absence(name, release))


def _successor(spec: FlagSpec, table: FlagTable) -> FlagSpec | None:
    """The flag of the same shape that a deprecated one gives its values to."""
    if not spec.deprecated or spec.const is not None:
        return None
    other = table.get(spec.replacement or "")
    if (
        other is None
        or other.arity != spec.arity
        or other.refused is not None
        or spec.name in _data()["values"]
    ):
        return None
    return other


def _renamed(name: str, table: FlagTable) -> FlagSpec | None:
    """The flag of ``table`` that is the same option as ``name``, which ``table`` does not have."""
    union = flag_table(None)
    old = union.get(name)
    if old is None or name in _data()["values"]:
        return None
    for dest in (old.dest, *_all_dests(name), *same_option(old.dest)):
        found = table.by_dest(dest)
        if found is not None and found.refused is None and found.arity == old.arity and old.const is None:
            return found
    found = table.get(old.replacement or "") if old.const is None else None
    return found if found is not None and found.arity == old.arity and found.refused is None else None


def _all_dests(name: str) -> tuple[str, ...]:
    """Fields that a spelling has set in any release (without those it only set to a constant)."""
    spans = read_table(releases_folder() / "flags.json")["flags"].get(name, ())
    dests = [entry.get("dest", name[2:].replace("-", "_")) for _, _, entry in spans if "const" not in entry]
    return tuple(other for dest in dict.fromkeys(dests) for other in same_option(dest))


def absence(name: str, release: Release) -> str:
    """Why a release does not have a flag, in a sentence."""
    spec = flag_table(None).get(name)
    if spec is None:
        return f"no known SGLang release has {name}"
    spans = [(release_order(first), release_order(last) if last else None) for first, last in spec.releases]
    later = [first for first, _ in spans if first > release]
    earlier = [last for _, last in spans if last is not None and last < release]
    if earlier:
        gone = next((r for r in known_releases() if r > earlier[-1]), None)
        sentence = f"{name} was removed in {gone}" if gone else f"{name} was removed after {earlier[-1]}"
        return f"{sentence} and came back in {later[0]}" if later else sentence
    if later:
        return f"{name} was added in {later[0]}"
    return f"{release} does not have {name}"


@dataclass(frozen=True, slots=True)
class Move:
    """What takes the place of a flag that a release does not have. ``edits`` exclude the flag's own
    removal; their values may hold placeholders of the knowledge format and ``{value}``."""

    edits: tuple[Edit, ...]
    why: str


def move(name: str, release: Release, value: str | None = None) -> Move | None:
    """Replacement edits for a flag that changed its shape: from ``renames.yaml``, from what the parser
    itself named ("use --flag=value"), or backwards from a value to the old switch. None when unknown."""
    table = flag_table(release)
    for row in _data()["moves"].get(name, ()):
        if _in_force(row, release) and ("value" not in row or row["value"] == value):
            edits = tuple(e for e in map(parse_edit, row["edits"]) if _applies(e, table))
            if len(edits) == len(row["edits"]):
                return Move(edits, row["why"])
    old = flag_table(None).get(name)
    if old is None:
        return None
    mapped = _data()["values"].get(name)
    if mapped and mapped["new"] in table and value in mapped["map"]:
        new = mapped["map"][value]
        return Move((Edit(EditOp.SET, mapped["new"], new),), f"{value} is called {new} by {mapped['new']}")
    flag, _, setting = (old.replacement or "").partition("=")
    target = table.get(flag)
    if setting and target is not None and (target.choices is None or setting in target.choices):
        return Move((Edit(EditOp.SET, flag, setting),), f"SGLang names {flag} {setting} in its place")
    if value is not None and old.arity == "one":
        switch = _old_switch(old, value, table)
        if switch is not None:
            return Move((Edit(EditOp.ADD, switch),), f"{release} has a switch for {name} {value}")
    return None


def _in_force(row: Mapping[str, Any], release: Release) -> bool:
    since, until = row.get("since"), row.get("until")
    return (since is None or release_order(since) <= release) and (
        until is None or release <= release_order(until)
    )


def _applies(edit: Edit, table: FlagTable) -> bool:
    return not edit.name.startswith("--") or edit.name in table


def _old_switch(spec: FlagSpec, value: str, table: FlagTable) -> str | None:
    """An old switch that later became a spelling of ``spec``'s ``value``, as far as ``table`` has it."""
    for other in flag_table(None).specs:
        if other.dest == spec.dest and other.const == value and other.name in table:
            return other.name
    return None


def parse_edit(text: str) -> Edit:
    """``set --flag value`` / ``add --flag`` / ``remove --flag`` / ``env NAME=value`` / ``unset NAME``."""
    op, _, rest = text.partition(" ")
    if op == "env":
        name, _, value = rest.partition("=")
        return Edit(EditOp.ENV, name, value)
    name, _, value = rest.partition(" ")
    return Edit(EditOp(op), name, value or None)


def translate_edit(edit: Edit, release: Release | None) -> tuple[tuple[Edit, ...] | None, str]:
    """An edit in the spelling of ``release``: usually one edit, several where an option changed its
    shape, None where the release has nothing like it. The second part says what was done, "" if nothing."""
    if edit.op not in (EditOp.SET, EditOp.ADD, EditOp.REMOVE) or release is None:
        return (edit,), ""
    to = translate_name(edit.name, release)
    if to.name is not None:
        return (replace(edit, name=to.name),), to.reason
    if edit.op is EditOp.REMOVE:
        return (), to.reason  # nothing to remove where the flag cannot stand
    moved = move(edit.name, release, edit.value)
    if moved is None:
        return None, to.reason
    edits = tuple(
        replace(e, value=e.value.replace("{flag." + _dest(edit.name) + "}", edit.value or ""))
        if e.value
        else e
        for e in moved.edits
    )
    return edits, f"{to.reason}; {moved.why}"


def _dest(name: str) -> str:
    spec = flag_table(None).get(name)
    return spec.dest if spec else name[2:].replace("-", "_")
