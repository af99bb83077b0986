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

_SHORT = {"diagnosis": "Diag", "knowledge": "Rules"}  # where a terminal is narrower than 80 columns


def tab_labels(width: int, active: str) -> list[tuple[str, str]]:
    """The (number, title) of each region, with the spaces around them, as they fit into ``width`` columns."""
    full = [(f" {n}", f" {title} ") for n, (_, title) in enumerate(REGIONS, 1)]
    short = [(f" {n}", f" {_SHORT.get(name, title)}") for n, (name, title) in enumerate(REGIONS, 1)]
    numbers = [
        (f" {n}", f" {_SHORT.get(name, title)} " if name == active else "")
        for n, (name, title) in enumerate(REGIONS, 1)
    ]
    for labels in (full, short):
        if sum(len(number + title) for number, title in labels) <= width:
            return labels
    return numbers


class RegionTabs(Widget):
    """``1 Open 2 Diagnosis ...``: 75 columns; shorter where there are fewer."""

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
        for (name, _), (number, title) in zip(REGIONS, tab_labels(self.size.width, self.active), strict=True):
            if name == self.active:
                style = self.get_visual_style("tabs--active")
                parts.append(Content(f"{number}{title}").stylize(style))
                continue
            parts.append(Content(number).stylize(self.get_visual_style("tabs--key")))
            parts.append(Content(title).stylize(self.get_visual_style("tabs--name")))
        return Content("").join(parts)

    def on_click(self, event: events.Click) -> None:
        at = 0
        for (name, _), (number, title) in zip(REGIONS, tab_labels(self.size.width, self.active), strict=True):
            at += len(number + title)
            if event.x < at:
                self.post_message(self.Chosen(name))
                return
