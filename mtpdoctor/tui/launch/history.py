"""Every attempt of this session: what was changed, how far it came, why it ended."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.widgets import DataTable

from mtpdoctor.report.clean import Cleaner
from mtpdoctor.tui.launch.wording import history_row
from mtpdoctor.tui.styles import beside
from mtpdoctor.watch.types import AttemptRecord

_COLUMNS = ("#", "Changed", "Came to", "Took", "Ended because")


class AttemptHistory(DataTable[Text]):
    """Enter opens an attempt's log."""

    DEFAULT_CSS = beside(__file__)

    class Chosen(Message):
        """This attempt's log is wanted."""

        def __init__(self, record: AttemptRecord) -> None:
            super().__init__()
            self.record = record

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False)
        self._records: tuple[AttemptRecord, ...] = ()

    def on_mount(self) -> None:
        for name in _COLUMNS:
            self.add_column(Text(name))

    def set_records(self, records: tuple[AttemptRecord, ...], clean: Cleaner) -> None:
        if records == self._records:
            return
        self._records = records
        self.clear()
        for record in records:
            self.add_row(*(Text(clean.line(cell)) for cell in history_row(record)))
        self.move_cursor(row=len(records) - 1)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.cursor_row < len(self._records):
            self.post_message(self.Chosen(self._records[event.cursor_row]))
