"""The stages of the launch with their times."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from mtpdoctor.tui.launch.wording import Row
from mtpdoctor.tui.styles import beside

_MARKS = {
    "done": ("✓", "$text-success"),
    "now": ("▸", "bold $text-primary"),
    "slow": ("▸", "bold $text-warning"),
    "to come": ("·", "$text-muted"),
    "died": ("✕", "bold $text-error"),
}


class StageList(Static):
    """One line a stage."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def set_rows(self, rows: Sequence[Row]) -> None:
        wide = max((len(r.name) for r in rows), default=0)
        lines = []
        for row in rows:
            mark, style = _MARKS[row.kind]
            name = (f"{row.name:<{wide}}", style if row.kind != "done" else "")
            extra = row.progress or row.usual
            over = "$text-warning" if row.kind == "slow" and not row.progress else "$text-muted"
            lines.append(Content.assemble((f"{mark} ", style), name, f" {row.time:>8}", (f"  {extra}", over)))
        self.update(Content("\n").join(lines))
