"""A command that is being typed, tried off the screen's thread. No Textual here."""

from __future__ import annotations

from mtpdoctor.diagnose.trial import base_case, checked, with_text
from mtpdoctor.errors import UserError
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.records import replace
from mtpdoctor.tui.fix.wording import Verdict, check_verdict
from mtpdoctor.tui.session import Session, given_of


class Trying:
    """The checks of one session's command. Safe to be used from one thread at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def verdict(self, text: str) -> Verdict:
        """What is to be said of ``text`` as the launch command. Takes up to a second."""
        session = self._session
        if session.base is None:
            return Verdict("none", "There is no launch command that this would take the place of.")
        trial = with_text(session.base, text)
        if trial.document is None:
            return Verdict("bad", f"Cannot be read: {trial.problem}")
        given = given_of(session)
        if session.reading is None and given.document is None:
            given = replace(given, document=session.base)
        case = base_case(session.reading, given)
        if case is None:
            return Verdict("none", "It can be read; nothing more is known.")
        try:
            knowledge = session.knowledge if session.knowledge is not None else load_knowledge()
        except UserError as error:
            return Verdict("none", f"It can be read, but the rules cannot: {error}".partition("\n")[0])
        return check_verdict(checked(trial.document, case, given, knowledge))
