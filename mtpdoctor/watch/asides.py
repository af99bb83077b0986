"""What a watch asks beside its loop, in threads of their own, so that output is never late.

Each gives its answer back as events that the loop yields (``arrived``); the state that they change is changed there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mtpdoctor.watch.types import Generated, Stuck, WatchEvent

if TYPE_CHECKING:
    from mtpdoctor.watch.stuck import Watchdog
    from mtpdoctor.watch.target import Target

_Answer = Callable[[], Iterator[WatchEvent]]


class Asides:
    """``wake`` is called, from another thread, when an answer is there."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self.looking = self.asking = False

    def arrived(self) -> Iterator[WatchEvent]:
        """The events of the answers that have come."""
        while True:
            try:
                answer = self._answers.get_nowait()
            except Empty:
                return
            yield from answer()

    def prove(
        self, target: Target, timeout_s: float, started: float, proven: Callable[[Generated], None]
    ) -> None:
        """Ask for tokens; ``proven`` hears of it before the event is given."""

        def work() -> _Answer:
            from mtpdoctor.watch.ready import prove

            generated = prove(target, timeout_s, started=started)

            def answer() -> Iterator[WatchEvent]:
                proven(generated)
                yield generated

            return answer

        self._apart(work, "proof")

    def look(self, pids: Sequence[int], watchdog: Watchdog, now: Callable[[], float]) -> None:
        """What the processes of a quiet launch do, and what the watchdog makes of it."""
        self.looking = True

        def work() -> _Answer:
            from mtpdoctor.watch import processes

            seen, signs = processes.look(pids), processes.signs(pids)

            def answer() -> Iterator[WatchEvent]:
                self.looking = False
                found = watchdog.judge(now(), seen, signs)
                if isinstance(found, Stuck):
                    yield found

            return answer

        self._apart(work, "look")

    def ask(self, target: Target, up: Callable[[], Iterator[WatchEvent]]) -> None:
        """Whether the server answers at all; ``up`` gives the events when it does."""
        self.asking = True

        def work() -> _Answer:
            from mtpdoctor.watch.ready import reachable

            answers = reachable(target)

            def answer() -> Iterator[WatchEvent]:
                self.asking = False
                if answers:
                    yield from up()

            return answer

        self._apart(work, "question")

    def _apart(self, work: Callable[[], _Answer], name: str) -> None:
        def body() -> None:
            self._answers.put(work())
            self._wake()

        threading.Thread(target=body, name=f"mtpdoctor-{name}", daemon=True).start()
