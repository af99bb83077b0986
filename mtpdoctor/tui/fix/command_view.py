"""The command with the chosen edits in it: ready to paste, or as a diff in the form the person uses."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.report.command import diff, wrapped
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.shown import cleaner_of
from mtpdoctor.tui.styles import beside

_SIGNS = {"+": "$text-success", "-": "$text-error", "@": "$text-primary"}


class CommandView(VerticalScroll):
    """``as_diff`` tells which of the two is shown; at first the diff where the launch stands in a file."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__()
        self._wanted: bool | None = None
        self._session: Session | None = None

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, session: Session) -> None:
        self._session = session
        self._draw()

    @property
    def as_diff(self) -> bool:
        if self._wanted is not None:
            return self._wanted
        return self._session is not None and bool(self._session.chosen.diff) and in_a_file(self._session)

    def toggle_diff(self) -> None:
        self._wanted = not self.as_diff
        self._draw()

    def on_resize(self, _: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        session = self._session
        if session is None or not self.is_mounted:
            return
        width = max(self.scrollable_content_region.width, 20)
        self.query_one(Static).update(
            diff_content(session) if self.as_diff else command_content(session, width)
        )


def in_a_file(session: Session) -> bool:
    """The launch stands in a text of several lines: a script, a compose file, a manifest."""
    return session.base is not None and "\n" in session.base.text.strip()


def to_copy(session: Session, as_diff: bool) -> tuple[str, str] | None:
    """(text, what it is) of what ``c`` copies, unmasked: the patch where the diff of a file is shown, else the
    command to paste: the chosen one, or the one as it is. None where no command is known."""
    chosen = session.chosen
    if as_diff and chosen.diff and in_a_file(session):
        return chosen.diff, "the diff"
    document = chosen.document or (session.base if chosen.command is None else None)
    command = document.line if document is not None else chosen.command
    return (command, "the command") if command is not None else None


def command_content(session: Session, width: int) -> Content:
    """The chosen command, else the one as it is, broken for pasting; what is new in it is marked."""
    clean = cleaner_of(session)
    chosen = session.chosen
    base = session.base.line if session.base is not None else None
    command = chosen.command or base
    if command is None:
        return Content.styled("no launch command is known: neither given nor in the log", "$text-muted")
    changes = diff(base, chosen.command, chosen.edits) if chosen.command else []
    added = [clean.text(unit) for sign, unit in changes if sign == "+"]
    lines = []
    for line in wrapped(clean.text(command), width):
        content = Content(line)
        for unit in added:
            at = line.find(unit)
            if at >= 0:
                content = content.stylize("bold $text-success", at, at + len(unit))
        lines.append(content)
    names = {unit.split()[0].partition("=")[0] for sign, unit in changes if sign == "+"}
    gone = [u for sign, u in changes if sign == "-" and u.split()[0].partition("=")[0] not in names]
    if gone:
        lines += [Content(""), Content.styled(f"taken out: {clean.line(', '.join(gone))}", "$text-error")]
    return Content("\n").join(lines)


def diff_content(session: Session) -> Content:
    """What changes: flag by flag for a command of one line, else the unified diff of the file."""
    clean = cleaner_of(session)
    chosen, base = session.chosen, session.base
    if base is None or (chosen.document is None and chosen.command is None):
        return Content.styled("nothing is switched on: nothing changes", "$text-muted")
    if in_a_file(session) and chosen.diff:
        rows = [(row[:1], row) for row in clean.text(chosen.diff).splitlines()]
    else:
        pairs = diff(base.line, chosen.command, chosen.edits)
        rows = [(sign, f"{sign} {clean.line(unit)}") for sign, unit in pairs]
    if not rows:
        return Content.styled("nothing changes", "$text-muted")
    return Content("\n").join(
        Content.styled(row, _SIGNS.get(sign, "") if not row.startswith(("---", "+++")) else "bold")
        for sign, row in rows
    )
