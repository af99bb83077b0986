"""What was written: options of the launch command with their whole values, the message of a failure; taking an option out."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.launch.cut_values import words_behind
from mtpdoctor.launch.types import FlagUse
from mtpdoctor.log.types import Line, Traceback
from mtpdoctor.sglang.flags import flag_table


def written_values(case: Case) -> Iterator[tuple[FlagUse, str]]:
    """Options typed, with their whole value; the log's own form of it where a log shows what SGLang was given."""
    if case.document is None:
        return
    for use in case.document.command.flags:
        shown = case.facts.look(f"arg.{use.dest}")
        if isinstance(shown, (list, dict)) and use.values and use.values[0][:1] in ("{", "["):
            shown = json.dumps(shown, default=str)
        value = shown if isinstance(shown, str) and shown[:1] in ("{", "[") else " ".join(use.values)
        loose = case.document.command.positionals
        value = " ".join((value, *loose[: words_behind(value, loose)]))
        if value:
            yield use, value


def said_by(traceback: Traceback | None, line: Line) -> str:
    """The exception with its whole message; the line where there is none, or only a part of the traceback."""
    if traceback is None or not traceback.type:
        return line.text
    return f"{traceback.type}: {traceback.message}"


def left_out(use: FlagUse) -> Remedy:
    return Remedy(
        title=f"Leave {use.name} out",
        safety=Safety.RISKY,
        why="what failed is its value, and the launch does not need the option",
        edits=(EditTemplate("remove", use.name),),
        risk="what the option asked for is not done",
    )


def required(use: FlagUse, case: Case) -> bool:
    spec = flag_table(case.release).get(use.name)
    return spec is not None and spec.required
