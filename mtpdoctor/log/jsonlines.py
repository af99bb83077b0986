"""Log lines carried as JSON records: docker's json-file, ``journalctl -o json``, JSON loggers."""

from __future__ import annotations

import json
from typing import Any

from mtpdoctor.log.kinds import Peeled

# where the message stands, in order of trust; and what is printed after it
_MESSAGE = ("log", "MESSAGE", "message", "msg", "textPayload", "text", "line", "event")
_MORE = (
    "exc_info",
    "exception",
    "traceback",
    "stack_trace",
    "stacktrace",
    "exc_text",
    "stack",
    "error.stack",
)
_TIME = ("time", "timestamp", "@timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP", "created")
_STREAM = ("stream_name", "container", "container_name", "pod", "service", "hostname")
_RUNTIME_CUT = 16_000  # docker cuts lines at 16 KiB


def peel_json(text: str, shape: str) -> Peeled | None:
    """The record in ``text`` (``rest`` may hold newlines), or None when it is none of ``shape``: docker
    (``log`` beside ``stream`` or ``time``), journald (``MESSAGE``), any (a known message field)."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if shape == "docker":
        message = record.get("log")
        if not isinstance(message, str) or not ("stream" in record or "time" in record):
            return None
        # every piece of a line that docker cut lacks the newline, but the last; other writers of the
        # same shape leave it out of short lines too
        partial = not message.endswith("\n") and len(message.encode("utf-8", "replace")) >= _RUNTIME_CUT
        return Peeled("", _text(record.get("time")), message.removesuffix("\n"), partial)
    if shape == "journald":
        if "MESSAGE" not in record:
            return None
        name = _text(record.get("SYSLOG_IDENTIFIER") or record.get("_COMM")) or ""
        pid = _text(record.get("_PID") or record.get("SYSLOG_PID"))
        stream = f"{name}[{pid}]" if name and pid else name
        return Peeled(stream, _time(record), _message(record["MESSAGE"]).removesuffix("\n"))
    name_of = next((k for k in _MESSAGE if isinstance(record.get(k), str)), None)
    if name_of is None:
        return None
    parts = [record[name_of].removesuffix("\n")]
    parts += [
        record[k].strip("\n") for k in _MORE if k != name_of and isinstance(record.get(k), str) and record[k]
    ]
    stream = next((record[k] for k in _STREAM if isinstance(record.get(k), str)), "")
    return Peeled(stream, _time(record), "\n".join(parts))


def _message(value: Any) -> str:
    """journald gives a list of byte values where the message holds escapes or is no UTF-8."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return bytes(value).decode("utf-8", "replace")
        except (TypeError, ValueError):
            return " ".join(_message(v) for v in value if isinstance(v, (str, list)))
    return "" if value is None else str(value)


def _time(record: dict[str, Any]) -> str | None:
    return next((t for k in _TIME if (t := _text(record.get(k)))), None)


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value)
