"""Options that go out of a command along with the one that they belong to (``knowledge/releases/partners.json``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.sglang.flags import FlagTable, flag_table
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.store import read_table

if TYPE_CHECKING:
    from mtpdoctor.launch.types import LaunchCommand
    from mtpdoctor.release import Release


def partners_of(
    edits: Sequence[Edit], command: LaunchCommand, release: Release | None
) -> tuple[tuple[Edit, ...], str]:
    """Removals of what ``edits`` leave without a partner in ``command``, and why; none and "" where nothing is."""
    gone = {e.name for e in edits if e.op is EditOp.REMOVE}
    if not gone:
        return (), ""
    tables = (flag_table(release), flag_table(None))
    given = {name: dest for use in command.flags if (dest := _dest(name := use.name, tables)) is not None}
    taken = {dest for name in gone if (dest := _dest(name, tables)) is not None}
    written = {dest for e in edits if e.op in (EditOp.SET, EditOp.ADD) and (dest := _dest(e.name, tables))}
    out: dict[str, None] = {}
    reasons: list[str] = []
    for group in _groups():
        heads = {other for head in group["heads"] for other in same_option(head)}
        if not taken & heads or (set(given.values()) - taken | written) & heads:
            continue
        found = [
            name
            for name, dest in given.items()
            if dest not in taken and dest not in written and _belongs(dest, group["with"])
        ]
        if found:
            out.update(dict.fromkeys(found))
            taken |= {given[name] for name in found}  # a later group may hang on what this one takes
            reasons.append(f"{', '.join(found)} out as well: {group['why']}")
    return tuple(Edit(EditOp.REMOVE, name, None) for name in out), "; ".join(reasons)


def _groups() -> Iterator[dict[str, Any]]:
    yield from read_table(releases_folder() / "partners.json")["groups"]


def _dest(name: str, tables: Sequence[FlagTable]) -> str | None:
    return next((spec.dest for table in tables if (spec := table.resolve(name)) is not None), None)


def _belongs(dest: str, wanted: Sequence[str]) -> bool:
    names = same_option(dest)
    return any(
        name == one or (one.endswith("*") and name.startswith(one[:-1]))
        for one in wanted
        for name in (dest, *names)
    )
