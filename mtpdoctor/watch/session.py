"""A launch, or somebody else's log, watched from its start until it generates or has ended.

``events()`` blocks between events: a thread drives it, and prints or posts what it yields. ``end`` and ``detach``
may be called from any other thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.diagnose.given import Given
from mtpdoctor.watch.plan import LaunchPlan
from mtpdoctor.watch.types import WatchEvent


class LaunchSession:
    """One launch, or one log. ``log`` is the file that keeps the output (for a run: under the state folder)."""

    log: str

    def __init__(self, plan: LaunchPlan, *, watchdog: bool = True, gpus: bool = True) -> None:
        raise NotImplementedError

    def events(self) -> Iterator[WatchEvent]:
        """Launched first, Ended last; in between what happens. To be driven by one thread, once.

        Leaving the generator early (``close()``, an exception) ends the launch as ``end(hard=True)`` does."""
        raise NotImplementedError

    def end(self, hard: bool = False) -> None:
        """End it: SIGINT, then SIGTERM, then SIGKILL when that does not help; ``hard`` SIGKILL at once.

        A log of somebody else's is only watched no longer."""
        raise NotImplementedError

    def detach(self) -> None:
        """Watch no longer and leave it running; its output goes on into the log."""
        raise NotImplementedError


def watch_log(paths: Sequence[str], given: Given | None = None, *, prove: bool = True) -> LaunchSession:
    """Follow log files that somebody else's launch writes. Raises UserError when one cannot be read."""
    raise NotImplementedError


def watch_command(argv: Sequence[str], given: Given | None = None, *, prove: bool = True) -> LaunchSession:
    """Follow the output of a program that shows a server's log (``docker logs -f NAME``)."""
    raise NotImplementedError
