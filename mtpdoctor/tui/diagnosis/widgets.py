"""The rows of the Diagnosis region: paragraphs, and rows that lead somewhere."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.report.evidence import mark_spans, shorten
from mtpdoctor.tui.diagnosis.parts import Choice, Go, Part, Place, Rule, Said
from mtpdoctor.tui.messages import ChooseDiagnosis, ShowLine, ShowRegion, ShowRule
from mtpdoctor.tui.styles import beside

_HEADS = {
    "failed": "$text-error bold",
    "success": "$text-success bold",
    "warning": "$text-warning bold",
    "finding": "$text-warning bold",
    "title": "bold",
    "bold": "bold",
    "safe": "$text-success bold",
    "risky": "$text-warning bold",
    "manual": "$text-primary bold",
    "muted": "$text-muted",
}
_TEXTS = {
    "failed": "$text-error bold",
    "success": "$text-success bold",
    "warning": "bold",
    "finding": "bold",
    "title": "bold",
    "bold": "bold",
    "muted": "$text-muted",
}
_ROWS = 3  # of a root line; other evidence has one


class Paragraph(Static):
    """Text that is only read."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, said: Said) -> None:
        head = Content.styled(f"{said.head}: ", _HEADS.get(said.kind, "bold")) if said.head else Content("")
        text = Content.styled(said.text, _TEXTS[said.kind]) if said.kind in _TEXTS else Content(said.text)
        super().__init__(
            Content.assemble(head, text), markup=False, classes=f"-{said.kind}" if said.kind else ""
        )
        self.set_class(said.close, "-close")


class Leads(Static, can_focus=True):
    """A row that leads somewhere: Enter or a click goes there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", "Go there", tooltip="Go where the row leads: a log line, a rule, the fix")
    ]

    def __init__(self, part: Place | Choice | Rule | Go) -> None:
        super().__init__("", markup=False)
        self.part = part
        self.set_class(isinstance(part, Place), "-place")
        self.set_class(isinstance(part, Place) and part.root, "-root")
        self.set_class(isinstance(part, Choice) and part.chosen, "-chosen")

    def render(self) -> Content:
        part = self.part
        if isinstance(part, Place):
            return self._place(part)
        if isinstance(part, Choice):
            return Content.assemble((" ● " if part.chosen else " ○ ", "$text-accent"), part.text)
        return Content.assemble((" → ", "$text-accent"), (part.text, "underline"))

    def _place(self, part: Place) -> Content:
        number = f"{part.number:>7} "
        label = f"{part.label}: " if part.label else ""
        room = max(self.size.width - len(number) - 3, 20)
        rows = _ROWS if part.root else 1
        text = shorten(" ".join(f"{label}{part.text}".split()), part.marks, room, rows)
        content = Content(text)
        for a, b in mark_spans(text, part.marks):
            content = content.stylize("bold underline", a, b)
        lines = content.wrap(room) if rows > 1 else [content]
        lead = Content.assemble(
            ("● " if part.root else "◆ ", "$text-error" if part.root else "$text-warning")
        )
        out = [Content.assemble(lead, (number, "$text-muted"), lines[0])]
        out += [Content.assemble(" " * (len(number) + 2), line) for line in lines[1:]]
        return Content("\n").join(out)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        if not isinstance(self.part, Place) or not self.part.root:
            return super().get_content_height(container, viewport, width)  # type: ignore[arg-type]
        room = max(width - 11, 20)
        text = shorten(" ".join(self.part.text.split()), self.part.marks, room, _ROWS)
        return max(len(Content(text).wrap(room)), 1)

    def action_go(self) -> None:
        part = self.part
        if isinstance(part, Place):
            self.post_message(ShowLine(part.file, part.number))
        elif isinstance(part, Choice):
            self.post_message(ChooseDiagnosis(part.index))
        elif isinstance(part, Rule):
            self.post_message(ShowRule(part.rule))
        else:
            self.post_message(ShowRegion(part.region))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_go()


def widget_of(part: Part) -> Static:
    return Paragraph(part) if isinstance(part, Said) else Leads(part)
