"""The list under the cursor: flags and values that may stand there."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Offset, Size
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mtpdoctor.sglang.completing import Item
from mtpdoctor.text import cut
from mtpdoctor.tui.styles import beside

ROWS = 8
WIDTH = 100  # columns, at most
NAMES = 40  # of them for names, where notes stand beside


class CompletionList(OptionList):
    """Never has the focus: the keys go to the text, and what moves here is sent on by the editor."""

    DEFAULT_CSS = beside(__file__)
    can_focus = False

    class Taken(Message):
        """This one is wanted."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._items: tuple[Item, ...] = ()

    class Looked(Message):
        """This one is looked at."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    def open(self, items: tuple[Item, ...], at: Offset, screen: Size) -> None:
        """Show ``items`` below the place ``at``, or above it where there is no room."""
        self._items = items
        wide = min(max(len(item.text) for item in items), NAMES)
        notes = max(len(item.note) for item in items)
        width = min(max(wide + notes + 5, 16), WIDTH, screen.width - 2)
        self.set_options([Option(_prompt(item, wide, width - 3)) for item in items])
        self.highlighted = 0
        rows = min(len(items), ROWS)
        below = at.y + 1 + rows <= screen.height - 1
        self.styles.width, self.styles.height = width, rows
        x = min(max(at.x - 1, 0), max(screen.width - width - 1, 0))
        self.styles.offset = (x, at.y + 1 if below else max(at.y - rows, 0))
        self.display = True

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if self.display and event.option_index < len(self._items):
            self.post_message(self.Looked(self._items[event.option_index]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Taken(self._items[event.option_index]))


def _prompt(item: Item, wide: int, columns: int) -> Content:
    name = f"{item.text:<{wide}}"
    note = cut(item.note, max(columns - wide - 2, 1))[0] if item.note and columns > wide + 2 else ""
    style = "$text-muted" if item.deprecated else ""
    return Content.assemble((cut(name, columns)[0], style), "  " if note else "", (note, "$text-muted"))
