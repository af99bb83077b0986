"""How a launch is let go: ended gently or hard, or left running.

Any thread may ask, and a signal handler of the one that drives the launch: before the program runs, while it ends,
when all is over.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpdoctor.watch.spawn import Child

INT_PATIENCE, TERM_PATIENCE = 15.0, 15.0  # seconds for a gentle end: SIGINT, then SIGTERM, then SIGKILL


class Ending:
    """``gently`` is what a gentle end begins with: "int", or "kill" for a program that may be ended at any time."""

    def __init__(self, gently: str) -> None:
        self._gently = gently
        self._lock = threading.RLock()  # a signal handler of the driving thread may come in between
        self._child: Child | None = None
        self._since: float | None = None  # when the end was asked for, or the program heard of it
        self._hard = False
        self._sent = ""  # the last signal
        self.detached = False

    @property
    def asked(self) -> bool:
        """Somebody wants it to end."""
        return self._since is not None

    def end(self, hard: bool = False) -> None:
        """What was detached is left alone."""
        with self._lock:
            if self.detached:
                return
            first = self._since is None
            if first:
                self._since = time.monotonic()
            self._hard = self._hard or hard
            if hard or first:
                self._send()

    def detach(self) -> None:
        with self._lock:
            self.detached = True
            if self._child is not None:
                self._child.detach()

    def started(self, child: Child) -> None:
        """The program runs: it hears what was asked for while it was starting."""
        with self._lock:
            self._child = child
            if self.detached:
                child.detach()
            elif self._since is not None:
                self._since = time.monotonic()
                self._send()

    def insist(self) -> None:
        """The gentle end did not help: SIGTERM, then SIGKILL."""
        with self._lock:
            if self._child is None or self._since is None:
                return
            waited = time.monotonic() - self._since
            for how, limit in (("kill", INT_PATIENCE + TERM_PATIENCE), ("term", INT_PATIENCE)):
                if waited > limit and self._sent not in (how, "kill"):
                    self._sent = how
                    self._child.end(how)
                    return

    def let_go(self) -> bool:
        """Whatever happened: nothing stays but what was to stay. False where nothing had been started."""
        with self._lock:  # a ``detach`` that has begun is told to the guard before the guard is let go
            child, self._child = self._child, None
        if child is None:
            return False
        if self.detached:
            child.close()
        else:
            child.kill()
        return True

    def _send(self) -> None:
        if self._child is not None:
            self._sent = "kill" if self._hard else self._gently
            self._child.end(self._sent)
