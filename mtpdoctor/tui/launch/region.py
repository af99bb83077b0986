"""The Launch region as a whole."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside


class LaunchRegion(Vertical):
    """Shows a session's part; posts messages (messages.py), changes nothing itself."""

    DEFAULT_CSS = beside(__file__)

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, session: Session) -> None:
        """Show what this session holds."""
