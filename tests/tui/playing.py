"""A watched launch that plays events from a list, in place of a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from waiting import LONG

from mtpdoctor.log.types import Stage
from mtpdoctor.watch.types import (
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Output,
    Progress,
    Ready,
    StageReached,
    WatchEvent,
)


class Played:
    """Plays ``events``, then waits until it is ended; with an ``Ended`` among them it ends by itself."""

    def __init__(self, events: Sequence[WatchEvent], log: str = "/var/log/played.log") -> None:
        self.log = log
        self._events = events
        self._end = threading.Event()
        self.asked: list[str] = []
        self._detached = False

    def events(self) -> Iterator[WatchEvent]:
        yield from self._events
        if any(isinstance(e, Ended) for e in self._events):
            return
        self._end.wait(LONG)
        at = max((e.at for e in self._events), default=0.0) + 1
        how = End.DETACHED if self._detached else End.STOPPED
        yield Ended(at, how, 0, Stage.SERVING, None)

    def end(self, hard: bool = False) -> None:
        self.asked.append("hard" if hard else "gently")
        self._end.set()

    def detach(self) -> None:
        self._detached = True
        self._end.set()


COMMAND = "python -m sglang.launch_server --model-path /models/tiny --tp 2"


def starting(log: str = "/var/log/played.log") -> list[WatchEvent]:
    """A launch that is loading its weights."""
    return [
        Launched(0.0, 4242, COMMAND, log, ("CUDA_VISIBLE_DEVICES=0,1",)),
        Output(0.4, ("[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/models/tiny')",)),
        StageReached(0.4, Stage.SERVER_ARGS, None, None, (1.0, 6.0)),
        StageReached(4.0, Stage.DIST_INIT, "TP0", 3.6, (2.0, 20.0)),
        StageReached(4.1, Stage.DIST_INIT, "TP1", None, (2.0, 20.0)),
        GpuUse(4.5, (2.0, 1.0), (140.0, 140.0), (1.5, 0.5)),
        StageReached(9.0, Stage.WEIGHTS, "TP0", 5.0, (5.0, 60.0)),
        GpuUse(10.0, (20.0, 21.0), (140.0, 140.0), (19.5, 20.5)),
        Output(10.2, ("[2026-01-01 10:00:10 TP0] Load weight begin. [bold red]no markup[/]",)),
        GpuUse(12.0, (60.0, 61.0), (140.0, 140.0), (59.5, 60.5)),
        Progress(12.0, Stage.WEIGHTS, "TP0", 3, 8, "shards"),
    ]


def ready(log: str = "/var/log/played.log") -> list[WatchEvent]:
    """A launch that generates."""
    return [
        *starting(log),
        StageReached(20.0, Stage.MEMORY_POOL, "TP0", 11.0, (1.0, 5.0)),
        GpuUse(21.0, (121.0, 121.0), (140.0, 140.0), (120.0, 120.0)),
        StageReached(22.0, Stage.GRAPH_CAPTURE, "TP0", 2.0, (10.0, 90.0)),
        StageReached(40.0, Stage.WARMUP, None, 18.0, (2.0, 30.0)),
        StageReached(43.0, Stage.SERVING, None, 3.0, None),
        Output(43.0, ("[2026-01-01 10:00:43] The server is fired up and ready to roll!",)),
        Ready(43.0, "http://127.0.0.1:30000"),
        Generated(
            44.0, True, "Paris is the capital.", 32, 0.26, 123.4, 2.91, ("the overlap scheduler is off",)
        ),
    ]


def died(log: str) -> list[WatchEvent]:
    """A launch that ends by itself; its log tells why."""
    return [
        *starting(log),
        Output(13.0, ("Traceback (most recent call last):", "ValueError: something is wrong")),
        Ended(13.5, End.DIED, 1, Stage.WEIGHTS, None),
    ]
