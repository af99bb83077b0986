"""The newest lines of the launch's output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.widgets import RichLog

from mtpdoctor.text import safe
from mtpdoctor.tui.launch.wording import line_kind
from mtpdoctor.tui.styles import beside

LINES = 2000
AT_ONCE = 200  # lines written at one look: a flood must not hold up the keys
COLUMNS = 1000  # the server_args line is many thousands long; the Log region shows all of it


class OutputTail(RichLog):
    """Bounded; follows the end unless it was scrolled up. Text is never read as markup."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"output-tail--error", "output-tail--warning"}

    def __init__(self) -> None:
        super().__init__(max_lines=LINES, wrap=False, markup=False, highlight=False, min_width=20)

    def add(self, lines: Sequence[str]) -> None:
        styles = {
            kind: self.get_component_rich_style(f"output-tail--{kind}", partial=True)
            for kind in ("error", "warning")
        }
        follow = self.is_vertical_scroll_end
        if len(lines) > AT_ONCE:
            self.write(Text(f"... {len(lines) - AT_ONCE:,} lines more: its log has them all", style="dim"))
        for line in lines[-AT_ONCE:]:
            shown = safe(line[:COLUMNS])
            self.write(Text(shown, style=styles.get(line_kind(shown), ""), no_wrap=True), scroll_end=follow)
