"""The command palette: every action of the application by its name, and those of the regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.widget import Widget

from mtpdoctor.tui.help import key_name
from mtpdoctor.tui.tabs import REGIONS
from mtpdoctor.tui.themes import THEMES


class DoctorCommands(Provider):
    """Offers what the keys do, under plain names."""

    async def discover(self) -> Hits:
        for name, help_text, run in self._commands():
            yield DiscoveryHit(name, run, help=help_text)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, help_text, run in self._commands():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run, help=help_text)

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        app: Any = self.app
        for number, (name, title) in enumerate(REGIONS, 1):
            yield f"Go to {title}", f"key {number}", partial(app.action_region, name)
        yield "Export the report as text", "key e", partial(app.action_export, "text")
        yield "Export the report as JSON", "key E", partial(app.action_export, "json")
        yield "Read the log and ask the host again", "key F5", app.action_read_again
        yield "Keys", "every key, key ?", app.action_help
        for name, theme in THEMES.items():
            yield (
                f"Theme: {name.replace('-', ' ')}",
                "key t turns through them",
                partial(self._theme, theme.name),
            )
        for region, title in REGIONS:
            classes = set()  # the rows of a page have the same keys
            for widget in app.query(f"#{region}, #{region} *"):
                if type(widget) not in classes:
                    classes.add(type(widget))
                    yield from self._of(region, title, widget)

    def _of(self, region: str, title: str, widget: Widget) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """The described keys of a region's own widgets."""
        for cls in type(widget).__mro__:
            if not cls.__module__.startswith("mtpdoctor"):
                continue
            for binding in Binding.make_bindings(cls.__dict__.get("BINDINGS", ())):
                if binding.description and not binding.system:
                    run = partial(self._act, region, widget, binding.action)
                    keys = ", ".join(key_name(key) for key in binding.key.split(","))
                    yield f"{title}: {binding.tooltip or binding.description}", f"key {keys}", run

    async def _act(self, region: str, widget: Widget, action: str) -> None:
        app: Any = self.app
        app.action_region(region)
        await app.run_action(action, widget)

    def _theme(self, name: str) -> None:
        self.app.theme = name
