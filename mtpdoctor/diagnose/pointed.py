"""A cause that points at the message ("the message names the setting in the way") is followed by that message. Pure."""

from __future__ import annotations

from mtpdoctor.log.tracelines import exception_of
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

LONGEST = 300  # characters of a message that are shown
_POINTS = lazy(r"\b[Mm]essage (?:names|says|lists)\b(?! none)")


def as_it_says(cause: str, root: Line) -> str:
    """What to add to ``cause``; "" where it says itself what is wrong."""
    if not _POINTS.search(cause):
        return ""
    body = root.body.strip()
    found = exception_of(body)
    said = " ".join((found[1] if found is not None and found[1] else body).split())
    if len(said) > LONGEST:
        said = f"{said[:LONGEST].rsplit(' ', 1)[0]} ..."
    return f' Here it says: "{said.rstrip(".")}".'
