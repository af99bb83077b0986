"""Options that stand in the file of ``--config`` and not in the command."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.launch.types import Edit, EditOp, LaunchCommand


def only_in_file(edits: Sequence[Edit], command: LaunchCommand) -> tuple[str, tuple[str, ...]] | None:
    """The file of ``--config``, and the options taken out by ``edits`` that are not in the command: no command line
    can take out what the file holds. None where the command names no such file or holds all of them."""
    file = command.value("config")
    if not file:
        return None
    typed = {use.name for use in command.flags} | {use.dest for use in command.flags}
    names = tuple(
        e.name
        for e in edits
        if e.op is EditOp.REMOVE and e.name not in typed and e.name.lstrip("-").replace("-", "_") not in typed
    )
    return (file[0], names) if names else None
