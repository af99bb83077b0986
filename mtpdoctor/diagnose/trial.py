"""Trying edits on a launch command: what the command becomes, and whether it would start.

The command that is edited is the one a person gave, else the one the log shows (or lets be put together).
Building the new command takes milliseconds; checking it up to a second: callers that must stay responsive
show the first and run ``checked`` beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.records import dataclass

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.check import CheckReport
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.log.types import LogReading
    from mtpdoctor.memory.types import MemorySum


@dataclass(frozen=True, slots=True)
class Trial:
    """A command with edits in it. ``document`` None: it cannot be written or read; ``problem`` says why."""

    edits: tuple[Edit, ...]
    document: LaunchDocument | None
    problem: str | None = None
    diff: str | None = None  # unified, of the text in the form the person uses; None where nothing changes

    @property
    def command(self) -> str | None:
        """One paste-ready shell line; unmasked."""
        return command_line(self.document.command) if self.document is not None else None


def base_case(reading: LogReading | None, given: Given) -> Case | None:
    """The case whose command is edited; None where neither a person nor the log names a command."""
    if reading is not None and reading.attempt is not None:
        from mtpdoctor.diagnose.the_case import case_of

        case = case_of(reading, reading.attempt, given)[0]
    else:
        from mtpdoctor.case import build_case

        case = build_case(
            document=given.document,
            command_where=given.command_where,
            host=given.host,
            model=given.model,
            release=given.release,
        )
    return case if case.document is not None else None


def with_edits(base: LaunchDocument, edits: Sequence[Edit]) -> Trial:
    """``base`` with every edit, in order."""
    try:
        document = base.apply(edits)
    except UserError as error:
        return Trial(tuple(edits), None, str(error))
    return Trial(tuple(edits), document, None, base.diff(document, base.name.lstrip("/")) or None)


def with_text(base: LaunchDocument, text: str) -> Trial:
    """A command typed by hand in place of ``base``'s text. A text in another form than ``base``'s counts too."""
    if text == base.text:
        return Trial((), base)
    try:
        document = read_launch(text, name=base.name, form=base.form, table=base.table)
    except UserError as error:
        try:
            document = read_launch(text, table=base.table)
        except UserError:
            return Trial((), None, str(error))
    return Trial((), document, None, base.diff(document, base.name.lstrip("/")) or None)


def checked(document: LaunchDocument, case: Case, given: Given, knowledge: Knowledge) -> CheckReport:
    """Whether ``document`` in place of the case's command would start, by the release's flags and the rules."""
    from mtpdoctor.diagnose.check import check, check_case

    if case.reading is None:
        from mtpdoctor.records import replace

        return check(replace(given, document=document), knowledge)
    return check_case(case.with_document(document), given, knowledge)


def memory_of(document: LaunchDocument, case: Case, knowledge: Knowledge) -> MemorySum | None:
    """What ``document`` in place of the case's command takes of each GPU; None where nothing of it is known."""
    from mtpdoctor.diagnose.memory import sum_of, with_model_here
    from mtpdoctor.diagnose.proof import launch_facts

    if case.document is None or document.text != case.document.text:
        case = case.with_document(document)
    case = with_model_here(case)
    return sum_of(case, launch_facts(case, knowledge))


def switched(edits: Sequence[Edit], edit: Edit, on: bool) -> tuple[Edit, ...]:
    """``edits`` with one more, or one less. Of two edits of one flag, variable or setting only the later stays."""
    if not on:
        return tuple(e for e in edits if e != edit)
    return (*(e for e in edits if _target(e) != _target(edit)), edit)


def _target(edit: Edit) -> tuple[str, str]:
    """What an edit is about: a flag, a variable, or a setting of the container."""
    if edit.op in (EditOp.ENV, EditOp.UNSET):
        return "env", edit.name
    if edit.op in (EditOp.SET, EditOp.ADD, EditOp.REMOVE):
        return "flag", edit.name
    return "container", edit.op.value
