"""One log, several launches: where each begins and ends."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.log.command_line import commands_in, is_described
from mtpdoctor.log.event_patterns import SAID, Weight
from mtpdoctor.log.events import RawEvent, exit_status
from mtpdoctor.log.server_args import parse_server_args
from mtpdoctor.log.stages import (
    READY,
    is_batch,
    mark_of,
)
from mtpdoctor.log.tracelines import is_record
from mtpdoctor.log.types import EventKind, Line, Stage
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


class Item:
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

    __slots__ = ("ended", "failed_main", "last", "progressed", "ranks", "servers", "touched")

    def __init__(self) -> None:
        self.ended = False
        self.touched = False  # anything but a command line was seen
        self.last = 0  # last line number that belongs to it
        self.servers: list[tuple[object, ...]] = []
        self.ranks: set[str | None] = {None}  # that have written; lines of a launch on one GPU name none
        self.progressed = False  # beyond server_args
        self.failed_main = False


def items_of(lines: Sequence[Line], events: Sequence[RawEvent]) -> list[Item]:
    """Everything in ``lines`` that tells starts, stages and ends, in reading order.

    ``lines`` are those outside tracebacks.
    """
    items: list[Item] = []
    commands = {line.key: text for text, line in commands_in(lines)}
    for line in lines:
        body = line.body
        if not body:
            continue
        if is_batch(line):
            items.append(Item(line, "batch"))
            continue
        if line.key in commands:
            what = "described" if is_described(body) else "command"
            items.append(Item(line, what, text=commands[line.key]))
            continue
        if "launch_server.py:" in body and _LAUNCH_WARNING.search(body):
            items.append(Item(line, "warning"))
            continue
        if _CONTAINER_START.search(body) and not _EVENT_ROW.match(body):
            items.append(Item(line, "container"))
            continue
        if "kill_process_tree called" in body:
            items.append(Item(line, "end"))
            continue
        stage = mark_of(line)
        if stage is None:
            continue
        if stage is Stage.ARGPARSE:
            items.append(Item(line, "usage", stage=stage))
        elif "server_args=" in body:
            items.append(Item(line, "server_args", stage=stage))
        else:
            items.append(Item(line, "ready" if READY in body else "mark", stage=stage))
    items.extend(Item(e.first, "event", event=e) for e in events)
    items.sort(key=lambda item: item.line.key)
    return items


def boundaries(items: Sequence[Item]) -> list[int]:
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
        told = item.event is not None and bool(_SUPERVISOR.search(group))
        since.append("supervised" if told else item.what)
        _note(item, state)
        if item.event is not None and _SUPERVISOR.search(group) and state.ended:
            for other in states.values():
                other.ended = True
    if out and set(since) <= {"container", "warning", "command", "described", "supervised"}:
        out.pop()  # a restart (or a command written below the log) of which the program itself says nothing
    return out


def _starts(item: Item, state: _State) -> bool:
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
        # A rank that wrote nothing before the others failed is late, not started anew.
        anew = state.ended and state.progressed and state.failed_main and item.line.rank in state.ranks
        return anew and item.stage is Stage.DIST_INIT
    if item.what == "event" and item.event is not None and item.event.main:
        # Ranks and nodes whose processes die together print their tracebacks back to back.
        apart = item.line.number > state.last + 2
        return state.ended and state.failed_main and apart and not _is_probe(item.event)
    if item.what == "event" and item.event is not None and item.event.kind is EventKind.ARGPARSE:
        return state.ended
    return False


def _is_probe(event: RawEvent) -> bool:
    """``python -c "import x"`` that a person typed below a launch to look at something."""
    frames = event.traceback.frames if event.traceback is not None else ()
    return (
        bool(frames)
        and frames[0].path in ("<string>", "<stdin>")
        and not any("sglang" in f.path for f in frames)
    )


def _identity(line: Line) -> tuple[object, ...]:
    args = parse_server_args(line.text) or {}
    return tuple(str(args.get(name)) if name in args else None for name in _IDENTITY)


def _note(item: Item, state: _State) -> None:
    event = item.event
    if event is not None and event.weight is Weight.NONE and event.line.body.startswith(SAID):
        return  # "Failed to load an optional file": as likely the first line of the next attempt
    end = event.end if event is not None else item.line
    state.last = max(state.last, end.number)
    if item.what in ("command", "described", "container"):
        return
    state.touched = True
    if not state.ended or event is not None:
        state.ranks.add(item.anchor.rank if event is None else event.rank)
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
