"""An application of one region: what it posts is kept, edits are made and checked at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Footer

from mtpdoctor.tui import messages
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.themes import THEMES
from mtpdoctor.tui.workers import Doctor


class OneRegion(App[None]):
    """``acting``: edits that are asked for are made; else only kept in ``posted``."""

    CSS = """
    Screen { background: $background; }
    * { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """

    def __init__(self, region: Widget, session: Session, *, theme: str = "dark", acting: bool = True) -> None:
        super().__init__()
        self.region, self.session = region, session
        self._named, self._acting = theme, acting
        self.posted: list[Message] = []
        self.doctor = Doctor()

    def compose(self) -> ComposeResult:
        yield self.region
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = THEMES[self._named].name
        self.show(self.session)
        first = next((w for w in self.region.query("*") if w.focusable and w.display), None)
        if first is not None:
            first.focus()

    def show(self, session: Session) -> None:
        self.session = session
        self.region.show(session)  # type: ignore[attr-defined]

    @on(messages.ChooseEdits)
    @on(messages.EditCommand)
    def _choose(self, message: messages.ChooseEdits | messages.EditCommand) -> None:
        self.posted.append(message)
        if not self._acting:
            return
        if isinstance(message, messages.EditCommand):
            chosen = self.doctor.with_text(self.session, message.command)
        else:
            chosen = self.doctor.with_edits(self.session, message.edits)
        self.show(replace(self.session, chosen=chosen))
        self.show(replace(self.session, chosen=self.doctor.check(self.session, chosen)))

    @on(messages.CopyText)
    @on(messages.LaunchCommand)
    @on(messages.LaunchEnded)
    @on(messages.OpenLog)
    @on(messages.ProbeAgain)
    @on(messages.ShowRule)
    def _keep(self, message: Message) -> None:
        self.posted.append(message)

    def of(self, kind: type) -> list:
        return [m for m in self.posted if isinstance(m, kind)]

    def text(self) -> str:
        """What stands on the screen."""
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)


SIZES = [(80, 22), (140, 38)]


def drive(
    app: OneRegion, steps: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 22)
) -> None:
    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())
