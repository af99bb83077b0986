"""Whether a launch stands still. A pure state machine: time and what the processes do are handed in.

The watcher hands every event to :meth:`Watchdog.saw`; when :meth:`Watchdog.due` says so it looks at the processes
(``processes.look``, which costs a second) and hands the result to :meth:`Watchdog.judge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.watch.types import Process, Resumed, Stuck, WatchEvent


class Watchdog:
    def saw(self, event: WatchEvent) -> Resumed | None:
        """Output, StageReached, Progress, Ready, Generated; others are ignored."""
        raise NotImplementedError

    def due(self, at: float) -> bool:
        """Quiet for longer than the stage allows (and not told lately): look at the processes now."""
        raise NotImplementedError

    def judge(self, at: float, processes: Sequence[Process], signs: Sequence[str] = ()) -> Stuck:
        """``signs``: ``processes.signs()``, what else was found on the host (stale locks, ...)."""
        raise NotImplementedError
