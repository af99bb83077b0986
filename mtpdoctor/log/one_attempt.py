"""One launch of a log: what its lines and events mean in it, and how far it got."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtpdoctor.log.attempts import Item
from mtpdoctor.log.command_line import best_command
from mtpdoctor.log.event_patterns import Weight
from mtpdoctor.log.events import RawEvent
from mtpdoctor.log.observe import Observer
from mtpdoctor.log.server_args import parse_server_args
from mtpdoctor.log.shown import OF_ONE_LAUNCH, shown_by_tools
from mtpdoctor.log.shown.elsewhere import Launched, elsewhere, launched
from mtpdoctor.log.stages import (
    ROUTER_ALONE,
    ROUTER_HAS_WORKER,
    ROUTER_UP,
    WORKER_UP,
    stage_of_stack,
    stage_of_traceback,
)
from mtpdoctor.log.survival import goes_on, outlived_by
from mtpdoctor.log.tracelines import is_record
from mtpdoctor.log.types import Attempt, Event, EventKind, Line, Span, Stage, StageMark


def build_attempt(
    index: int,
    spans: Sequence[Span],
    items: Sequence[Item],
    lines: Sequence[Line],
    earlier: Sequence[Line] = (),
) -> Attempt:
    """The attempt made of ``items`` and ``lines`` (both in order, of these spans only). What tools show of the machine in
    ``earlier`` lines holds for it too."""
    marks = _marks(items)
    ready = next((i.line for i in items if i.what == "ready"), None)
    batches = [i.line for i in items if i.what == "batch"]
    started = any(m.stage is Stage.WARMUP for m in marks)
    if batches and ready is None and (not started or len(batches) > 4):
        marks.append(StageMark(Stage.SERVING, batches[0], batches[0].rank))
        marks.sort(key=lambda m: m.line.key)
    up = _worker_up(items) if ready is None else None
    if up is not None:
        marks.append(StageMark(Stage.SERVING, up, up.rank))
        marks.sort(key=lambda m: m.line.key)
    raw = _told_whole([i.event for i in items if i.event is not None])
    healthy = sorted([m.line for m in marks] + batches, key=lambda x: x.key)
    shutdown = _shutdown(raw, ready)
    events = tuple(_weigh(raw, marks, healthy, batches, shutdown, ready))
    shown = [(i.text, i.line) for i in items if i.text is not None]
    arguments = _arguments(items) or {}
    text, command = best_command(shown, arguments or None) or (None, None)
    launch = launched(text, arguments.get("model_path"), arguments.get("speculative_draft_model_path"))
    here = _of_this_launch(lines, launch)
    observer = Observer()
    for line in here:
        observer.feed(line)
    quoted = _quoted(events, ready, batches)
    tools = [
        *(one for one in shown_by_tools(here) if not quoted(one.line)),
        *(
            one
            for one in shown_by_tools(_of_this_launch(earlier, launch))
            if one.name not in OF_ONE_LAUNCH and not quoted(one.line)
        ),
    ]
    return Attempt(
        index=index,
        first=(spans[0].file, spans[0].first),
        last=(spans[-1].file, spans[-1].last),
        marks=tuple(marks),
        events=events,
        observations=observer.finish(min((e.line.key for e in events if e.fatal), default=None), tools),
        command=command,
        ready=ready,
        stage=_reached(events, marks),
        shutdown=shutdown.line if shutdown is not None else None,
        spans=tuple(spans),
        command_text=text,
        served=batches[-1] if batches else None,
    )


def _told_whole(raw: Sequence[RawEvent]) -> list[RawEvent]:
    """Without the tracebacks that never came to their exception and whose last call another one holds that did: ranks that
    write into each other without a mark of their own."""
    whole = {
        (frame.path, frame.lineno, frame.function)
        for event in raw
        for node in (event.traceback.chain if event.traceback is not None else ())
        if node.exception is not None
        for frame in node.frames
    }

    def is_part(event: RawEvent) -> bool:
        node = event.traceback
        if node is None or node.exception is not None or node.inner is not None or not node.frames:
            return False
        last = node.frames[-1]
        return (last.path, last.lineno, last.function) in whole

    return [event for event in raw if not is_part(event)]


def _of_this_launch(lines: Sequence[Line], launch: Launched) -> Sequence[Line]:
    away = elsewhere(lines, launch)
    return [line for line in lines if line.key not in away] if away else lines


def _quoted(events: Sequence[Event], ready: Line | None, batches: Sequence[Line]) -> Callable[[Line], bool]:
    """Is a line what a source file or a request holds, and not what a tool printed?"""
    source: set[tuple[int, int, int]] = set()
    for event in events:
        for node in event.traceback.chain if event.traceback is not None else ():
            for before, line in zip(node.lines, node.lines[1:], strict=False):
                if before.body.lstrip().startswith('File "') and line.body.startswith("    "):
                    source.add(line.key)
    died = min((event.line.key for event in events if event.fatal), default=None)
    end = died or (batches[-1].key if batches else None)

    def is_quoted(line: Line) -> bool:
        if ready is not None and end is not None and (line.file, line.stream) == (ready.file, ready.stream):
            return line.key in source or ready.key < line.key < end
        return line.key in source

    return is_quoted


def _arguments(items: Sequence[Item]) -> Mapping[str, Any] | None:
    """The server arguments that the log prints first."""
    shown = next((i.line for i in items if i.what == "server_args"), None)
    return parse_server_args(shown.text) if shown is not None else None


def _worker_up(items: Sequence[Item]) -> Line | None:
    """Where the log is of nodes other than the first, or of a router: the line that shows that they are up. They never
    say that they are ready; up to 0.4.8 their health server speaks as the real one does."""
    shown = [parse_server_args(i.line.text) or {} for i in items if i.what == "server_args"]
    ranks = [args.get("node_rank") for args in shown]
    if not shown:
        router = _router_up([i.line for i in items if i.what == "mark"])
        if router is not None:
            return router
    if any(not isinstance(rank, int) or rank < 1 for rank in ranks):
        return None
    texts = WORKER_UP if not ranks else (*WORKER_UP, "Uvicorn running on")
    return next((i.line for i in items if i.what == "mark" and any(t in i.line.body for t in texts)), None)


def _router_up(marks: Sequence[Line]) -> Line | None:
    """Where a router says that it is up; nowhere when it reaches none of its workers."""
    up = next((x for x in marks if ROUTER_UP in x.body), None)
    if up is None or "workers: []" not in up.body or any(ROUTER_HAS_WORKER in x.body for x in marks):
        return up
    return None if any(ROUTER_ALONE in x.body for x in marks) else up


def _marks(items: Sequence[Item]) -> list[StageMark]:
    marks = [StageMark(i.stage, i.line, i.line.rank) for i in items if i.stage is not None]
    # bars repeat themselves: the first and the last of a run are enough
    out: list[StageMark] = []
    for mark in marks:
        if len(out) > 1 and all(
            (m.stage, m.rank, m.line.stream) == (mark.stage, mark.rank, mark.line.stream) for m in out[-2:]
        ):
            out[-1] = mark
        else:
            out.append(mark)
    return out


def _shutdown(raw: Sequence[RawEvent], ready: Line | None) -> RawEvent | None:
    """The first sign that the server was asked to stop, unless it was dying already."""
    for event in raw:
        if event.weight is Weight.DIES and (event.kind is EventKind.TRACEBACK or ready is None):
            return None
        if event.weight is Weight.STOPPED and event.kind is not EventKind.TRACEBACK:
            return event
    return None


def _weigh(
    raw: Sequence[RawEvent],
    marks: Sequence[StageMark],
    healthy: Sequence[Line],
    batches: Sequence[Line],
    shutdown: RawEvent | None,
    ready: Line | None,
) -> list[Event]:
    outlived = {e.line.key for e in raw if outlived_by(e, raw, batches, ready)}
    died = any(e.weight in (Weight.FOLLOWS, Weight.DIES) and e.line.key not in outlived for e in raw)
    events: list[Event] = []
    dying: Stage | None = None  # stage of the last failure: what follows from it happened there
    for event in raw:
        told = _stage_at(event, marks, ready)
        stage = told or _stage_by_text(event)
        fatal = False
        if (shutdown is not None and event.first.key >= shutdown.first.key) or event.line.key in outlived:
            fatal = False
        elif event.weight in (Weight.DIES, Weight.FOLLOWS):
            fatal = not (event.main and ready is not None and ready.key > event.end.key)
        elif event.weight is Weight.LIKELY:
            fatal = not goes_on(event, healthy, ready)
            if fatal and ready is not None and event.first.key > ready.key and not died:
                # an error told while serving and nothing that says that the server went down
                # (and a log that ends inside a traceback says nothing either)
                traceback = event.traceback
                fatal = (
                    traceback is not None
                    and not (event.logged or traceback.cut)
                    and not is_record(traceback.root.head)
                )
        if event.kind in (EventKind.SIGNAL, EventKind.EXIT) and event.weight is Weight.FOLLOWS:
            stage = told = dying or stage
        elif fatal:
            dying = stage
        events.append(
            Event(
                event.kind,
                event.line,
                stage,
                event.rank,
                event.summary,
                traceback=event.traceback,
                fatal=fatal,
                stage_told=told is not None,
            )
        )
    return sorted(events, key=lambda e: e.line.key)


def _stage_at(event: RawEvent, marks: Sequence[StageMark], ready: Line | None) -> Stage | None:
    """The stage that the frames or the marks before it tell, None when nothing does."""
    if event.kind is EventKind.ARGPARSE:
        return Stage.ARGPARSE
    at = event.first.key
    before = [m for m in marks if m.line.key < at]
    if event.rank is not None:
        own = [m for m in before if m.rank == event.rank and m.line.stream == event.line.stream]
        # the server's process starts to listen when all ranks are done
        up = [
            m for m in before if m.rank is None and m.stage is Stage.WARMUP and m.line.file == event.line.file
        ]
        before = up or own or before
    current = before[-1].stage if before else None
    was_ready = current is Stage.SERVING or (ready is not None and ready.key < at)
    if event.traceback is not None:
        stage = stage_of_traceback(event.traceback, current, was_ready)
        if stage is not None:
            return stage
    if event.stack:
        stage = stage_of_stack(event.stack, was_ready)
        if stage is not None:
            return stage
    return Stage.SERVING if was_ready else current


def _stage_by_text(event: RawEvent) -> Stage:
    """For an event before any stage mark: what its own text suggests."""
    text = event.line.body
    if re.search(
        r"ImportError|ModuleNotFoundError|undefined symbol|cannot open shared object|No module named", text
    ):
        return Stage.IMPORT
    if event.traceback is None and event.kind in (EventKind.ERROR, EventKind.OOM_KILL, EventKind.EXIT):
        return Stage.ENV
    return Stage.SERVER_ARGS if event.traceback is not None else Stage.ENV


def _reached(events: Sequence[Event], marks: Sequence[StageMark]) -> Stage:
    """How far the launch got: the stage of the first fatal event, else the furthest stage entered."""
    fatal = [e for e in events if e.fatal]
    if fatal:
        causes = [e for e in fatal if e.kind not in (EventKind.EXIT, EventKind.SIGNAL)]
        return (causes or fatal)[0].stage
    return max((m.stage for m in marks), key=lambda s: s.order, default=Stage.ENV)
