"""Drives a watched launch in a thread of its own; what happens is fetched by the screen when it has time.

The screen never waits for the launch, nor the launch for the screen: events are kept until they are drained,
and of a flood of output only the newest lines.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from mtpdoctor.errors import UserError
from mtpdoctor.watch.types import Output, WatchEvent

KEPT_LINES = 5000  # of output that nobody has drained
GENTLE_S = 45.0  # seconds for a launch to end by itself when the doctor quits, its signals getting harsher
HARD_S = 10.0


class Watched(Protocol):
    """What is driven: a ``mtpdoctor.watch.session.LaunchSession``."""

    log: str

    def events(self) -> Iterator[WatchEvent]: ...

    def end(self, hard: bool = False) -> None: ...

    def detach(self) -> None: ...


class Launcher:
    """One launch being driven. Every method may be called from the screen's thread and returns at once,
    but for ``close``."""

    def __init__(self, session: Watched) -> None:
        self.session = session
        self._lock = threading.Lock()
        self._events: deque[WatchEvent] = deque()
        self._lines = 0
        self._error: Exception | None = None
        self._over = threading.Event()
        self._left = False  # to run on without the doctor
        self._thread = threading.Thread(target=self._drive, name="launch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive() or bool(self._events)

    def drain(self) -> list[WatchEvent]:
        """What has happened since the last call. Raises what went wrong in the thread, once all is drained."""
        with self._lock:
            out = list(self._events)
            self._events.clear()
            self._lines = 0
            error, self._error = (self._error, None) if not out else (None, self._error)
        if error is not None:
            raise error
        return out

    def end(self, hard: bool = False) -> None:
        """Ask for its end: signals that get harsher by and by, or SIGKILL at once."""
        threading.Thread(target=self.session.end, kwargs={"hard": hard}, daemon=True).start()

    def detach(self) -> None:
        """Leave it running, watched no longer."""
        self._left = True
        threading.Thread(target=self.session.detach, daemon=True).start()

    def close(self) -> None:
        """End it, or let go of it when it was detached, and wait for that. For the end of the application."""
        if not self._thread.is_alive():
            return
        if self._left:
            self.session.detach()  # its own thread may not have come to it
        else:
            self.session.end()
        if not self._over.wait(GENTLE_S):
            self.session.end(hard=True)
            self._over.wait(HARD_S)

    def _drive(self) -> None:
        try:
            for event in self.session.events():
                self._keep(event)
        except UserError as error:
            self._error = error
        except (
            Exception
        ) as error:  # shown on the screen's thread, where the application's crash report is made
            self._error = error
        finally:
            self._over.set()

    def _keep(self, event: WatchEvent) -> None:
        with self._lock:
            if isinstance(event, Output):
                self._lines += len(event.lines)
                while self._lines > KEPT_LINES and self._forget():
                    pass
            self._events.append(event)

    def _forget(self) -> bool:
        """Drop the oldest output. False when there is none."""
        for i, event in enumerate(self._events):
            if isinstance(event, Output):
                self._lines -= len(event.lines)
                del self._events[i]
                return True
        return False
