"""A crash: the traceback goes into a file, one line to the person. The terminal is Textual's to put right."""

from __future__ import annotations

import traceback

from mtpdoctor import __version__
from mtpdoctor.errors import UserError
from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line, safe


def _inside(error: BaseException | None) -> BaseException | None:
    """What broke in a worker, in place of Textual's word that one did."""
    from textual.worker import WorkerFailed

    return error.error if isinstance(error, WorkerFailed) else error


def record_crash(error: BaseException | None) -> str:
    """Writes the traceback to the state folder; the line for the person, safe to print."""
    from mtpdoctor.tui.files import write_private

    error = _inside(error)
    said = one_line(f"{type(error).__name__}: {error}"[:200]) if error is not None else "unknown error"
    text = "".join(traceback.format_exception(error)) if error is not None else "no exception\n"
    try:
        path = write_private("crash.txt", mask_secrets(safe(f"mtpdoctor {__version__}\n{text}")))
    except UserError as unwritten:
        return f"mtpdoctor: the interactive doctor broke ({mask_secrets(said)}); {unwritten}"
    return (
        f"mtpdoctor: the interactive doctor broke ({mask_secrets(said)}); the details are in {path}. "
        "`mtpdoctor diagnose LOG` gives the same report."
    )
