"""Times that logs print, as ISO text without a zone, to the second. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

from mtpdoctor.log.types import Line

_ISO = re.compile(r"(20\d\d-[01]\d-[0-3]\d)[T ,]{1,2}([0-2]\d:[0-5]\d:[0-5]\d)")
_EPOCH = re.compile(r"(1[5-9]\d{8})\.\d{6}\Z")


def iso_of(line: Line) -> str | None:
    """The time of a line: SGLang's own, else the transport's. None where there is none, or no year in it."""
    for text in (line.text[:64], line.time or ""):
        m = _ISO.search(text)
        if m:
            return f"{m[1]}T{m[2]}"
    m = _EPOCH.match(line.time or "")
    if m:
        return datetime.fromtimestamp(int(m[1]), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return None


def first_time(lines: Iterable[Line]) -> str | None:
    return next((t for line in lines if (t := iso_of(line))), None)
