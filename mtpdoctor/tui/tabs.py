"""The row that names the regions: one line, by key or mouse."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from mtpdoctor.tui.styles import beside

REGIONS = (
    ("start", "Open"),
    ("diagnosis", "Diagnosis"),
    ("log", "Log"),
    ("fix", "Fix"),
    ("launch", "Launch"),
    ("host", "Host"),
    ("model", "Model"),
    ("knowledge", "Knowledge"),
)


class RegionTabs(Widget):
    """``1 Open 2 Diagnosis ...``: 75 columns, so that it fits the smallest terminal."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--key", "tabs--name", "tabs--active"}
    active = reactive("start")

    class Chosen(Message):
        """A region was clicked: its name."""

        def __init__(self, region: str) -> None:
            super().__init__()
            self.region = region

    def render(self) -> Content:
        parts: list[Content] = []
        for number, (name, title) in enumerate(REGIONS, 1):
            if name == self.active:
                style = self.get_visual_style("tabs--active")
                parts.append(Content(f" {number} {title} ").stylize(style))
                continue
            parts.append(Content(f" {number}").stylize(self.get_visual_style("tabs--key")))
            parts.append(Content(f" {title} ").stylize(self.get_visual_style("tabs--name")))
        return Content("").join(parts)

    def on_click(self, event: events.Click) -> None:
        at = 0
        for number, (name, title) in enumerate(REGIONS, 1):
            at += len(f" {number} {title} ")
            if event.x < at:
                self.post_message(self.Chosen(name))
                return
