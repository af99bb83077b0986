"""The line under the log: where the cursor stands, and what is hidden."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from mtpdoctor.text import one_line
from mtpdoctor.tui.log.marks import WORDS, Kind, stage_at
from mtpdoctor.tui.log.view import LogView
from mtpdoctor.tui.styles import beside


class LogStatus(Static):
    """Told by the region whenever something changed."""

    DEFAULT_CSS = beside(__file__)

    def tell(self, view: LogView, *, file: int, files: int, rank: str | None, fold: bool, said: str) -> None:
        document = view.document
        if document is None:
            self.update(Content(one_line(said)), layout=False)
            return
        parts: list[Content] = []
        if files > 1:
            parts.append(Content(f"file {file + 1} of {files}: {one_line(document.name)}"))
        if document.numbered:
            parts.append(Content(f"line {view.number:,} of {document.count:,}"))
        else:
            parts.append(Content("the end; counting lines"))
        mark = view.marks.get(view.number)
        stage = stage_at(view.marks, view.number) if document.numbered else None
        if stage:
            parts.append(Content(f"at {stage}"))
        if mark is not None and mark.kind is not Kind.STAGE:
            parts.append(Content.styled(WORDS[mark.kind], "bold"))
        if rank:
            parts.append(Content.styled(f"only {one_line(rank)}", "$text-accent"))
        if fold:
            parts.append(Content.styled("ranks folded", "$text-accent"))
        if said:
            parts.append(Content.styled(one_line(said), "$text-accent"))
        text = Content("  ·  ").join(parts)
        self.update(Content.assemble(" ", text), layout=False)
