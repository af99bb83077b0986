"""A log that grows while it is looked at."""

from __future__ import annotations

from mtpdoctor.errors import UserError
from mtpdoctor.log.index import FileIndex
from mtpdoctor.tui.log.document import LogDocument
from mtpdoctor.tui.work import in_thread

LOOK_EVERY = 1.0  # seconds between two looks whether the log has grown
CHOSEN_AGAIN = 8 << 20  # bytes of a growing log up to which the lines of a rank are chosen again each time


class Growth:
    """What is known of it, in words (``said``)."""

    def __init__(self) -> None:
        self.said = ""

    async def look(self, document: LogDocument) -> FileIndex | None:
        """The index with what is new, None where nothing is."""
        try:
            return await in_thread(document.grown)
        except UserError as error:  # begun anew, or its disk is gone
            self.said = f"{error}: {error.hint}" if error.hint else str(error)
            return None

    def taken_in(self, *, followed: bool) -> None:
        self.said = f"it grows, {'followed' if followed else 'End follows'}; F5 diagnoses anew"
