"""The case of a launch that a log shows: its command as the log has it, or put together from what the server printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.case import Case, build_case
from mtpdoctor.diagnose.contradictions import contradictions_of
from mtpdoctor.diagnose.dating import date_log, disagreement, in_words
from mtpdoctor.diagnose.exact import with_json_of_log
from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.log.command_line import launch_command
from mtpdoctor.log.shown import CONFIG_SIGN
from mtpdoctor.log.types import Attempt, LogReading
from mtpdoctor.release import release_or_none

if TYPE_CHECKING:
    from mtpdoctor.model.types import ModelFacts

REBUILT = "the log shows no launch command; fixed ones are put together from its server_args line"
CHOSEN = "; of these SGLang may have chosen by itself: {names}"


def case_of(reading: LogReading, attempt: Attempt, given: Given) -> tuple[Case, tuple[str, ...]]:
    """The case of an attempt, and notes on what was odd about its command."""
    notes: list[str] = []
    document, where, rebuilt = given.document, given.command_where, False
    typed: LaunchDocument | None = None
    lost: tuple[str, ...] = ()
    named = release_or_none(given.release or _named(attempt) or "")
    dating = None
    if document is None:
        shown = launch_command(attempt, reading)
        if shown is not None:
            text, line = shown
            try:
                document = with_json_of_log(read_launch(text), attempt)
                where = f"{reading.files[line.file].name}:{line.number}"
            except UserError as error:
                notes.append(f"the launch command on line {line.number} could not be read: {error}")
    if document is None:
        from mtpdoctor.diagnose.reconstruct import reconstructed_command, typed_words

        dating = date_log(reading, attempt) if named is None else None
        again = reconstructed_command(attempt, dating.releases[-1] if dating else named)
        if again is not None:
            document, where, rebuilt = read_launch(again.command), "server_args of the log", True
            typed, lost = read_launch(typed_words(again)), again.lost
            notes.append(REBUILT + (CHOSEN.format(names=", ".join(again.open)) if again.open else ""))
    case = build_case(
        reading=reading,
        attempt=attempt,
        document=document,
        command_where=where,
        reconstructed=rebuilt,
        typed=typed,
        lost=lost,
        host=given.host,
        model=given.model or _pasted(reading, attempt),
        release=given.release,
    )
    if case.release is None and (dating := dating or date_log(reading, attempt)) is not None:
        case = case.with_release(
            dating.releases[-1], "worked out", dating.text, certain=dating.release is not None
        )
        notes.append(in_words(dating))
    elif case.release is not None and (odd := disagreement(reading, attempt, case.release)) is not None:
        notes.append(odd)
    if not rebuilt:
        notes.extend(contradictions_of(case))
    return case, tuple(notes)


def _named(attempt: Attempt) -> str | None:
    """The release that the log names."""
    return next((str(o.value) for o in attempt.observations if o.name == "release"), None)


def _pasted(reading: LogReading, attempt: Attempt) -> ModelFacts | None:
    """The model by a config.json that stands in the log, where it is the one that was loaded."""
    if not reading.hits.count(CONFIG_SIGN):
        return None
    from mtpdoctor.log.shown.config_text import config_shown
    from mtpdoctor.model.config import model_of

    shown = config_shown(reading, attempt)
    if shown is None:
        return None
    raw, line = shown
    model = model_of(raw, f"{reading.files[line.file].name}:{line.number}")
    loaded = next((o.value for o in attempt.observations if o.name == "model.architecture"), None)
    return model if loaded in (None, model.architecture) else None
