"""``?``: every key, of every region. Collected from the widgets themselves, so that none is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from mtpdoctor.tui.styles import beside
from mtpdoctor.tui.tabs import REGIONS

_NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":", "escape": "Esc", "enter": "Enter", "space": "Space",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home",
    "end": "End", "tab": "Tab", "shift+tab": "Shift+Tab", "left_square_bracket": "[",
    "right_square_bracket": "]", "comma": ",", "full_stop": ".", "plus": "+", "minus": "-", "delete": "Del",
    "less_than_sign": "<", "greater_than_sign": ">", "left_curly_bracket": "{", "right_curly_bracket": "}",
    "backslash": "\\", "asterisk": "*", "equals_sign": "=", "underscore": "_", "exclamation_mark": "!",
    "at": "@", "number_sign": "#", "backspace": "Backspace", "insert": "Ins",
}  # fmt: skip


def key_name(key: str) -> str:
    """As it stands on a keyboard: "ctrl+p" is "Ctrl+P", "question_mark" is "?"."""
    if key in _NAMES:
        return _NAMES[key]
    if "+" in key:
        head, _, last = key.rpartition("+")
        return "+".join(p.capitalize() for p in head.split("+")) + "+" + _NAMES.get(last, last.upper())
    return key.upper() if len(key) > 1 else key


def keys_of(widget: Widget) -> Iterator[tuple[str, str]]:
    """(keys, what they do) of a widget's class, those of Textual's own classes left out."""
    for cls in type(widget).__mro__:
        if not cls.__module__.startswith("mtpdoctor"):
            continue
        for binding in Binding.make_bindings(cls.__dict__.get("BINDINGS", ())):
            if binding.description:
                yield binding.key, binding.tooltip or binding.description


class HelpScreen(ModalScreen[None]):
    """All keys; those of the region that was left stand first."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "Close the help")]

    def __init__(self, region: str) -> None:
        super().__init__()
        self._region = region

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(self._content(), markup=False)

    def on_mount(self) -> None:
        self.query_one("#help").border_title = "Keys"
        self.query_one("#help").border_subtitle = "Esc closes"

    def _content(self) -> Content:
        below = self.app.screen_stack[0]
        parts: list[Content] = []
        here = [r for r in REGIONS if r[0] == self._region]
        for name, title in (*here, ("", "Everywhere"), *(r for r in REGIONS if r[0] != self._region)):
            rows = self._everywhere() if not name else self._of(below.query_one(f"#{name}"))
            if not rows:
                continue
            parts.append(Content.styled(f"{title}\n", "bold $text-accent"))
            for keys, does in rows.items():
                parts.append(Content.assemble("  ", (f"{keys:<16} ", "bold"), f"{does}\n"))
            parts.append(Content("\n"))
        parts.append(
            Content("The mouse works too: click a name, a line, a switch; the wheel scrolls.\n"
                    "Text is selected with Shift held, as the terminal does it.")
        )  # fmt: skip
        return Content("").join(parts)

    def _of(self, region: Widget) -> dict[str, str]:
        rows: dict[str, list[str]] = {}
        for widget in (region, *region.query("*")):
            for key, does in keys_of(widget):
                _note(rows, key, does)
        return {", ".join(keys): does for does, keys in rows.items()}

    def _everywhere(self) -> dict[str, str]:
        rows: dict[str, list[str]] = {f"1-{len(REGIONS)}": []}
        regions = {str(n) for n in range(1, len(REGIONS) + 1)}
        out = {f"1 to {len(REGIONS)}": "Go to a region by its number"}
        rows.clear()
        for binding in Binding.make_bindings(self.app.BINDINGS):
            if binding.key not in regions and binding.description:
                _note(rows, binding.key, binding.tooltip or binding.description)
        out.update({", ".join(keys): does for does, keys in rows.items()})
        out["Tab, Shift+Tab"] = "Next part, part before"
        out["Ctrl+P"] = "Find any command by its name"
        return out


def _note(rows: dict[str, list[str]], key: str, does: str) -> None:
    names = rows.setdefault(does, [])
    for part in key.split(","):
        name = key_name(part.strip())
        if name not in names:
            names.append(name)
