"""A launch that had not failed and came to its end: what shows that, and what it was ended by. Pure.

Ready is what it was, and nothing is wrong with it; but who reads that it is ready must also read that it is gone.
"""

from __future__ import annotations

from mtpdoctor.diagnose.types import Ended
from mtpdoctor.log.events import exit_status
from mtpdoctor.log.stages import Stage
from mtpdoctor.log.types import Attempt, Event, EventKind, Line
from mtpdoctor.patterns import lazy

_BARE = lazy(r"^\s*\^C\s*$")
_CODE = lazy(
    r"(?i)\bexit(?:ed)?\b.{0,20}\b(?:code|status)\b|\bstatus=\d|exit code|crashed with|^\s*exit status|code \[\d+\] via signal"
)
_NAMED = lazy(r"^(?:[Cc]ontainer )?(\S+) exited with code")
# The first that fits a line names what ended the launch.
_SIGNS = (
    ("Slurm's time limit", lazy(r"DUE TO TIME LIMIT")),
    ("Slurm (cancelled)", lazy(r"\bCANCELLED\b")),
    ("Ctrl-C", lazy(r"\^C|KeyboardInterrupt|SIGINT|signal 2\b|(?i:code|status)\D{0,12}?(?:130|-2)\b")),
    ("Kubernetes (its container was stopped)", lazy(r"Stopping container|Killing container")),
    ("systemd", lazy(r"systemd|\.service\b|stop-sigterm")),
    (
        "docker compose",
        lazy(r"^Gracefully stopping|^\W*Container \S+\s+Stopp|^Stopping \S+ +\.\.\.|(?:^|context )canceled"),
    ),
    (
        "SIGTERM",
        lazy(r"SIGTERM|signal[ =]15\b|(?i:terminated)|(?i:code|status)\D{0,12}?(?:143|-15|15)\b|已终止"),
    ),
)
_ASKED = "a request to stop"


def ended_of(attempt: Attempt, *, ready: bool) -> Ended | None:
    """The end of an attempt that is ready or unfinished; None where the log shows none.

    A lone ``^C`` below a server that is ready says nothing of it: the showing of its log was ended.
    """
    first = attempt.shutdown
    after = [e for e in attempt.events if first is None or e.line.key >= first.key]
    code = _code(attempt, after, first)
    if first is None:
        if code is None:
            return None
        return Ended(code[1], None, True, *code, attempt.ready)
    told = [e for e in after if e.kind in (EventKind.SHUTDOWN, EventKind.EXIT, EventKind.SIGNAL)]
    sure = not _BARE.match(first.body) or any(e.line.key > first.key for e in told)
    if ready and not sure:
        return None
    sign = next((name for name, pattern in _SIGNS if pattern.search(first.body)), None)
    if sign is None and "systemd" in first.stream:
        sign = "systemd"
    status, line = code or (None, None)
    return Ended(first, sign or _ASKED, sure, status, line, attempt.ready)


def _code(attempt: Attempt, events: list[Event], shutdown: Line | None) -> tuple[int, Line] | None:
    """The last exit status that the log tells of the launch. Without a stop before it only an orderly one at the
    log's end counts: others are failures, and an earlier one is of another process."""
    for event in reversed(events):
        if event.kind not in (EventKind.EXIT, EventKind.SHUTDOWN) or not _CODE.search(event.line.body):
            continue
        status = exit_status(event.line.body)
        if status is None:
            continue
        if shutdown is None and (status != 0 or not _of_the_launch(attempt, event.line)):
            return None
        return status, event.line
    return None


def _of_the_launch(attempt: Attempt, line: Line) -> bool:
    """Nothing of the launch follows the line, and what it names, if anything, is the launch's own container."""
    last = max((m.line.key for m in attempt.marks if m.stage is not Stage.ENV), default=None)
    if last is None or max(last, attempt.served.key if attempt.served else last) > line.key:
        return False
    streams = {m.line.stream for m in attempt.marks if m.line.stream}
    if not streams:
        return True
    named = _NAMED.match(line.body)
    if named is None:
        return line.stream in streams
    return any(named[1].startswith(s) or s.startswith(named[1]) for s in streams)
