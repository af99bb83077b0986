"""An option that the command has more than once, and once without its value: ``--port --port 30000``."""

from __future__ import annotations

import shlex

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.sglang.flags import flag_table


def bare_flag_remedies(match: Match, case: Case) -> list[Remedy]:
    """The option once, with the value that stands behind one of its places. Captures: ``flag``."""
    found = _twice(match, case)
    if found is None:
        return []
    name, value = found
    return [
        Remedy(
            title=f"Give {name} once, {name} {value}",
            safety=Safety.SAFE,
            why=f"the command names it twice, and only one of them has its value; with that one left, {value} is what the server gets",
            edits=(EditTemplate("set", name, value),),
        )
    ]


def bare_flag_said(match: Match, case: Case) -> str:
    found = _twice(match, case)
    if found is None:
        return ""
    return f"The command has {found[0]} twice: once bare, and once with {found[1]}."


def _twice(match: Match, case: Case) -> tuple[str, str] | None:
    """The option and the one value that is written for it, where another of its places has none."""
    named = match.captures.get("flag", "")
    if case.document is None or not named:
        return None
    spec = flag_table(case.release).resolve(named) or flag_table(None).resolve(named)
    uses = [
        use
        for use in case.document.command.flags
        if use.name == named or (spec is not None and use.dest == spec.dest)
    ]
    values = {use.values for use in uses if use.values}
    if len(uses) < 2 or len(values) != 1 or all(use.values for use in uses):
        return None
    return named, shlex.join(next(iter(values)))
