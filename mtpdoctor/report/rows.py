"""Rows of a page made of regions: headings, labelled values, bars, sizes, ages. Text in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.style import MIN_WIDTH, Style
from mtpdoctor.text import cut, one_line, width, wrap

LABEL = 13  # columns of a label, its indent included
PROSE_WIDTH = 100


class Rows:
    """What regions are made of. No row is wider than the page; every text is made safe and masked.

    ``plain``: the terminal's encoding has no block characters.
    """

    def __init__(self, columns: int = 80, color: bool = False, plain: bool = False) -> None:
        self.width = max(columns, MIN_WIDTH)
        self.style = Style(color)
        self.plain = plain

    def heading(self, title: str, aside: str = "") -> str:
        """``Title ─── aside`` across the page, in bold."""
        line = "-" if self.plain else "─"
        aside = self.clean(aside)
        if aside and width(title) + width(aside) + 6 > self.width:
            aside = self.fit(aside, self.width - width(title) - 6)
        rest = self.width - width(title) - (width(aside) + 1 if aside else 0) - 1
        rule = self.style("dim", line * max(rest, 3))
        return f"{self.style('bold', title)} {rule}" + (f" {aside}" if aside else "")

    def value(self, label: str, text: str, style: str | None = None) -> Iterator[str]:
        """A labelled value, wrapped under itself."""
        rows = self.folded(text, self.width - LABEL) or [""]
        for i, row in enumerate(rows):
            shown = self.style(style, row) if style else row
            lead = f"  {label}".ljust(LABEL - 1) + " " if i == 0 else " " * LABEL
            yield (self.style("dim", lead) if i == 0 else lead) + shown

    def prose(self, text: str, indent: str = "  ", style: str | None = None) -> Iterator[str]:
        for row in wrap(self.clean(text), min(self.width, PROSE_WIDTH) - len(indent)):
            yield indent + (self.style(style, row) if style else row)

    def item(self, bullet: str, text: str, indent: str = "  ", style: str | None = None) -> Iterator[str]:
        lead = f"{indent}{bullet} "
        for i, row in enumerate(wrap(self.clean(text), min(self.width, PROSE_WIDTH) - width(lead))):
            yield (lead if i == 0 else " " * width(lead)) + (self.style(style, row) if style else row)

    def folded(self, text: str, columns: int) -> list[str]:
        return wrap(self.clean(text), max(columns, 10))

    def fit(self, text: str, columns: int) -> str:
        """``text`` on one line, its end replaced by ``...`` where it is too long."""
        text = self.clean(text)
        if width(text) <= columns:
            return text
        return cut(text, max(columns - 3, 1))[0] + "..."

    def bar(self, used: float, total: float, columns: int = 24) -> str:
        """How much of ``total`` is used: green, yellow from half on, red from nine tenths on."""
        share = min(max(used / total, 0.0), 1.0) if total > 0 else 0.0
        full = round(share * columns)
        if share > 0 and full == 0:
            full = 1
        mark, blank = ("#", ".") if self.plain else ("█", "░")
        colour = "red" if share >= 0.9 else "yellow" if share >= 0.5 else "green"
        return self.style(colour, mark * full) + self.style("dim", blank * (columns - full))

    @property
    def dot(self) -> str:
        return "-" if self.plain else "·"

    @property
    def times(self) -> str:
        return "x" if self.plain else "×"

    @staticmethod
    def clean(text: str) -> str:
        return mask_secrets(one_line(text))


def size(gib: float) -> str:
    """``9.8 GiB``, ``64 MiB``, ``1.5 TiB``."""
    if gib >= 1024 * 1.5:
        return f"{gib / 1024:.1f} TiB"
    if 0 < gib < 0.95:
        return f"{gib * 1024:.0f} MiB" if gib * 1024 >= 0.5 else "under 1 MiB"
    return f"{gib:.1f} GiB" if gib else "0 GiB"


def of(part: float, whole: float) -> str:
    """``9.8 of 139.8 GiB``."""
    one, both = size(part), size(whole)
    number, _, unit = one.rpartition(" ")
    return f"{number} of {both}" if both.endswith(" " + unit) or part == 0 else f"{one} of {both}"


def age(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3 h``, ``5 days``."""
    for most, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < most:
            return f"{max(seconds, 0) / unit:.0f} {name}"
    return f"{seconds / 86400:.0f} days"


def and_(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)
