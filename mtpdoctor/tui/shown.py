"""Text on its way to the screen: safe, secrets masked. No Textual here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.text import one_line, safe

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Report
    from mtpdoctor.tui.session import Session


def shown_text(text: str) -> str:
    """Text from anywhere (a log, the name of a file or a process), safe for a terminal, secrets masked."""
    return mask_secrets(safe(text))


def shown_line(text: str) -> str:
    """As ``shown_text``, on one line."""
    return mask_secrets(one_line(text))


def cleaner_of(session: Session) -> Cleaner:
    """The cleaner of a session's texts: a key that the command or the report names is masked everywhere."""
    return Cleaner(session.report or _bare(session))


def _bare(session: Session) -> Report:
    """A report that names the command only, for a session without a log."""
    from mtpdoctor.diagnose.types import Report

    document = session.base or session.given.document
    command = document.text if document is not None else None
    return Report("empty", "env", None, None, command, (), (), 0, ())
