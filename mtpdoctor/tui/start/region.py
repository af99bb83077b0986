"""The first screen as a whole."""

from __future__ import annotations

import os
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from mtpdoctor.tui.messages import OpenContainer, OpenLog
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.shown import shown_line
from mtpdoctor.tui.start.found import Found, Places, find
from mtpdoctor.tui.start.suggest import PathSuggester
from mtpdoctor.tui.styles import beside
from mtpdoctor.tui.work import Work

_TITLES = {
    "run": "Launches that mtpdoctor ran",
    "here": "Logs in this folder",
    "process": "SGLang servers running now",
    "container": "Docker containers",
    "sample": "Sample logs, to see what it does",
}
_WELCOME = "Which log? Choose one below, or type its path."
_EMPTY = (
    "No log of SGLang was found on this machine: not in this folder, not from a run of mtpdoctor, no server "
    "is running, no container. Type the path of a log (several: the ranks or nodes of one launch), or start "
    "with one of the samples.\n\nFrom the shell:  mtpdoctor server.log   or   mtpdoctor -- python -m "
    "sglang.launch_server ..."
)


class StartRegion(Vertical):
    """Offers what there is; ``places`` says where to look (tests give their own)."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "path", "Type a path", key_display="/"),
        Binding("escape,down", "leave_path", "From the path back to the list", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: tuple[Found, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(_WELCOME, markup=False, id="welcome")
        yield Input(
            placeholder="path of a log; * and several are fine, → completes",
            compact=True,
            id="path",
            suggester=PathSuggester(),
        )
        yield OptionList(markup=False, id="found")

    def show(self, session: Session) -> None:
        """Nothing of the session stands here."""

    # -- looking around --------------------------------------------------------------------------------
    def discover(self, work: Work, places: Places) -> None:
        """Look for logs, beside the screen."""
        work.start("find", "looking for logs", lambda: find(places), self.offer)

    def offer(self, found: tuple[Found, ...]) -> None:
        """Offer what was found."""
        self._found = found
        only_samples = all(f.kind == "sample" for f in found)
        self.query_one("#welcome", Static).update(_EMPTY if only_samples else _WELCOME)
        options = self.query_one(OptionList)
        options.clear_options()
        kind = ""
        for i, each in enumerate(found):
            if each.kind != kind:
                if kind:
                    options.add_option(Option("", disabled=True))
                kind = each.kind
                count = sum(f.kind == kind for f in found)
                rest = f"  the newest {count} of {each.of:,}; / takes any path" if each.of else ""
                title = Content.assemble((_TITLES[kind], "bold $text-accent"), (rest, "$text-muted"))
                options.add_option(Option(title, disabled=True))
            first, second = (each.title, each.detail) if each.kind != "sample" else (each.detail, each.title)
            text = Content.assemble(f"  {shown_line(first)}  ", (shown_line(second), "$text-muted"))
            options.add_option(Option(text, id=str(i)))
        options.highlighted = next((n for n, o in enumerate(options.options) if not o.disabled), None)
        if self.display and self.app.focused in (None, self, self.query_one(Input)):
            options.focus()

    # -- opening ---------------------------------------------------------------------------------------
    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id is None:
            return
        found = self._found[int(event.option.id)]
        if found.paths:
            self.post_message(OpenLog(found.paths))
        elif found.kind == "container":
            self.post_message(OpenContainer(found.title))
        else:
            self.notify(found.why)

    def action_path(self) -> None:
        self.query_one(Input).focus()

    def action_leave_path(self) -> None:
        self.query_one(OptionList).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc is the application's where no path is being typed."""
        return action != "leave_path" or self.query_one(Input).has_focus

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        paths, missing = paths_of(event.value)
        if missing:
            self.notify(f"{missing}: {_why_not(missing)}", severity="error")
        elif paths:
            self.post_message(OpenLog(paths))


def _why_not(path: str) -> str:
    where = os.path.expanduser(path)
    return "is a folder: name the log file in it" if os.path.isdir(where) else "no such file"


def paths_of(text: str) -> tuple[tuple[str, ...], str | None]:
    """The files that a typed text names (quoted as in a shell, ``~`` and ``*`` as there), or the word that
    names none. Nothing is run."""
    import glob
    import shlex

    if os.path.isfile(os.path.expanduser(text.strip())):
        return (os.path.expanduser(text.strip()),), None
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    out: list[str] = []
    for word in words:
        path = os.path.expanduser(word)
        matches = [path] if os.path.isfile(path) else sorted(p for p in glob.glob(path) if os.path.isfile(p))
        if not matches:
            return (), word
        out += matches
    return tuple(dict.fromkeys(out)), None
