"""What failed, as a page to read."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from mtpdoctor.tui.diagnosis.parts import Go, Part, Place, Said, parts_of, parts_of_check, parts_of_errors
from mtpdoctor.tui.diagnosis.widgets import Leads, widget_of
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside


class DiagnosisPage(VerticalScroll, can_focus=True):
    """One page to read from the top; its rows lead to log lines, rules and the fix."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "step(1)", "Next row that leads somewhere, or further down", show=False),
        Binding("up,k", "step(-1)", "Row before, or further up", show=False),
        Binding("enter", "go", "Go to the line", tooltip="Go to the line of the root cause"),
        Binding("left_square_bracket", "other(-1)", "Cause before", show=False),
        Binding("right_square_bracket", "other(1)", "Next cause", show=False),
        Binding("4", "app.region('fix')", "Fix", tooltip="Go to the fixed command"),
        Binding("e", "app.export('text')", "Export", tooltip="Export the report as text"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: tuple[Part, ...] = ()
        self._session: Session | None = None

    def show(self, session: Session) -> None:
        """Show what this session holds."""
        self._session = session
        parts = tuple(self._parts_of(session))
        if parts == self._parts:
            return
        self._parts = parts
        self.remove_children()
        self.mount_all([widget_of(part) for part in parts])
        self.scroll_home(animate=False)

    def _parts_of(self, session: Session) -> list[Part]:
        if session.report is not None:
            return list(parts_of(session.report, session.diagnosis))
        if session.logs and session.errors:
            return list(parts_of_errors(session.errors))
        if session.logs:
            return [Said("The log is being read.", kind="title"), Go("log", "Look into it meanwhile")]
        return list(parts_of_check(session.check, session.given.document is not None))

    @property
    def first(self) -> Place | None:
        """The line of the root cause; where there is none, the first line that is shown."""
        places = [p for p in self._parts if isinstance(p, Place)]
        return next((p for p in places if p.root), places[0] if places else None)

    def action_step(self, step: int) -> None:
        """To the next row that leads somewhere if it is near, else only further in the text."""
        rows = list(self.query(Leads))
        focused = self.app.focused
        if step < 0:
            rows.reverse()
        if isinstance(focused, Leads) and focused in rows:
            rows = rows[rows.index(focused) + 1 :]
        else:
            top, end = self.scroll_y, self.scroll_y + self.size.height
            inside = [r for r in rows if top <= r.virtual_region.y < end]
            rows = inside or rows if step > 0 else inside
        reach = self.size.height // 2
        for row in rows[:1]:
            at = row.virtual_region.y
            if self.scroll_y - reach <= at < self.scroll_y + self.size.height + reach:
                row.focus()
                return
        self.scroll_relative(y=3 * step, animate=False)

    def action_go(self) -> None:
        """The root line, where no row is chosen."""
        for row in self.query(Leads):
            if row.has_class("-root") or row.part == self._first():
                row.action_go()
                return

    def _first(self) -> Part | None:
        return next((p for p in self._parts if not isinstance(p, Said)), None)

    def action_other(self, step: int) -> None:
        from mtpdoctor.tui.messages import ChooseDiagnosis

        session = self._session
        if session is not None and session.report is not None and len(session.report.diagnoses) > 1:
            count = len(session.report.diagnoses)
            self.post_message(ChooseDiagnosis((session.diagnosis + step) % count))
