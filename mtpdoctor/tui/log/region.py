"""The Log region as a whole."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from mtpdoctor.tui.session import Session


class LogRegion(Vertical):
    """The log of the launch."""

    moved = False

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, session: Session) -> None:
        """Show what this session holds."""

    def open(self, paths: tuple[str, ...]) -> None:
        """Open the files and show their end."""

    def go_to(self, file: int, number: int) -> None:
        """Show a line."""
