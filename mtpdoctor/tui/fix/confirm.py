"""The question before a launch: exactly what will be run. Nothing starts without a yes."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from mtpdoctor.report.command import wrapped
from mtpdoctor.tui.fix.plan_words import plan_words
from mtpdoctor.tui.fix.wording import verdict_of
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside


class LaunchConfirm(ModalScreen[bool]):
    """Answers True only for an explicit yes; "No" has the focus."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Launch"),
        Binding("n,escape", "no", "Do not", key_display="n"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, session: Session, command: str) -> None:
        super().__init__()
        self._session = session
        self._plan = plan_words(session, command)

    def compose(self) -> ComposeResult:
        possible = self._plan.problem is None
        with Vertical(id="confirm"):
            yield Static(
                "Launch this?" if possible else "This cannot be launched from here", id="confirm-title"
            )
            with VerticalScroll(id="confirm-body"):
                yield Static("", markup=False, id="confirm-text")
            with Horizontal(id="confirm-buttons"):
                yield Button("No (n)" if possible else "Close (n)", id="no")
                if possible:
                    yield Button("Yes, launch (y)", id="yes", variant="primary")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        plan = self._plan
        if plan.problem is not None:
            self.query_one("#confirm-text", Static).update(Content(plan.problem))
            return
        width = max(self.query_one("#confirm-body").scrollable_content_region.width, 20)
        verdict = verdict_of(self._session)
        parts: list[Content] = []
        if verdict.kind in ("bad", "open"):
            style = "bold $text-error" if verdict.kind == "bad" else "$text-warning"
            parts += [Content.styled(verdict.head, style), Content("")]
        parts += [Content(line) for line in wrapped(plan.command, width)]
        if plan.sets:
            parts += [Content(""), Content.styled("Environment, beside your own", "bold")]
            parts += [
                Content(f"  {e.removeprefix('-')} taken out" if e[0] == "-" else f"  {e}") for e in plan.sets
            ]
        parts += [
            Content(""),
            Content.styled(f"Runs in {plan.folder}, without a shell; its output is kept.", "$text-muted"),
            Content.styled("Ctrl+C ends it; quitting the doctor ends it too.", "$text-muted"),
        ]
        self.query_one("#confirm-text", Static).update(Content("\n").join(parts))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_yes(self) -> None:
        if self._plan.problem is None:
            self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)
