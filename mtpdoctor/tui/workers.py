"""What the application has done for it: probing, reading, diagnosing, checking. No Textual here.

Each method blocks and is run off the screen's thread; it takes a ``Session`` and gives a new value back.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mtpdoctor.tui.session import Chosen, Session, given_of

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.trial import Trial
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import Edit
    from mtpdoctor.model.types import ModelFacts


class Doctor:
    """The same core as the command line's."""

    def knowledge(self) -> Knowledge:
        return _knowledge()

    def probe(self, session: Session) -> HostFacts | None:
        """This machine; the disk of the model too, where it is known."""
        from mtpdoctor.host.probe import Wanted, probe_host

        model = session.model.path if session.model is not None else None
        return probe_host(Wanted(model=model))

    def diagnose(self, session: Session) -> Session:
        """Reads ``session.logs``. Raises UserError when one cannot be read."""
        from mtpdoctor.diagnose.engine import diagnose
        from mtpdoctor.diagnose.trial import base_case, memory_of
        from mtpdoctor.log.reading import read_logs

        knowledge = self.knowledge()
        reading = read_logs(session.logs, knowledge.literals)
        given = given_of(session)
        report = diagnose(reading, knowledge, given)
        case = base_case(reading, given)
        document = case.document if case is not None else None
        return replace(
            session,
            knowledge=knowledge,
            reading=reading,
            report=report,
            base=document,
            model=session.given.model or _model_of(document),
            memory=memory_of(document, case, knowledge)
            if case is not None and document is not None
            else None,
        )

    def with_edits(self, session: Session, edits: tuple[Edit, ...]) -> Chosen:
        """The command with edits: milliseconds, so that it can be done on every key."""
        from mtpdoctor.diagnose.trial import with_edits

        if session.base is None:
            return Chosen(edits, problem="there is no launch command to edit: neither given nor in the log")
        return _chosen(with_edits(session.base, edits))

    def with_text(self, session: Session, text: str) -> Chosen:
        """A command typed by hand."""
        from mtpdoctor.diagnose.trial import with_text

        if session.base is None:
            return Chosen(problem="there is no launch command to edit: neither given nor in the log")
        return replace(_chosen(with_text(session.base, text)), command=text, by_hand=True)

    def check(self, session: Session, chosen: Chosen) -> Chosen:
        """``chosen`` with the check of its command."""
        from mtpdoctor.diagnose.trial import checked, memory_of

        case = self._case(session)
        if case is None or chosen.document is None:
            return chosen
        found = checked(chosen.document, case, given_of(session), self.knowledge())
        return replace(chosen, check=found, memory=memory_of(chosen.document, case, self.knowledge()))

    def check_base(self, session: Session) -> Session:
        """Where there is no log: the given command, and whether it would start."""
        from mtpdoctor.diagnose.trial import checked, memory_of

        given = given_of(session)
        model = given.model or _model_of(given.document)
        session = replace(session, knowledge=self.knowledge(), base=given.document, model=model)
        case = self._case(session)
        if case is None or case.document is None:
            return session
        return replace(
            session,
            check=checked(case.document, case, given, self.knowledge()),
            memory=memory_of(case.document, case, self.knowledge()),
        )

    def _case(self, session: Session) -> Case | None:
        from mtpdoctor.diagnose.trial import base_case

        return base_case(session.reading, given_of(session))


def _chosen(trial: Trial) -> Chosen:
    return Chosen(
        edits=trial.edits,
        command=trial.command,
        diff=trial.diff,
        document=trial.document,
        problem=trial.problem,
    )


def _model_of(document: LaunchDocument | None) -> ModelFacts | None:
    """Facts of the model that the command names, where its config.json is on this machine."""
    from mtpdoctor.errors import UserError
    from mtpdoctor.model.config import read_model
    from mtpdoctor.model.locate import local_model

    if document is None:
        return None
    command = document.command
    named = command.value("model_path") or command.positionals[:1]
    folder = local_model(named[-1]) if named else None
    try:
        return read_model(folder) if folder is not None else None
    except UserError:
        return None  # the log or the check says what is wrong with it


@lru_cache(maxsize=1)
def _knowledge() -> Knowledge:
    from mtpdoctor.kb.load import load_knowledge

    return load_knowledge()
