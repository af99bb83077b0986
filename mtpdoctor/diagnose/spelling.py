"""Edits as a release spells them, and in an order that loses nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.kb.templates import literal, resolve_edit
from mtpdoctor.kb.types import EditTemplate
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.records import replace
from mtpdoctor.sglang.flags import OF_SERVE, flag_table
from mtpdoctor.sglang.options import translate_edit, translate_name

_OPEN = re.compile(r"<[^<>]+>")


def spell(edit: Edit, case: Case) -> tuple[tuple[Edit, ...] | None, str]:
    """The edit as the release in use spells it (a renamed flag, or a value that became another
    option); None with the reason when that release has no such option. What is removed is spelled
    as it stands in the command, or as the release calls it."""
    if edit.op is EditOp.REMOVE:
        return (_taken_out(edit, case),), ""
    if edit.op not in (EditOp.SET, EditOp.ADD) or edit.name == OF_SERVE:
        return (edit,), ""
    given = (
        edit if edit.value is None else replace(edit, value=literal(edit.value))
    )  # the tables hold templates
    edits, note = translate_edit(given, case.release)
    if edits is None:
        return None, note
    filled = []
    for one in edits:
        written, missing = resolve_edit(EditTemplate(one.op.value, one.name, one.value), case.facts)
        if missing:
            return None, f"{note}; not known here: {', '.join(missing)}"
        filled.append(written)
    return tuple(filled), note


def _taken_out(edit: Edit, case: Case) -> Edit:
    """A rule names an option as one release does; what the release in use does not know stands in no command of it."""
    typed = case.document.command.flags if case.document is not None else ()
    if case.release is None or flag_table(case.release).get(edit.name) is not None:
        return edit
    if any(use.name == edit.name for use in typed):
        return edit
    now = translate_name(edit.name, case.release).name
    return edit if now is None else replace(edit, name=now)


def contradictory(edits: Sequence[Edit]) -> bool:
    """Do they write the very flag that they take out? So a new name spelled for a release that has the old one."""
    gone = {e.name for e in edits if e.op is EditOp.REMOVE}
    return any(e.op in (EditOp.SET, EditOp.ADD) and e.name in gone for e in edits)


def removals_first(edits: Sequence[Edit]) -> list[Edit]:
    """In an order that loses nothing: a flag is taken out under all its names, the new one too."""
    return sorted(edits, key=lambda e: e.op is not EditOp.REMOVE)


def is_open(edit: Edit) -> bool:
    """The value is left to the person (``<path of the model>``): no command can be ready to paste."""
    return edit.value is not None and bool(_OPEN.search(edit.value))


def merged_edits(first: tuple[Edit, ...], more: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Both, a later edit of the same flag or variable replacing the earlier."""
    names = {e.name for e in more if e.name}
    return tuple(e for e in first if not e.name or e.name not in names) + more
