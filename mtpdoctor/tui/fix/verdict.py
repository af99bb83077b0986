"""Whether the chosen command would start."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from mtpdoctor.tui.fix.wording import Verdict
from mtpdoctor.tui.styles import beside

_MARKS = {
    "good": ("\N{CHECK MARK}", "bold $text-success"),
    "bad": ("\N{MULTIPLICATION X}", "bold $text-error"),
    "open": ("?", "bold $text-warning"),
    "busy": ("\N{HORIZONTAL ELLIPSIS}", "$text-muted"),
    "none": (" ", "$text-muted"),
}


class VerdictLine(Static):
    """One line, and below it what is lost."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def set_verdict(self, verdict: Verdict, most: int = 3) -> None:
        mark, style = _MARKS[verdict.kind]
        lines = [Content.assemble((f"{mark} {verdict.head}", style))]
        lines += [Content.styled(f"  {point}", "$text-warning") for point in verdict.points[:most]]
        if len(verdict.points) > most:
            lines.append(Content.styled(f"  and {len(verdict.points) - most} more", "$text-muted"))
        self.update(Content("\n").join(lines))
