"""The Diagnosis region as a whole."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from mtpdoctor.tui.session import Session


class DiagnosisRegion(VerticalScroll):
    """The cause, its evidence and why."""

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, session: Session) -> None:
        """Show what this session holds."""
        if session.report is not None:
            from mtpdoctor.report.text import render

            self.query_one(Static).update(render(session.report, width=max(self.size.width - 2, 40)))
