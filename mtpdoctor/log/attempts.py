"""One log, several launches: where each begins and ends, and what its events mean in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mtpdoctor.log.command_line import best_command, commands_in, is_described
from mtpdoctor.log.event_patterns import SAID, Weight
from mtpdoctor.log.events import RawEvent, exit_status
from mtpdoctor.log.observe import Observer
from mtpdoctor.log.server_args import parse_server_args
from mtpdoctor.log.stages import (
    READY,
    ROUTER_UP,
    WORKER_UP,
    is_batch,
    mark_of,
    stage_of_stack,
    stage_of_traceback,
)
from mtpdoctor.log.survival import goes_on, outlived_by
from mtpdoctor.log.tracelines import is_record
from mtpdoctor.log.types import Attempt, Event, EventKind, Line, Span, Stage, StageMark
from mtpdoctor.patterns import lazy

LITERALS = (
    "launch_server.py:",
    "NVIDIA Release",
    "== CUDA ==",
    "Scheduled restart job",
    "Started Container",
    "Created container",
    "Container started",
    "kill_process_tree called",
    "torch.distributed.run",
)
_CONTAINER_START = lazy(
    r"^== CUDA ==|^=+ NVIDIA|Scheduled restart job, restart counter|Started [Cc]ontainer|Created container|systemd\[\d+\]: Started |^Starting \S*sglang|^Started \S*sglang"
)
# Process ids and task ids in the names of streams: a restart changes them.
_PROCESS = lazy(r"\[\d+\]|\bpid=\d+|(?<=\.)[a-z0-9]{6,}(?=@)")
# A row of the table of events under `kubectl describe`: told afterwards, of any of the container's lives.
_EVENT_ROW = lazy(r"^\s*(?:Normal|Warning)\s{2,}\w+\s{2,}\S")
_SUPERVISOR = lazy(r"\b(?:systemd|kernel|kubelet|dockerd|containerd)\b")
_LAUNCH_WARNING = lazy(r"launch_server\.py:\d+: \w*Warning")
# Fields that tell one server process from another.
_IDENTITY = (
    "host",
    "port",
    "node_rank",
    "nnodes",
    "dist_init_addr",
    "model_path",
    "disaggregation_mode",
    "base_gpu_id",
)


class _Item:
    """Something noteworthy at one line."""

    __slots__ = ("event", "line", "stage", "text", "what")

    def __init__(
        self,
        line: Line,
        what: str,
        event: RawEvent | None = None,
        stage: Stage | None = None,
        text: str | None = None,
    ) -> None:
        self.line = line
        # command | described | warning | usage | server_args | container | mark | ready | event | batch | end
        self.what = what
        self.event = event
        self.stage = stage
        self.text = text  # of a command

    @property
    def anchor(self) -> Line:
        """The line that decides which attempt it belongs to."""
        return self.line if self.event is None else self.event.line


class _State:
    """What one stream of one file has shown since the last boundary."""

    __slots__ = ("ended", "failed_main", "last", "progressed", "servers", "touched")

    def __init__(self) -> None:
        self.ended = False
        self.touched = False  # anything but a command line was seen
        self.last = 0  # last line number that belongs to it
        self.servers: list[tuple[object, ...]] = []
        self.progressed = False  # beyond server_args
        self.failed_main = False


def items_of(lines: Sequence[Line], events: Sequence[RawEvent]) -> list[_Item]:
    """Everything in ``lines`` that tells starts, stages and ends, in reading order.

    ``lines`` are those outside tracebacks.
    """
    items: list[_Item] = []
    commands = {line.key: text for text, line in commands_in(lines)}
    for line in lines:
        body = line.body
        if not body:
            continue
        if is_batch(line):
            items.append(_Item(line, "batch"))
            continue
        if line.key in commands:
            what = "described" if is_described(body) else "command"
            items.append(_Item(line, what, text=commands[line.key]))
            continue
        if "launch_server.py:" in body and _LAUNCH_WARNING.search(body):
            items.append(_Item(line, "warning"))
            continue
        if _CONTAINER_START.search(body) and not _EVENT_ROW.match(body):
            items.append(_Item(line, "container"))
            continue
        if "kill_process_tree called" in body:
            items.append(_Item(line, "end"))
            continue
        stage = mark_of(line)
        if stage is None:
            continue
        if stage is Stage.ARGPARSE:
            items.append(_Item(line, "usage", stage=stage))
        elif "server_args=" in body:
            items.append(_Item(line, "server_args", stage=stage))
        else:
            items.append(_Item(line, "ready" if READY in body else "mark", stage=stage))
    items.extend(_Item(e.first, "event", event=e) for e in events)
    items.sort(key=lambda item: item.line.key)
    return items


def boundaries(items: Sequence[_Item]) -> list[int]:
    """Line numbers of one file at which a new launch attempt begins (the first attempt's start is not listed)."""
    out: list[int] = []
    states: dict[str, _State] = {}
    since: list[str] = []  # what came after the last boundary
    for item in items:
        group = _PROCESS.sub("", item.line.stream)
        state = states.setdefault(group, _State())
        touched = [s for s in states.values() if s.touched]
        if item.what == "container":  # told by another program: it speaks of all
            start = bool(touched) and all(s.ended for s in touched)
        else:
            start = _starts(item, state)
        if start:
            at = item.line.number
            if item.what in ("server_args", "event", "mark") and state.last:
                at = min(at, state.last + 1)
            if not out or at > out[-1]:
                out.append(at)
            if item.what == "container":
                states.clear()
            state = states[group] = _State()
            since = []
        since.append(item.what)
        _note(item, state)
        if item.event is not None and _SUPERVISOR.search(group) and state.ended:
            for other in states.values():
                other.ended = True
    if out and set(since) <= {"container", "warning", "command", "described"}:
        out.pop()  # a restart (or a command written below the log) that nothing is known of yet
    return out


def _starts(item: _Item, state: _State) -> bool:
    if not state.touched or (item.line.number <= state.last and item.event is None):
        return False  # nothing yet, or inside a traceback
    if item.what == "command":
        return state.ended or state.progressed or bool(state.servers)
    if item.what in ("usage", "warning"):
        return state.ended
    if item.what == "server_args":
        identity = _identity(item.line)
        if (
            state.servers
            and identity not in state.servers
            and identity[2] not in (None, *[s[2] for s in state.servers])
        ):
            return False  # another node of the same launch
        if state.ended:
            return bool(state.servers) or state.failed_main or state.progressed
        return identity in state.servers and state.progressed
    if item.what == "mark":
        return state.ended and state.progressed and item.stage is Stage.DIST_INIT and state.failed_main
    if item.what == "event" and item.event is not None and item.event.main:
        # Ranks and nodes whose processes die together print their tracebacks back to back.
        return state.ended and state.failed_main and item.line.number > state.last + 2
    if item.what == "event" and item.event is not None and item.event.kind is EventKind.ARGPARSE:
        return state.ended
    return False


def _identity(line: Line) -> tuple[object, ...]:
    args = parse_server_args(line.text) or {}
    return tuple(str(args.get(name)) if name in args else None for name in _IDENTITY)


def _note(item: _Item, state: _State) -> None:
    event = item.event
    if event is not None and event.weight is Weight.NONE and event.line.body.startswith(SAID):
        return  # "Failed to load an optional file": as likely the first line of the next attempt
    end = event.end if event is not None else item.line
    state.last = max(state.last, end.number)
    if item.what in ("command", "described", "container"):
        return
    state.touched = True
    if item.what == "server_args":
        state.servers.append(_identity(item.line))
    elif item.what in ("mark", "ready", "batch"):
        state.progressed = True
    elif item.what == "end":
        state.ended = state.ended or "include_parent=True" in item.line.body
    elif event is not None:
        if event.main or event.kind is EventKind.ARGPARSE:
            state.ended = state.failed_main = True
        elif event.kind in (EventKind.SIGNAL, EventKind.EXIT, EventKind.SHUTDOWN, EventKind.OOM_KILL):
            state.ended = state.ended or event.weight is not Weight.NONE or exit_status(event.line.body) == 0
        elif event.kind is EventKind.ERROR and event.weight is Weight.DIES and not is_record(event.line):
            state.ended = True


# -- one attempt ---------------------------------------------------------------------------------------


def build_attempt(
    index: int,
    spans: Sequence[Span],
    items: Sequence[_Item],
    lines: Sequence[Line],
) -> Attempt:
    """The attempt made of ``items`` and ``lines`` (both in order, of these spans only)."""
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
    raw = [i.event for i in items if i.event is not None]
    healthy = sorted([m.line for m in marks] + batches, key=lambda x: x.key)
    shutdown = _shutdown(raw, ready)
    events = tuple(_weigh(raw, marks, healthy, batches, shutdown, ready))
    observer = Observer()
    for line in lines:
        observer.feed(line)
    shown = [(i.text, i.line) for i in items if i.text is not None]
    text, command = best_command(shown, _arguments(items)) or (None, None)
    return Attempt(
        index=index,
        first=(spans[0].file, spans[0].first),
        last=(spans[-1].file, spans[-1].last),
        marks=tuple(marks),
        events=events,
        observations=observer.finish(),
        command=command,
        ready=ready,
        stage=_reached(events, marks),
        shutdown=shutdown.line if shutdown is not None else None,
        spans=tuple(spans),
        command_text=text,
        served=batches[-1] if batches else None,
    )


def _arguments(items: Sequence[_Item]) -> Mapping[str, Any] | None:
    """The server arguments that the log prints first."""
    shown = next((i.line for i in items if i.what == "server_args"), None)
    return parse_server_args(shown.text) if shown is not None else None


def _worker_up(items: Sequence[_Item]) -> Line | None:
    """Where the log is of nodes other than the first, or of a router: the line that shows that they are up. They never
    say that they are ready; up to 0.4.8 their health server speaks as the real one does."""
    shown = [parse_server_args(i.line.text) or {} for i in items if i.what == "server_args"]
    ranks = [args.get("node_rank") for args in shown]
    if not shown:
        router = next((i.line for i in items if i.what == "mark" and ROUTER_UP in i.line.body), None)
        if router is not None:
            return router
    if any(not isinstance(rank, int) or rank < 1 for rank in ranks):
        return None
    texts = WORKER_UP if not ranks else (*WORKER_UP, "Uvicorn running on")
    return next((i.line for i in items if i.what == "mark" and any(t in i.line.body for t in texts)), None)


def _marks(items: Sequence[_Item]) -> list[StageMark]:
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
