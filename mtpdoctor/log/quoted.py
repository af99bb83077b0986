"""Lines in which a server repeats what its users wrote: their words tell nothing about the server."""

from __future__ import annotations

from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

# SGLang's request log (--log-requests), 0.4.6 to 0.5.23: as text, and as JSON from 0.5.9 on
_REQUEST = lazy(r'\s*(?:(?:Receive(?: OpenAI)?|Finish): obj=|\{.{0,120}"event": ?"request\.)')
_MARKS = (": obj=", '"request.')


def quotes_request(body: str) -> bool:
    """Does the line (without SGLang's prefix) hold a request or its answer?"""
    head = body[:200]
    return any(mark in head for mark in _MARKS) and _REQUEST.match(head) is not None


def unquoted(line: Line) -> Line:
    """The line without the request that it repeats."""
    found = _REQUEST.match(line.body[:200]) if quotes_request(line.body) else None
    if found is None:
        return line
    kept = len(line.text) - len(line.body) + found.end()
    return replace(line, text=line.text[:kept], body=found[0])
