"""The stages of a launch, live: which rank has got how far, and how much of a stage is done."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.log import stages as _stages
from mtpdoctor.log.clock import seconds_of
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.patterns import lazy
from mtpdoctor.watch.types import Progress, StageReached
from mtpdoctor.watch.usual import usual

_BAR = lazy(r"(\d{1,6})/(\d{1,6})(?: \[|\s*$|\s*[,)])")
_SHARDS = ("checkpoint shards:", "loading shards:")
_GRAPHS = ("Capturing batches", "Capturing num tokens", "Compiling num tokens")


class StageTracker:
    """Fed with lines in order and the seconds at which they came; pure.

    ``stage`` is the furthest that any rank has got. A launch that begins anew (a restarted container) is
    followed from its beginning: ``restarted`` counts.
    """

    def __init__(self, first: Stage | None = None, weights: int | None = None) -> None:
        self._first, self._weights = first, weights  # bytes that are loaded, where that is known
        self.restarted = 0
        self.ready_line: Line | None = None
        self._begin()

    def _begin(self) -> None:
        self.stage = self._first or Stage.ENV
        self._ranks: dict[str | None, Stage] = {}
        self._since: dict[str | None, tuple[float, float | None]] = {}  # seconds, and by the log's own clock
        self._done: dict[tuple[str | None, Stage, str], tuple[int, int]] = {}
        self.ready_line = None

    @property
    def ranks(self) -> dict[str, Stage]:
        """How far each rank has got that the log names."""
        return {rank: stage for rank, stage in self._ranks.items() if rank is not None}

    def start(self, at: float) -> StageReached | None:
        """The launch begins: with the stage that needs no line to be known."""
        return self._reach(self._first, None, at, None, False) if self._first is not None else None

    def feed(self, line: Line, at: float, *, late: bool = False) -> Iterator[StageReached | Progress]:
        """``late``: it is read some time after it was written, so that its own clock counts."""
        stage = _stages.mark_of(line)
        body = line.body
        if stage is None and any(text in body for text in (*_SHARDS, *_GRAPHS)):
            stage = Stage.WEIGHTS if any(text in body for text in _SHARDS) else Stage.GRAPH_CAPTURE
        if stage is None or stage is Stage.ARGPARSE:
            return
        if stage is Stage.SERVER_ARGS and line.rank is None and self.stage.order >= Stage.DIST_INIT.order:
            self.restarted += 1
            self._begin()
        if any(text in body for text in (_stages.READY, *_stages.WORKER_UP)):
            self.ready_line = line
        known = self._ranks.get(line.rank)
        unnamed = line.rank is None and bool(self.ranks) and stage.order <= self.stage.order  # a rank's bar
        if (known is None or stage.order > known.order) and not unnamed:
            yield self._reach(stage, line.rank, at, seconds_of(line.time), late)
        progress = self._progress(stage, line, at)
        if progress is not None:
            yield progress

    def _reach(
        self, stage: Stage, rank: str | None, at: float, clock: float | None, late: bool
    ) -> StageReached:
        before = self._since.get(rank) or self._since.get(None)
        took = None
        if before is not None and not late:
            took = at - before[0]
        elif before is not None and clock is not None and before[1] is not None and clock >= before[1]:
            took = clock - before[1]
        self._ranks[rank] = stage
        self._since[rank] = (at, clock)
        if rank is not None and stage.order > self._ranks.get(None, Stage.ENV).order:
            self._since[None] = (at, clock)
        if stage.order > self.stage.order:
            self.stage = stage
        return StageReached(at=at, stage=stage, rank=rank, took=took, usual=usual(stage, self._weights))

    def _progress(self, stage: Stage, line: Line, at: float) -> Progress | None:
        if stage not in (Stage.WEIGHTS, Stage.GRAPH_CAPTURE):
            return None
        found = list(_BAR.finditer(line.body))
        m = found[-1] if found else None
        if m is None or not int(m[2]) or int(m[1]) > int(m[2]):
            return None
        done, total = int(m[1]), int(m[2])
        unit = "shards" if stage is Stage.WEIGHTS else "graphs"
        key = (line.rank, stage, unit)
        if self._done.get(key) == (done, total):
            return None
        self._done[key] = (done, total)
        return Progress(at=at, stage=stage, rank=line.rank, done=done, total=total, unit=unit)
