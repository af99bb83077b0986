"""What the interactive doctor works on, as one frozen value. No Textual here.

The application holds one ``Session``; whatever changes makes a new one (``replace``) and hands it to every
region's ``show``. A region never changes it: it posts a message (messages.py), the application acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpdoctor.diagnose.check import CheckReport
    from mtpdoctor.diagnose.given import Given
    from mtpdoctor.diagnose.types import Report
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import Edit
    from mtpdoctor.log.types import LogReading
    from mtpdoctor.memory.types import MemorySum
    from mtpdoctor.model.types import ModelFacts
    from mtpdoctor.watch.types import AttemptRecord


@dataclass(frozen=True, slots=True)
class Chosen:
    """The edits that are switched on in the Fix region, and what came of them (diagnose/trial.py)."""

    edits: tuple[Edit, ...] = ()
    command: str | None = None  # the whole command with them, unmasked: shown masked
    check: CheckReport | None = None  # None while it is being checked
    diff: str | None = None
    document: LaunchDocument | None = None  # the same command in the form it was given
    problem: str | None = None  # why the edits cannot be written, or the text typed by hand not be read
    by_hand: bool = False  # typed by hand (EditCommand), not put together from edits
    memory: MemorySum | None = None  # of this command


@dataclass(frozen=True, slots=True)
class Session:
    """Everything at hand. None: not there (yet); the regions say so in words."""

    given: Given
    knowledge: Knowledge | None = None
    logs: tuple[str, ...] = ()  # paths
    reading: LogReading | None = None
    report: Report | None = None
    host: HostFacts | None = None
    model: ModelFacts | None = None
    memory: MemorySum | None = None  # of ``base``
    base: LaunchDocument | None = None  # the command that edits are made on: trial.base_case(...).document
    check: CheckReport | None = None  # of ``base`` as it is, where there is no log
    diagnosis: int = 0  # which of report.diagnoses is looked at
    chosen: Chosen = field(default_factory=Chosen)
    history: tuple[AttemptRecord, ...] = ()
    launched: tuple[tuple[str, LaunchDocument], ...] = ()  # logs of launches from here, and their commands
    rule: str | None = None  # the rule that Knowledge is to show
    errors: tuple[str, ...] = ()  # one line each: what could not be read or probed


def given_of(session: Session) -> Given:
    """What the core is given for this session. The log of a launch from here is that of the command that was
    launched, on this machine; a given command without a log is one for this machine, as ``mtpdoctor check``
    takes it."""
    from mtpdoctor.records import replace

    given = session.given
    launched = dict(session.launched).get(session.logs[0]) if len(session.logs) == 1 else None
    if launched is not None:
        given = replace(given, document=launched, command_where="the launch from here")
    elif session.logs or given.document is None or given.document.command.container:
        return given
    return replace(given, host=given.host or session.host, model=given.model or session.model)
