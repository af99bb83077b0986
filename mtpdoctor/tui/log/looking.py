"""Looking for a text in the log that is shown, beside the screen, and what is said of how it ended."""

from __future__ import annotations

from collections.abc import Callable

from mtpdoctor.tui.log.document import LogDocument
from mtpdoctor.tui.log.rows import Rows
from mtpdoctor.tui.log.search import Pattern, find_round
from mtpdoctor.tui.log.watched import watched


async def looked_for(
    document: LogDocument,
    pattern: Pattern,
    number: int,
    forward: bool,
    rows: Rows,
    tell: Callable[[str], None],
) -> tuple[int | None, str]:
    """The line found from line ``number`` on among those shown, None when there is none, and what to say.

    Raises UserError for a pattern that cannot be searched.
    """
    if not pattern.text:
        return None, ""
    found, around = await watched(
        f"looking for {pattern.text} (Esc ends it)",
        lambda share, stop: find_round(
            document, pattern, number, forward=forward, allowed=rows.holds, stop=stop, progress=share
        ),
        tell,
    )
    if found is None:
        return None, f"not found: {pattern.text}"
    return found, "found, from the other end on" if around else ""
