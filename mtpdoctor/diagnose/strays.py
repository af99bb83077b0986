"""Words that belong to no option: most often ``true`` or ``false`` behind a switch, which takes no value."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit, EditOp, FlagUse
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.other_parsers import starts_diffusion


def switches_with_values(document: LaunchDocument, release: Release | None) -> Iterator[FlagUse]:
    """Switches of the command behind which a truth value was written."""
    if starts_diffusion(document.command):
        return  # its switches take a truth value
    table = flag_table(release)
    for use in document.command.flags:
        spec = table.resolve(use.name)
        if spec is not None and spec.arity == "switch" and use.values:
            yield use


def without_value(use: FlagUse) -> Edit:
    """``--switch true`` without its word; ``--switch false`` not at all."""
    wanted = use.values[0].lower() == "true"
    return Edit(EditOp.SET, use.name, "") if wanted else Edit(EditOp.REMOVE, use.name)


def without_strays(text: str, case: Case) -> list[Remedy]:
    """Remedies for words (``text``) that the parser refused though no option stands before them."""
    assert case.document is not None
    words = text.split()
    found = [use for use in switches_with_values(case.document, case.release) if use.values[0] in words]
    if not found:
        return []
    shown = ", ".join(f"{use.name} {use.values[0]}" for use in found)
    edits = [without_value(use) for use in found]
    return [
        Remedy(
            title=f"Write a switch without a value: {shown}",
            safety=Safety.SAFE,
            why="a switch is on where it stands and off where it does not; the parser takes no word behind it",
            edits=tuple(EditTemplate(e.op.value, e.name, e.value) for e in edits),
        )
    ]
