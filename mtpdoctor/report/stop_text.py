"""A log that just stops, for the terminal: first that it may still be running, then what to look at if it does not go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.types import Stop
from mtpdoctor.report.evidence import excerpt
from mtpdoctor.report.stop_words import StopWords

if TYPE_CHECKING:
    from mtpdoctor.report.text import Page


def stop_rows(page: Page, stop: Stop) -> Iterator[str]:
    """The rows of an unfinished launch."""
    words = StopWords(stop, page.clean, page.files, page.stage(), page.report.ended)
    yield from page.titled(f"{words.word}{page.release()}", "yellow", f"{words.headline()}.")
    yield from page.prose(words.first(), indent="")
    yield ""
    if stop.last is not None:
        by = ", ".join(["last sign of life", *words.by(stop.last)])
        yield page.style("cyan", page.fitted(f"    {page.place(stop.last)}:{stop.last.number}  ({by})"))
        text = page.clean.line(stop.last.body or stop.last.text)
        yield from excerpt(
            stop.last.number,
            text,
            (),
            gutter=len(str(stop.last.number)),
            columns=page.width,
            rows=2,
            style=page.style,
        )
        yield ""
    for head, text in words.facts(sign=False):
        yield from page.titled(head, "bold", f"{text}.")
    causes = words.causes()
    if causes:
        yield ""
        yield page.style("bold", words.heading())
    for number, cause in enumerate(causes, 1):
        yield from page.item(f"{number}.", f"{cause.title} ({cause.id})")
        if cause.seen:
            yield from page.prose(f"Seen: {cause.seen}.", indent="     ")
        yield from page.prose(f"Look: {cause.tell}.", indent="     ")
        yield from page.prose(f"Then: {cause.do}.", indent="     ")
        if cause.open and page.verbose:
            yield from page.prose(f"Would decide: {cause.open}.", indent="     ")
        if page.verbose:
            for url in cause.references:
                yield from page.titled("See", "bold", url, indent="     ")
    if end := words.end():
        yield ""
        yield from page.prose(end, indent="")
    if causes:
        more = "" if page.verbose else "; --verbose shows what would decide, and reports"
        yield ""
        yield from page.titled("More", "bold", f"mtpdoctor explain {causes[0].id}{more}")
