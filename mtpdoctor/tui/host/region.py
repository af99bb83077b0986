"""The Host region: what is wrong first, then GPUs with live memory, SGLang and the rest of the machine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.host.live import with_figures
from mtpdoctor.host.types import HostFacts
from mtpdoctor.tui.messages import ProbeAgain
from mtpdoctor.tui.page import Page
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside

if TYPE_CHECKING:
    from mtpdoctor.diagnose.host_check import HostFinding
    from mtpdoctor.kb.knowledge import Knowledge

EVERY = 2.0  # seconds between two looks at the GPUs
WAITING = "This machine is being asked: GPUs, memory, SGLang, disks, ports ..."


class HostRegion(Vertical):
    """Posts ProbeAgain. Asks the GPUs for their memory while it is looked at."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "probe", "Probe again", tooltip="Ask the machine again"),
        Binding("v", "all", "All details", tooltip="Every process, port, folder and environment"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._known: tuple[HostFacts | None, Knowledge | None] = (None, None)
        self._host: HostFacts | None = None  # with the newest figures
        self._findings: tuple[HostFinding, ...] = ()
        self._verbose = False
        self._asking = False

    def compose(self) -> ComposeResult:
        yield Static(Content(WAITING), markup=False, id="host-empty")
        yield Page()

    def on_mount(self) -> None:
        self.set_interval(EVERY, self._ask)

    def show(self, session: Session) -> None:
        known = (session.host, session.knowledge)
        if any(a is not b for a, b in zip(known, self._known, strict=True)):
            self._known = known
            self._host, self._findings = session.host, _findings(session)
        self._draw()

    def _draw(self) -> None:
        host, page = self._host, self.query_one(Page)
        self.query_one("#host-empty").display = host is None
        page.display = host is not None
        if host is None:
            return
        from mtpdoctor.report.probe_text import render_host

        findings, verbose = self._findings, self._verbose
        page.show_page(lambda width: render_host(host, findings, width=width, color=True, verbose=verbose))

    # -- live figures ----------------------------------------------------------------------------------
    def _ask(self) -> None:
        """Ask the driver, off the screen's thread; a driver that hangs is asked once and no more."""
        host = self._host
        if self._asking or host is None or not host.local or not host.gpus or not self._looked_at():
            return
        self._asking = True
        threading.Thread(target=self._asked, name="gpu figures", daemon=True).start()

    def _asked(self) -> None:
        from mtpdoctor.host.nvml import gpus_here

        now = gpus_here()
        if self.is_running:
            self.app.call_later(self._refreshed, now)

    def _refreshed(self, now: HostFacts | None) -> None:
        self._asking = False
        if self._host is not None and self.is_mounted:
            self._host = with_figures(self._host, now)
            self._draw()

    def _looked_at(self) -> bool:
        return self.is_on_screen and self.app.screen is self.screen

    # -- what the person wants -------------------------------------------------------------------------
    def action_probe(self) -> None:
        self.post_message(ProbeAgain())

    def action_all(self) -> None:
        self._verbose = not self._verbose
        self._draw()


def _findings(session: Session) -> tuple[HostFinding, ...]:
    """What the rules say of the host; nothing as long as they are being read."""
    from mtpdoctor.diagnose.host_check import host_findings

    if session.host is None or session.knowledge is None:
        return ()
    return host_findings(session.host, session.knowledge, session.given.release)
