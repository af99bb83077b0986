"""The first screen as a whole."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from mtpdoctor.tui.session import Session


class StartRegion(VerticalScroll):
    """What there is to look at."""

    def compose(self) -> ComposeResult:
        yield Static("Open a log: mtpdoctor LOG", markup=False)

    def show(self, session: Session) -> None:
        """Show what this session holds."""

    def discover(self) -> None:
        """Look for logs."""
