"""Which launch a command stands for, and what a session is after one. No Textual here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.render import command_line

if TYPE_CHECKING:
    from mtpdoctor.tui.session import Session
    from mtpdoctor.watch.types import AttemptRecord


def launched_document(session: Session, command: str) -> LaunchDocument:
    """The document to launch: the chosen one in its own form where ``command`` is its shell line, so that a
    container is not mistaken for a process of this machine; else the text as a shell command.

    Raises UserError when no server is started in it."""
    for document in (session.chosen.document, session.base):
        if document is not None and command in (document.line, command_line(document.command), document.text):
            return document
    return read_launch(command)


def after_launch(session: Session, record: AttemptRecord, document: LaunchDocument | None) -> Session:
    """The session with one more attempt. When its log is read, it is read as that of ``document``."""
    launched = session.launched
    if document is not None:
        launched = (*launched, (record.log, document))
    return replace(session, history=(*session.history, record), launched=launched)
