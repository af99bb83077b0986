"""The Log region as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.worker import Worker

from mtpdoctor.errors import UserError
from mtpdoctor.log.index import FileIndex
from mtpdoctor.log.types import LogReading
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.tui.log.document import LogDocument
from mtpdoctor.tui.log.growth import CHOSEN_AGAIN, LOOK_EVERY, Growth
from mtpdoctor.tui.log.looking import looked_for
from mtpdoctor.tui.log.marks import Kind, Marks, marks_of, next_mark, ranks_of
from mtpdoctor.tui.log.prompt import Prompt
from mtpdoctor.tui.log.ranks import RankPicker
from mtpdoctor.tui.log.rows import Rows, all_rows, chosen_rows
from mtpdoctor.tui.log.search import Pattern
from mtpdoctor.tui.log.shown import masked
from mtpdoctor.tui.log.status import LogStatus
from mtpdoctor.tui.log.view import LogView
from mtpdoctor.tui.log.watched import watched
from mtpdoctor.tui.messages import CopyText
from mtpdoctor.tui.session import Session
from mtpdoctor.tui.work import in_thread

NO_LOG = "No log is open. o leads to the logs of this machine."
_PAUSE = 0.12  # seconds of quiet after a key before a search begins
_TOLD = (Kind.ROOT, Kind.EVIDENCE, Kind.FINDING, Kind.CONSEQUENCE, Kind.READY, Kind.ERROR)


class LogRegion(Vertical):
    """The log(s) of the launch: any size, its end first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash", "search", "Find", key_display="/", tooltip="Find text; Ctrl+R: a regular expression"
        ),
        Binding("n", "again(True)", "Next found", show=False),
        Binding("N", "again(False)", "Found before", show=False),
        Binding("colon,ctrl+g", "line", "Go to line", key_display=":", show=False),
        Binding("c", "cause", "Cause", tooltip="Go to the line of the root cause"),
        Binding("full_stop", "mark(1)", "Next mark (cause, evidence, error)", show=False),
        Binding("comma", "mark(-1)", "Mark before", show=False),
        Binding("right_square_bracket", "stage(1)", "Next stage", key_display="]", show=False),
        Binding("left_square_bracket", "stage(-1)", "Stage before", show=False),
        Binding("f", "fold", "Fold ranks", tooltip="Show once what several ranks say"),
        Binding("r", "rank", "Rank", tooltip="Show the lines of one rank"),
        Binding("l", "next_file", "Next file of the launch", show=False),
        Binding("y", "copy", "Copy the line", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.moved = False  # the person has moved: the view is theirs
        self._paths: tuple[str, ...] = ()
        self._documents: dict[int, LogDocument] = {}
        self._file = 0
        self._marks: Marks = {}
        self._rank: str | None = None
        self._fold = False
        self._said = ""
        self._growth = Growth()
        self._origin = 1
        self._reading: LogReading | None = None
        self._work: dict[str, Worker[Any]] = {}
        self._shown_of: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        view = LogView(id="lines")
        view.hint = NO_LOG
        yield view
        yield LogStatus("", markup=False)
        yield Prompt()

    def on_mount(self) -> None:
        self.set_interval(LOOK_EVERY, self._look_for_more)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def idle(self) -> bool:
        """Nothing is being opened, counted or looked for."""
        return all(worker.is_finished for worker in self._work.values())

    # -- data down -------------------------------------------------------------------------------------
    def show(self, session: Session) -> None:
        """Show what this session holds."""
        if session.logs != self._paths:
            self.open(session.logs)
        if not session.logs and session.errors:
            self.view.hint = session.errors[-1]
        seen = (session.report, session.reading, session.diagnosis)
        if seen == self._shown_of:
            return
        self._shown_of = seen
        self._reading = session.reading
        self._marks = marks_of(session.report, session.reading, session.diagnosis)
        self.view.clean = Cleaner(session.report).text if session.report is not None else masked
        self.view.ranks = ranks_of(session.reading)
        self._remark()

    def _remark(self) -> None:
        self.view.marks = self._marks.get(self._file, {})
        self.view.restyle()
        self._tell()

    def open(self, paths: tuple[str, ...], *, moved: bool = False) -> None:
        """Open the files and show the end of the first. ``moved``: the person is to stay in this region."""
        for worker in self._work.values():
            worker.cancel()
        for document in self._documents.values():
            document.close()
        self._documents.clear()
        self._paths, self._file, self._marks, self._rank, self._fold = paths, 0, {}, None, False
        self._shown_of = ()
        self._growth = Growth()
        self.moved = moved
        self.view.marks, self.view.ranks, self.view.pattern = {}, (), None
        self.view.show_document(None, Rows(0))
        self.view.hint = "" if paths else NO_LOG
        if paths:
            self._load(0)
        self._tell("")

    def _load(self, file: int, number: int | None = None) -> None:
        """Show a file, at a line or at its end."""
        self._file = file
        known = self._documents.get(file)
        if known is not None:
            self.view.show_document(known, all_rows(known))
            self._remark()
            if number is not None:
                self.view.go_number(number)
            self._choose_rows()
            return
        path = self._paths[file]

        async def load() -> None:
            self._tell(f"opening {Path(path).name}")
            try:
                document = await in_thread(lambda: LogDocument.open(path, file))
                self._documents[file] = document
                self.view.show_document(document, all_rows(document))
                self._remark()
                self._tell("")
                if not document.numbered:
                    await self._number(document)
            except UserError as error:
                self.view.hint = str(error)
                self.view.show_document(None, Rows(0))
                self._tell("")
                return
            if number is not None:
                self.view.go_number(number)
            self._choose_rows()

        self._do("load", load)

    async def _number(self, document: LogDocument) -> None:
        """Count the lines of a large file; the screen stays where it is."""
        shown = document.count
        index = await watched("counting lines", lambda tell, stop: document.build(tell, stop), self._tell)
        row = self.view.cursor
        document.index = index
        rows = all_rows(document)
        self.view.show_rows(rows, max(len(rows) - shown + row + 1, 1))
        self._remark()

    # -- growing ---------------------------------------------------------------------------------------
    def _look_for_more(self) -> None:
        """Whoever looks at the end of a log that grows goes along with it."""
        document = self._documents.get(self._file)
        if not self.display or not self.idle or document is None or not document.numbered:
            return

        async def look() -> None:
            said, index = self._growth.said, await self._growth.look(document)
            if index is not None:
                self._take_in(document, index)
            if index is not None or said != self._growth.said:
                self._tell()

        self._do("more", look)

    def _take_in(self, document: LogDocument, index: FileIndex) -> None:
        at_end = self.view.at_end
        document.index = index
        if self._rank is None and not self._fold:
            self.view.show_more(all_rows(document))
        elif document.size <= CHOSEN_AGAIN:
            self._choose_rows()
        self._growth.taken_in(followed=at_end)

    def go_to(self, file: int, number: int) -> None:
        """Show a line: ``file`` counts from 0, ``number`` from 1."""
        self.moved = True
        document = self._documents.get(file)
        if not 0 <= file < len(self._paths):
            return
        if file != self._file or document is None or not document.numbered:
            self._load(file, number)
            return
        if not self.view.rows.holds(number):
            self._rank, self._fold = None, False
            self.view.show_rows(all_rows(document), number)
        self.view.go_number(number)
        self._tell("")

    # -- saying ----------------------------------------------------------------------------------------
    def _tell(self, said: str | None = None) -> None:
        if said is not None:
            self._said = said
        for status in self.query(LogStatus):
            status.tell(
                self.view,
                file=self._file,
                files=len(self._paths),
                rank=self._rank,
                fold=self._fold,
                said=self._said or self._growth.said,
            )

    @on(LogView.Moved)
    def _moved(self) -> None:
        self._tell()

    def on_key(self) -> None:
        self.moved = True

    def _do(self, kind: str, job: Callable[[], Any]) -> None:
        """One job of a kind at a time; Esc ends it."""
        old = self._work.get(kind)
        if old is not None:
            old.cancel()
        self._work[kind] = self.run_worker(job, exit_on_error=True)

    def end_work(self) -> None:
        """End a search or a choice of lines that is under way; lines that are being counted are needed."""
        for kind in ("find", "rows"):
            worker = self._work.get(kind)
            if worker is not None and not worker.is_finished:
                worker.cancel()
                self._tell("ended")

    # -- searching -------------------------------------------------------------------------------------
    def action_search(self) -> None:
        self._origin = self.view.number
        self.query_one(Prompt).ask("search")

    def action_line(self) -> None:
        self.query_one(Prompt).ask("line")

    @on(Prompt.Typed)
    def _typed(self, message: Prompt.Typed) -> None:
        self._find(message.pattern, self._origin, True, after=_PAUSE)

    @on(Prompt.Done)
    def _done(self, message: Prompt.Done) -> None:
        self.view.focus()
        if not message.pattern.text:
            self.view.pattern = None
            self.view.restyle()
            self._tell("")

    @on(Prompt.Left)
    def _left(self) -> None:
        self.view.focus()
        self.end_work()
        self.view.pattern = None
        self.view.restyle()
        self._tell("")

    @on(Prompt.Number)
    def _line(self, message: Prompt.Number) -> None:
        self.view.focus()
        document = self._documents.get(self._file)
        if document is not None:
            self.go_to(self._file, max(1, min(message.number, document.count)))

    def action_again(self, forward: bool) -> None:
        pattern = self.view.pattern
        if pattern is None:
            self.action_search()
            return
        self._find(pattern, self.view.number + (1 if forward else -1), forward)

    def _find(self, pattern: Pattern, number: int, forward: bool, after: float = 0) -> None:
        document = self._documents.get(self._file)
        if document is None or not document.numbered:
            self._tell("lines are still being counted")
            return
        rows = self.view.rows

        async def look() -> None:
            await asyncio.sleep(after)
            try:
                self.view.pattern = pattern if pattern.text else None
                self.view.restyle()
                found, said = await looked_for(document, pattern, number, forward, rows, self._tell)
            except UserError as error:
                found, said = None, str(error)
            if found is not None:
                self.view.go_number(found)
            self._tell(said)

        self._do("find", look)

    # -- jumping ---------------------------------------------------------------------------------------
    def action_cause(self) -> None:
        for file, marks in self._marks.items():
            for number, mark in marks.items():
                if mark.kind is Kind.ROOT:
                    self.go_to(file, number)
                    return
        self._tell("no cause is known in this log")

    def action_mark(self, step: int) -> None:
        self._jump(step, _TOLD, "no further mark")

    def action_stage(self, step: int) -> None:
        self._jump(step, (Kind.STAGE, Kind.READY), "no further stage")

    def _jump(self, step: int, kinds: tuple[Kind, ...], otherwise: str) -> None:
        number = next_mark(self.view.marks, self.view.number, step, kinds)
        if number is not None:
            self.go_to(self._file, number)
        else:
            self._tell(otherwise)

    # -- what is hidden --------------------------------------------------------------------------------
    def action_fold(self) -> None:
        if not self.view.ranks and not self._fold:
            self._tell("no ranks are named in this log")
            return
        self._fold = not self._fold
        self._choose_rows()

    def action_rank(self) -> None:
        if not self.view.ranks:
            self._tell("no ranks are named in this log")
            return
        self.app.push_screen(RankPicker(self.view.ranks, self._rank), self._rank_chosen)

    def _rank_chosen(self, rank: str | None) -> None:
        if rank is not None:
            self._rank = rank or None
            self._choose_rows()

    def _choose_rows(self) -> None:
        document = self._documents.get(self._file)
        if document is None or not document.numbered:
            return
        rank, fold, keep = self._rank, self._fold, frozenset(self._marks.get(self._file, {}))
        if rank is None and not fold:
            if self.view.rows.numbers is not None:
                self.view.show_rows(all_rows(document), self.view.number)
            self._tell("")
            return

        async def choose() -> None:
            at_end = self.view.at_end
            rows = await watched(
                "choosing lines (Esc ends it)",
                lambda tell, stop: chosen_rows(
                    document, rank=rank, fold=fold, keep=keep, stop=stop, progress=tell
                ),
                self._tell,
            )
            self.view.show_rows(rows, document.count if at_end else self.view.number)
            hidden = document.count - len(rows)
            self._tell(f"{hidden:,} line{'' if hidden == 1 else 's'} hidden")

        self._do("rows", choose)

    def action_next_file(self) -> None:
        if len(self._paths) > 1:
            self._load((self._file + 1) % len(self._paths))
        else:
            self._tell("the launch has one log file")

    def action_copy(self) -> None:
        if self.view.document is not None and len(self.view.rows):
            self.post_message(CopyText(self.view.line(self.view.number).text, "The line"))
