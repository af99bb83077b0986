"""The Diagnosis region as a whole: the page, and in a wide terminal the log beside it."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal

from mtpdoctor.tui.diagnosis.page import DiagnosisPage
from mtpdoctor.tui.diagnosis.parts import Place
from mtpdoctor.tui.diagnosis.preview import Preview
from mtpdoctor.tui.diagnosis.widgets import Leads
from mtpdoctor.tui.session import Session

BESIDE_FROM = 120  # columns from which the log is shown beside the page


class DiagnosisRegion(Horizontal):
    """The lines around the one that is looked at stand beside it, where there is room."""

    def compose(self) -> ComposeResult:
        yield DiagnosisPage(id="diagnosis-page")
        yield Preview()

    def show(self, session: Session) -> None:
        """Show what this session holds."""
        page, preview = self.query_one(DiagnosisPage), self.query_one(Preview)
        page.show(session)
        preview.show(session, page.first)
        self._fit()

    @on(events.Resize)
    def _fit(self) -> None:
        preview = self.query_one(Preview)
        preview.display = self.app.size.width >= BESIDE_FROM and preview.has_lines

    @on(events.DescendantFocus)
    def _look(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Leads) and isinstance(event.widget.part, Place):
            self.query_one(Preview).look_at(event.widget.part)
