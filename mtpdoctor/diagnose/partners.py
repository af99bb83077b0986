"""Options that go out of a command, or come into it, along with one that a fix changes (``knowledge/releases/partners.json``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import ReleaseRange
from mtpdoctor.sglang.flags import FlagTable, flag_table
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.store import read_table

if TYPE_CHECKING:
    from mtpdoctor.launch.types import LaunchCommand
    from mtpdoctor.release import Release


def partners_of(
    edits: Sequence[Edit], command: LaunchCommand, release: Release | None, unwanted: Sequence[Edit] = ()
) -> tuple[tuple[Edit, ...], str]:
    """Removals of what ``edits`` leave without a partner in ``command``, and why; none and "" where nothing is.

    What ``unwanted`` removes is not to come in either, though the command may not have it."""
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
    removals = tuple(Edit(EditOp.REMOVE, name, None) for name in out)
    barred = {dest for e in unwanted if e.op is EditOp.REMOVE and (dest := _dest(e.name, tables)) is not None}
    kept = tuple(_kept(command, given, taken, written, barred, release))
    return (*removals, *(edit for edit, _ in kept)), "; ".join([*reasons, *(why for _, why in kept)])


def overruled(
    edits: Sequence[Edit], command: LaunchCommand, release: Release | None
) -> tuple[tuple[Edit, ...], str]:
    """Removals of what would go before an option that ``edits`` set, and why; none and "" where nothing would."""
    tables = (flag_table(release), flag_table(None))
    touched = {dest for e in edits if (dest := _dest(e.name, tables)) is not None}
    values = {
        dest: e.value
        for e in edits
        if e.op is EditOp.SET and e.value and (dest := _dest(e.name, tables)) is not None
    }
    out: dict[str, None] = {}
    reasons: list[str] = []
    for group in _table()["overruled"]:
        value = next((values[d] for d in same_option(group["by"][0]) if d in values), None)
        if value is None:
            continue
        found = [
            use.name
            for use in command.flags
            if (dest := _dest(use.name, tables)) is not None
            and dest not in touched
            and _belongs(dest, group["options"])
            and use.values != (value,)
        ]
        if found:
            out.update(dict.fromkeys(found))
            reasons.append(f"{', '.join(found)} out as well: {group['why']}")
    return tuple(Edit(EditOp.REMOVE, name, None) for name in out), "; ".join(reasons)


# Algorithms for which SGLang takes steps, branches and draft tokens together, or chooses all three.
_THREE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
_OF_THREE = frozenset(("EAGLE", "EAGLE3", "NEXTN", "STANDALONE"))
_STEPS = 3  # what SGLang itself chooses for most models


def whole_speculation(
    edits: Sequence[Edit], command: LaunchCommand, release: Release | None
) -> tuple[tuple[Edit, ...], str]:
    """What completes steps, branches and draft tokens where ``edits`` leave some of them without the steps, which an assertion
    refuses; none and "" where they are whole."""
    tables = (flag_table(release), flag_table(None))
    changed = {
        dest: e for e in edits if (dest := _dest(e.name, tables)) in (*_THREE, "speculative_algorithm")
    }
    if not changed.keys() & set(_THREE):
        return (), ""
    names = {dest: use.name for use in command.flags if (dest := _dest(use.name, tables)) is not None}
    now = {dest: (command.value(dest) or ("",))[-1] for dest in names}
    for dest, edit in changed.items():
        if edit.op is EditOp.REMOVE:
            now.pop(dest, None)
        else:
            now[dest] = edit.value or ""
    steps, branches, tokens = (now.get(dest) for dest in _THREE)
    if steps is not None or (branches is None and tokens is None) or "speculative_adaptive" in now:
        return (), ""
    if now.get("speculative_algorithm", "").upper() not in _OF_THREE:
        return (), ""
    if changed.get(_THREE[0]) is not None:
        gone = tuple(
            Edit(EditOp.REMOVE, names[dest], None)
            for dest in _THREE[1:]
            if dest in now and dest not in changed
        )
        return (
            gone,
            f"{', '.join(e.name for e in gone)} out as well: without the steps they are refused"
            if gone
            else "",
        )
    if branches not in (None, "1") or not (tokens is None or tokens.isdecimal()):
        return (), ""
    wanted = (
        str(int(tokens) - 1 if tokens is not None and int(tokens) > 1 else _STEPS),
        "1",
        tokens or str(_STEPS + 1),
    )
    added = tuple(
        Edit(EditOp.SET, "--" + dest.replace("_", "-"), value)
        for dest, value in zip(_THREE, wanted, strict=True)
        if dest not in now
    )
    return added, "steps, branches and draft tokens are given together, or all left to SGLang"


def _kept(
    command: LaunchCommand,
    given: Mapping[str, str],
    taken: set[str],
    written: set[str],
    barred: set[str],
    release: Release | None,
) -> Iterator[tuple[Edit, str]]:
    """What an option that goes had set as well, and what has to be set by its own name from now on."""
    for group in _table()["kept"]:
        heads = {other for head in group["heads"] for other in same_option(head)}
        if written & heads or not any(
            given.get(u.name) in heads & taken and u.values != ("none",) for u in command.flags
        ):
            continue
        if ReleaseRange.parse(group["releases"]).holds(release) is False:
            continue
        if (set(given.values()) | written | barred) & {group["option"], *group["unless"]}:
            continue
        value = next(
            (u.values[0] for u in command.flags if given.get(u.name) == group["of"] and u.values), ""
        )
        if value.isdigit() and int(value) > 1:
            flag = "--" + group["option"].replace("_", "-")
            yield Edit(EditOp.SET, flag, value), f"{flag} {value} in its place: {group['why']}"


def _groups() -> Iterator[dict[str, Any]]:
    yield from _table()["groups"]


def _table() -> Any:
    return read_table(releases_folder() / "partners.json")


def _dest(name: str, tables: Sequence[FlagTable]) -> str | None:
    return next((spec.dest for table in tables if (spec := table.resolve(name)) is not None), None)


def _belongs(dest: str, wanted: Sequence[str]) -> bool:
    names = same_option(dest)
    return any(
        name == one or (one.endswith("*") and name.startswith(one[:-1]))
        for one in wanted
        for name in (dest, *names)
    )
