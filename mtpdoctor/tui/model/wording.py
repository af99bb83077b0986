"""What the Model region says. No Textual here."""

from __future__ import annotations

from mtpdoctor.memory.types import MemorySum
from mtpdoctor.tui.session import Session


def page(session: Session, width: int, verbose: bool) -> str:
    """The model and its memory sum, with the styles of report/style.py."""
    parts = []
    if session.model is not None:
        from mtpdoctor.report.model_text import render_model

        parts.append(render_model(session.model, width=width, color=True, verbose=verbose).rstrip())
    memory = memory_of(session)
    if memory is not None:
        from mtpdoctor.report.memory_text import render_memory

        if session.chosen.memory is not None and session.chosen.edits:
            parts.append("With the edits that are switched on in Fix:")
        parts.append(render_memory(memory, width=width, color=True, verbose=verbose).rstrip())
    return "\n\n".join(parts)


def memory_of(session: Session) -> MemorySum | None:
    """The memory sum of the chosen command, else of the one as it is."""
    return session.chosen.memory or session.memory


def empty_words(session: Session) -> str:
    """What stands there while no model is known."""
    named = _named(session)
    if named is None:
        return (
            "No model is known yet.\n\nIt is read from the folder that the launch command names, or start the "
            "doctor with one:\n  mtpdoctor --model FOLDER"
        )
    return (
        f"{named}\n\nThis model's config.json is not on this machine, so nothing is known of its layers and its "
        "memory.\nGive its folder or a copy of its config.json:\n  mtpdoctor --model FOLDER"
    )


def _named(session: Session) -> str | None:
    """The model that the launch names."""
    from mtpdoctor.text import one_line

    document = session.base or session.given.document
    if document is None:
        return None
    named = document.command.value("model_path") or document.command.positionals[:1]
    return one_line(named[-1]) if named else None
