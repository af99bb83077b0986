"""Driving a watched launch from the command line: its output, the doctor's lines, signals, the exit code."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from mtpdoctor.errors import EXIT_FAILURE_UNKNOWN, EXIT_OK
from mtpdoctor.report.style import terminal
from mtpdoctor.report.watch_text import WatchText
from mtpdoctor.watch.types import End, Ended, Generated, Output, Progress, Ready, WatchEvent

if TYPE_CHECKING:
    from mtpdoctor.watch.session import LaunchSession

EXIT_INTERRUPTED = 130  # ended by the person before it was ready
_STATUS_EVERY = 0.2  # seconds between two changes of the line that is written over


@dataclass(frozen=True, slots=True)
class Watched:
    """How a session went."""

    ended: Ended
    generated: Generated | None
    satisfied: bool  # it was watched until it generated, and that was all that was wanted


def add_patience_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--patience",
        type=_factor,
        default=1.0,
        metavar="FACTOR",
        help="how many times as long as usual a stage may be quiet before it is said to stand still: 3 on slow "
        "storage, 0.5 to hear of it sooner (default: 1)",
    )


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor from 0.01 to 1000")
    return value


class Screen:
    """The server's output on standard output, the doctor's lines and its status line on standard error.

    A stream that goes away (a lost terminal, ``| head``) is not written to any more; the watch goes on.
    """

    def __init__(self, *, output: bool = True, events: bool = False) -> None:
        columns, color = terminal(sys.stderr)
        self.text = WatchText(color=color, columns=columns)
        self._output, self._events = output and not events, events
        self._live = _is_terminal(sys.stderr) and not events and os.environ.get("TERM") != "dumb"
        self._shown = ""
        self._next = 0.0
        self._dead: set[TextIO] = set()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a log may hold what the terminal's encoding does not
                stream.reconfigure(errors="replace")

    def show(self, event: WatchEvent, at: float) -> None:
        if self._events:
            from mtpdoctor.report.watch_json import event_to_json

            self._write(sys.stdout, json.dumps(event_to_json(event), ensure_ascii=True) + "\n")
            return
        if isinstance(event, Output):
            if self._output:
                self._clear()
                self._write(sys.stdout, "\n".join(event.lines) + "\n")
        else:
            lines = self.text.lines(event, live=self._live)
            if lines:
                self._clear()
                self._write(sys.stderr, "\n".join(lines) + "\n")
        self._status(at, soon=isinstance(event, Progress))

    def say(self, text: str) -> None:
        """A line of the doctor's own."""
        self._clear()
        self._write(sys.stderr, text + "\n")

    def say_at_once(self, text: str) -> None:
        """The same from a signal handler, which may have come in between a write to the same stream."""
        line = ("\r\x1b[K" if self._live else "") + text + "\n"
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), line.encode())

    def done(self) -> None:
        self._clear()

    def _status(self, at: float, soon: bool) -> None:
        now = time.monotonic()
        if not self._live or (now < self._next and self._shown and not soon):
            return
        self._next = now + _STATUS_EVERY
        self.text.columns = terminal(sys.stderr)[0]  # it may have been resized
        line = self.text.status(at)
        if line != self._shown:
            self._write(sys.stderr, f"\r\x1b[K{line}")
            self._shown = line

    def _clear(self) -> None:
        if self._shown:
            self._write(sys.stderr, "\r\x1b[K")
            self._shown = ""

    def _write(self, stream: TextIO, text: str) -> None:
        if stream in self._dead:
            return
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            self._dead.add(stream)
            _let_run_dry(stream)


def drive(
    session: LaunchSession,
    screen: Screen,
    *,
    until_ready: bool = False,
    detach: bool = False,
    prove: bool = True,
) -> Watched:
    """Print what happens until the launch has ended, or until it generates and that is all that is wanted.

    Without ``prove`` it is taken at its word that it is ready.
    Ctrl-C ends the launch gently, a second one hard; with ``detach`` it leaves it running. SIGTERM is a gentle end,
    a lost terminal one too. Raises UserError when the program cannot be started."""
    generated: Generated | None = None
    ended: Ended | None = None
    satisfied = False
    with _signals(session, screen, detach):
        events = session.events()
        with contextlib.closing(events):  # type: ignore[type-var]
            for event in events:
                screen.show(event, event.at)
                if isinstance(event, Ready) and not prove:
                    event = Generated(
                        event.at, ok=True, said="SGLang says that it is ready; it was not asked for tokens"
                    )
                    screen.show(event, event.at)
                if isinstance(event, Generated):
                    generated = event if event.ok or generated is None else generated
                    if until_ready and ended is None:
                        satisfied = event.ok
                        if detach and event.ok:
                            session.detach()
                        else:
                            session.end()
                elif isinstance(event, Ended):
                    ended = event
    screen.done()
    assert ended is not None
    return Watched(ended, generated, satisfied)


def exit_code_of(watched: Watched, *, until_ready: bool = False) -> int:
    """0 healthy, or the child's own code where the person ended it healthy; 1 diagnosed; 3 not known why."""
    from mtpdoctor.cli.diagnose import exit_code

    ended = watched.ended
    healthy = watched.generated is not None and watched.generated.ok
    if until_ready and watched.generated is not None:
        return EXIT_OK if watched.satisfied else EXIT_FAILURE_UNKNOWN
    if ended.how is End.DETACHED:
        return EXIT_OK
    if ended.how is End.STOPPED:
        if not healthy:
            return EXIT_INTERRUPTED if ended.code is not None else EXIT_OK
        return _shell_code(ended.code)
    if ended.report is not None and ended.report.outcome == "failed":
        return exit_code(ended.report)
    return EXIT_OK if ended.code == 0 else EXIT_FAILURE_UNKNOWN


def print_report(watched: Watched) -> None:
    """The diagnosis of a launch that died, on standard error."""
    report = watched.ended.report
    if report is None or watched.ended.how is not End.DIED:
        return
    from mtpdoctor.report.text import render

    width, color = terminal(sys.stderr)
    with contextlib.suppress(OSError, ValueError):
        print("\n" + render(report, width=width, color=color), end="", file=sys.stderr)


def _shell_code(code: int | None) -> int:
    """As a shell has it: 128 and the signal for what a signal ended."""
    if code is None:
        return EXIT_OK
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _signals(session: LaunchSession, screen: Screen, detach: bool) -> Iterator[None]:
    asked = 0

    def end(number: int, _frame: object) -> None:
        nonlocal asked
        asked += 1
        if detach and asked == 1 and number != signal.SIGTERM:
            session.detach()
            return
        # A terminal that goes away may tell it twice.
        session.end(hard=asked > 1 and number in (signal.SIGINT, signal.SIGTERM))
        if number == signal.SIGINT and asked == 1 and session.plan is not None and session.plan.server:
            screen.say_at_once("mtpdoctor: ending the server gently; Ctrl-C again ends it at once")

    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    # Who started the doctor may have had it ignore a signal (nohup: SIGHUP; "&" in a script: SIGINT).
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _let_run_dry(stream: TextIO) -> None:
    """What it still holds would be written when Python ends: an error then, and exit code 120."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False
