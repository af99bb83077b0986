"""What is known of a watched launch: its events folded into one value, in order. No Textual here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mtpdoctor.log.types import Stage
from mtpdoctor.watch.types import (
    AttemptRecord,
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Lingers,
    Progress,
    Ready,
    Resumed,
    StageReached,
    Stuck,
    WatchEvent,
)

SAMPLES = 600  # of memory kept for each GPU


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage that was reached. Times in seconds since the launch; ``took`` None while it is under way."""

    stage: Stage
    began: float
    took: float | None = None
    usual: tuple[float, float] | None = None
    ranks: tuple[str, ...] = ()  # that have reached it


@dataclass(frozen=True, slots=True)
class GpuTrack:
    """Memory of one GPU over the launch, in GiB; the newest sample last."""

    total: float
    used: tuple[float, ...] = ()
    own: float = 0.0  # of the newest sample: held by this launch


@dataclass(frozen=True, slots=True)
class LaunchState:
    """Everything but the output's text."""

    launched: Launched | None = None
    stages: tuple[StageRow, ...] = ()
    progress: Progress | None = None
    gpus: tuple[GpuTrack, ...] = ()
    ready: Ready | None = None
    generated: Generated | None = None
    stuck: Stuck | None = None
    lingers: Lingers | None = None
    ended: Ended | None = None
    ending: str | None = None  # "gently", "hard": the person asked for its end
    at: float = 0.0  # of the newest event

    @property
    def stage(self) -> Stage:
        """The furthest stage that was reached."""
        return max((row.stage for row in self.stages), key=lambda s: s.order, default=Stage.ENV)


def advance(state: LaunchState, event: WatchEvent) -> LaunchState:
    """The state after ``event``."""
    state = replace(state, at=max(state.at, event.at))
    if isinstance(event, Launched):
        return replace(LaunchState(), launched=event, at=event.at)
    if isinstance(event, StageReached):
        return replace(state, stages=_reached(state.stages, event), progress=None, stuck=None, lingers=None)
    if isinstance(event, Progress):
        return replace(state, progress=event, stuck=None, lingers=None)
    if isinstance(event, GpuUse):
        return replace(state, gpus=_sampled(state.gpus, event))
    if isinstance(event, Ready):
        return replace(state, ready=event, progress=None, stuck=None, lingers=None)
    if isinstance(event, Generated):
        return replace(state, generated=event, stuck=None)
    if isinstance(event, Stuck):
        return replace(state, stuck=event)
    if isinstance(event, Resumed):
        return replace(state, stuck=None, lingers=None)
    if isinstance(event, Lingers):
        return replace(state, lingers=event)
    if isinstance(event, Ended):
        return replace(state, ended=event, stages=_closed(state.stages, event.at), progress=None, stuck=None)
    return state


def _reached(rows: tuple[StageRow, ...], event: StageReached) -> tuple[StageRow, ...]:
    ranks = (event.rank,) if event.rank else ()
    for i, row in enumerate(rows):
        if row.stage is event.stage:
            more = tuple(r for r in ranks if r not in row.ranks)
            return (*rows[:i], replace(row, ranks=row.ranks + more), *rows[i + 1 :])
    closed = rows
    if rows and rows[-1].took is None:
        took = event.took if event.took is not None else event.at - rows[-1].began
        closed = (*rows[:-1], replace(rows[-1], took=took))
    return (*closed, StageRow(event.stage, event.at, None, event.usual, ranks))


def _closed(rows: tuple[StageRow, ...], at: float) -> tuple[StageRow, ...]:
    if rows and rows[-1].took is None:
        return (*rows[:-1], replace(rows[-1], took=at - rows[-1].began))
    return rows


def _sampled(tracks: tuple[GpuTrack, ...], event: GpuUse) -> tuple[GpuTrack, ...]:
    out = []
    for i, used in enumerate(event.used_gib):
        before = tracks[i].used if i < len(tracks) else ()
        total = event.total_gib[i] if i < len(event.total_gib) else used
        own = event.own_gib[i] if i < len(event.own_gib) else 0.0
        out.append(GpuTrack(total, (*before, used)[-SAMPLES:], own))
    return tuple(out)


def record_of(state: LaunchState, number: int, edits: tuple[str, ...], log: str) -> AttemptRecord:
    """The line of the history for a launch that has ended. ``edits`` are those made since the attempt before."""
    ended = state.ended
    report = ended.report if ended is not None else None
    first = report.diagnoses[0] if report is not None and report.diagnoses else None
    how = ended.how if ended is not None else End.REFUSED
    if first is not None:
        cause = first.title
    elif how is End.STOPPED:
        cause = "ended by you" if state.generated is None else "ended by you after it had generated"
    elif how is End.DETACHED:
        cause = "runs on by itself"
    else:
        cause = "no cause is seen in its log"
    return AttemptRecord(
        number=number,
        edits=edits,
        stage=ended.stage if ended is not None else state.stage,
        how=how,
        rule=first.rule if first is not None else None,
        cause=cause,
        seconds=ended.at if ended is not None else state.at,
        log=log,
    )
