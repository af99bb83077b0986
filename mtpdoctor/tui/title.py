"""The first line: what is looked at, how it stands, and what is being worked on."""

from __future__ import annotations

from pathlib import PurePath

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from mtpdoctor.report.clean import Cleaner
from mtpdoctor.report.stop_words import ended_word
from mtpdoctor.text import one_line
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.styles import beside

_STYLES = {"failed": "$text-error bold", "ready": "$text-success bold", "unfinished": "$text-warning bold"}
_CHECKED = {
    "reject": ("  WOULD NOT START", "$text-error bold"),
    "accept": ("  WOULD START", "$text-success bold"),
    "unknown": ("  NOT DECIDED", "$text-warning bold"),
}
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class TitleLine(Widget):
    """One line; what is at work stands at its right end."""

    DEFAULT_CSS = beside(__file__)
    session: reactive[Session | None] = reactive(None)
    busy: reactive[tuple[str, ...]] = reactive(())
    turn = reactive(0)

    def on_mount(self) -> None:
        self._timer = self.set_interval(1 / 8, self._spin, pause=True)

    def watch_busy(self, busy: tuple[str, ...]) -> None:
        if self.is_mounted:
            self._timer.resume() if busy else self._timer.pause()

    def _spin(self) -> None:
        self.turn += 1

    def render(self) -> Content:
        left = Content.assemble((" mtpdoctor", "bold"), *self._session_words())
        if not self.busy:
            return left.truncate(self.size.width, ellipsis=True)
        more = f" (and {len(self.busy) - 1} more)" if len(self.busy) > 1 else ""
        work = one_line(f"{self.busy[0]}{more}")
        right = Content.assemble(
            (_SPIN[self.turn % len(_SPIN)], "$text-accent"), (f" {work}, Esc ends it ", "dim")
        )
        right = right.truncate(max(self.size.width // 2, 20), ellipsis=True)
        room = self.size.width - right.cell_length
        left = left.truncate(max(room - 1, 1), ellipsis=True)
        return Content.assemble(left, " " * max(room - left.cell_length, 0), right)

    def _session_words(self) -> list[tuple[str, str] | str]:
        session = self.session
        if session is None:
            return []
        words: list[tuple[str, str] | str] = []
        if session.logs:
            more = f" and {len(session.logs) - 1} more" if len(session.logs) > 1 else ""
            words.append(one_line(f"  {PurePath(session.logs[0]).name}{more}"))
        if session.report is not None:
            report, clean = session.report, Cleaner(session.report)
            words.append("  ")
            words.append(
                (ended_word(report.ended) or report.outcome.upper(), _STYLES.get(report.outcome, "bold"))
            )
            if report.outcome != "empty":
                words.append(f" at {clean.line(report.stage)}")
            version = report.sglang_version or report.release_range
            if version:
                words.append((f"  SGLang {clean.line(version)}", "$text-muted"))
        elif session.check is not None and not session.logs:
            words.append(_CHECKED.get(session.check.verdict, session.check.verdict))
            if session.check.sglang_version:
                words.append((f"  SGLang {one_line(session.check.sglang_version)}", "$text-muted"))
        elif not session.logs:
            words.append(("  the doctor for SGLang servers that do not start", "$text-muted"))
        return words
