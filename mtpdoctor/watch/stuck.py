"""Whether a launch stands still. A pure state machine: time and what the processes do are handed in.

The watcher hands every event to :meth:`Watchdog.saw`; when :meth:`Watchdog.due` says so it looks at the processes
(``processes.look``, which costs a second) and hands the result to :meth:`Watchdog.judge`. How long a stage may be
quiet, and what usually holds it up, is data (``kb/hangs.py``).
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence

from mtpdoctor.facts import Facts
from mtpdoctor.kb.hangs import Hangs
from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.log.lines import make_line
from mtpdoctor.log.ranks import RankMarks, local_ranks
from mtpdoctor.log.stages import mark_of
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.watch.hangs import scene_of
from mtpdoctor.watch.types import (
    Generated,
    Launched,
    Output,
    Process,
    Progress,
    Ready,
    Resumed,
    StageReached,
    Stuck,
    WatchEvent,
)

_KEPT = 40  # last lines that causes are looked for in
_LOOKED_AT = 400  # lines of one event that are looked at: of a flood, the last
_OFTEN = 20  # a line that came so often already tells of no progress
_NUMBER = re.compile(r"\d+")
_TP = re.compile(r"\bTP(\d+)\b")


class Watchdog:
    """``scale`` multiplies what stages may be quiet (for hosts known to be slow). ``tp_size`` and ``nodes`` are of
    the launch; else they are read off its ``server_args`` line. ``facts``: of the launch, asked for when it stands
    still."""

    def __init__(
        self,
        hangs: Hangs | None = None,
        *,
        tp_size: int | None = None,
        nodes: int | None = None,
        scale: float = 1.0,
        at: float = 0.0,
        facts: Callable[[], Facts | None] = lambda: None,
    ) -> None:
        self._facts = facts
        self._hangs = hangs or load_hangs()
        self._tp_size, self.nodes, self._scale = tp_size, nodes, scale
        self.stage = Stage.ENV
        self._alive = at  # when it last gave a sign of life
        self._told: float | None = None  # when it was last said that it stands still
        self._times = 0  # how often, this time
        self._serving = False
        self._lines: deque[Line] = deque(maxlen=_KEPT)
        self._often: Counter[str] = Counter()
        self._done: dict[tuple[Stage, str | None, str], int] = {}
        self._ranks = RankMarks()

    # -- what happens ----------------------------------------------------------------------------------

    def saw(self, event: WatchEvent) -> Resumed | None:
        """Output, StageReached, Progress, Ready, Generated; others are ignored. Resumed: it goes on after a Stuck."""
        if isinstance(event, Output):
            alive = [self._line(text) for text in event.lines[-_LOOKED_AT:]]
            return self._sign(event.at) if any(alive) else None
        if isinstance(event, StageReached):
            if event.rank:
                self._ranks.reached(event.rank, event.stage)
            if event.stage.order > self.stage.order:
                self.stage = event.stage
                self._often.clear()
            self._serving = self._serving or event.stage is Stage.SERVING
            return self._sign(event.at)
        if isinstance(event, Progress):
            key = (event.stage, event.rank, event.unit)
            moved = event.done != self._done.get(key)
            self._done[key] = event.done
            return self._sign(event.at) if moved else None
        if isinstance(event, (Ready, Generated)):
            self._serving = True
            return self._sign(event.at)
        if isinstance(event, Launched):
            self._alive = event.at
        return None

    def _sign(self, at: float) -> Resumed | None:
        self._alive = max(self._alive, at)
        if self._told is None:
            return None
        self._told, self._times = None, 0
        return Resumed(at, self.stage)

    def _line(self, text: str) -> bool:
        """Whether the line is a sign of life."""
        if not text.strip():
            return False
        if "server_args=" in text:
            self._tp_size = _field(text, "tp_size") or self._tp_size
            self.nodes = _field(text, "nnodes") or self.nodes
        line = make_line(text[:2000], 0, 0, 0, "", None)
        self._lines.append(line)
        if line.rank:
            self._ranks.heard(line.rank, self.stage)
            stage = mark_of(line)
            if stage is not None:
                self._ranks.mark(line, stage)
        if self._hangs.chatter.search(line.text):
            return False
        form = _NUMBER.sub("#", line.body)[:200]
        self._often[form] += 1
        # A bar's lines differ in their numbers only; what they count comes as Progress.
        return self._often[form] <= _OFTEN

    # -- judging ---------------------------------------------------------------------------------------

    def quiet(self, at: float) -> float:
        """Seconds since the last sign of life."""
        return at - self._alive

    def due(self, at: float) -> bool:
        """Quiet for longer than the stage allows, and not told lately: look at the processes now.

        A server that serves may be quiet for as long as nobody asks it."""
        if self._serving:
            return False
        if self._told is None:
            return self.quiet(at) >= self._allowed
        return at - self._told >= self._allowed * 2**self._times

    @property
    def _allowed(self) -> float:
        return self._hangs.quiet_s.get(self.stage, 180.0) * self._scale

    def judge(self, at: float, processes: Sequence[Process], signs: Sequence[str] = ()) -> Stuck | None:
        """``signs``: ``processes.signs()``, what else was found on the host (stale locks, ...). None: it has gone
        on while the processes were looked at."""
        if self._serving or self.quiet(at) < self._allowed:
            return None
        self._told, self._times = at, min(self._times + 1, 6)
        behind = self.behind()
        found = tuple(signs) + self._gone(processes)
        scene = scene_of(
            processes,
            compilers=self._hangs.compilers,
            lines=tuple(self._lines),
            found=found,
            behind=behind,
            ranks=len(self._ranks.stages) or self._tp_size or None,
            nodes=self.nodes,
            facts=self._facts(),
        )
        return Stuck(
            at=at,
            stage=self.stage,
            quiet_s=self.quiet(at),
            behind=behind,
            processes=tuple(processes),
            likely=tuple(one.told for one in self._hangs.likely(self.stage, scene)),
            compiling=self._hangs.compiling(self.stage, scene) is not None,
        )

    def behind(self) -> tuple[str, ...]:
        """Ranks that have not written what others have, by their own words."""
        local = local_ranks(self._tp_size, self.nodes) if (self.nodes or 1) == 1 else None
        return self._ranks.behind(local)

    def _gone(self, processes: Sequence[Process]) -> tuple[str, ...]:
        """Ranks that have written and have no process any more."""
        alive = {m[1] for p in processes if p.rank and p.state != "zombie" and (m := _TP.search(p.rank))}
        if not alive:
            return ()
        gone = sorted(self._ranks.tp_ranks() - {int(number) for number in alive})
        return tuple(f"missing rank: TP{i} wrote and has no process" for i in gone)


def _field(text: str, name: str) -> int | None:
    """A number of a ``server_args`` line, in either of its forms."""
    m = re.search(rf"\b{name}(?:=|': )(\d{{1,4}})\b", text)
    return int(m[1]) if m else None
