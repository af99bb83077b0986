"""The report as a file beside the person: plain text or JSON, as ``mtpdoctor diagnose`` prints it."""

from __future__ import annotations

import re
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.tui.session import Session


def export_report(session: Session, form: str, folder: Path | None = None) -> str:
    """Writes the report (``form``: "text" or "json") and says where. Never over another file."""
    if session.report is None:
        return "There is no report yet to export: open a log first."
    if form == "json":
        import json

        from mtpdoctor.report.json import to_json

        text, ending = json.dumps(to_json(session.report), ensure_ascii=True, indent=2) + "\n", ".json"
    else:
        from mtpdoctor.report.text import render

        text, ending = render(session.report, width=100, verbose=True), ".txt"
    try:
        return f"Report written to {_write(_stem(session), ending, text, folder)}"
    except UserError as error:
        return str(error)


def _stem(session: Session) -> str:
    name = Path(session.logs[0]).name if session.logs else "launch"
    # only what needs no care on any file system or in any shell
    return f"mtpdoctor-{re.sub(r'[^A-Za-z0-9_-]+', '_', name.split('.')[0]).strip('_')[:80] or 'launch'}"


def _write(stem: str, ending: str, text: str, folder: Path | None) -> Path:
    """Into ``folder`` (default: where the person is), else into the state folder. A new name each time."""
    where = folder or Path.cwd()
    for number in range(1, 1000):
        path = where / f"{stem}{'' if number == 1 else f'-{number}'}{ending}"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError:
            break
        return path
    from mtpdoctor.tui.files import write_private

    return write_private(f"{stem}{ending}", text)
