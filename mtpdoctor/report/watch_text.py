"""The events of a watched launch for people: lines that stay, and one line that is written over."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.log.types import Stage
from mtpdoctor.report.style import Style
from mtpdoctor.report.text import STAGES
from mtpdoctor.text import cut, one_line, safe, wrap
from mtpdoctor.watch.types import (
    AttemptRecord,
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Lingers,
    Process,
    Progress,
    Ready,
    Resumed,
    StageReached,
    Stuck,
    WatchEvent,
)

_LEAD = "mtpdoctor: "
_STEP = 4  # of a bar, without a terminal: a line each quarter


class WatchText:
    """Events in, lines out. Keeps what the one line of the present shows: stage, progress, memory, time."""

    def __init__(self, *, color: bool = False, columns: int = 80) -> None:
        self._style = Style(color)
        self.columns = columns
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of the launch yet."""
        self._stage = Stage.ENV
        self._since = 0.0
        self._usual: tuple[float, float] | None = None
        self._ranks: dict[str, Stage] = {}
        self._progress: Progress | None = None
        self._steps: set[tuple[Stage, str | None, int]] = set()
        self._gpus: GpuUse | None = None
        self._serving = False
        self._stuck = False
        self._follows = False  # somebody else's launch

    def lines(self, event: WatchEvent, *, live: bool = False) -> list[str]:
        """Lines to be printed and kept. ``live``: what only ``status`` needs to show is left out."""
        if isinstance(event, Launched):
            self._begin()  # perhaps again
            return self._launched(event)
        if isinstance(event, StageReached):
            return self._reached(event)
        if isinstance(event, Progress):
            return self._advanced(event, live)
        if isinstance(event, GpuUse):
            self._gpus = event
            return []
        if isinstance(event, Ready):
            return [self._say(event.at, f"SGLang says it is ready at {event.url}", "bold")]
        if isinstance(event, Generated):
            return self._generated(event)
        if isinstance(event, Stuck):
            return self._stood_still(event)
        if isinstance(event, Resumed):
            self._stuck = False
            return [self._say(event.at, f"it goes on: {_name(event.stage)}", "green")]
        if isinstance(event, Lingers):
            return self._lingers(event)
        if isinstance(event, Ended):
            return self._ended(event)
        return []

    def status(self, at: float) -> str:
        """The present in one line that fits the columns: stage, how long, what is usual, progress, memory."""
        state = "stands still" if self._stuck else "generating" if self._serving else _name(self._stage)
        parts = [f"{_clock(at)} {state}"]
        if not self._serving:
            parts[0] += f" {_seconds(at - self._since)}"
            if self._usual is not None:
                parts[0] += f" (usual {_range(self._usual)})"
        if self._progress is not None and self._progress.stage is self._stage:
            parts.append(f"{self._progress.done}/{self._progress.total} {self._progress.unit}")
        behind = sum(stage.order < self._stage.order for stage in self._ranks.values())
        if behind and not self._serving:
            parts.append(f"{len(self._ranks) - behind}/{len(self._ranks)} ranks")
        if self._gpus is not None:
            parts.append(memory(self._gpus))
        return cut(" | ".join(parts), max(self.columns - 1, 1))[0]

    # -- one kind each -----------------------------------------------------------------------------------
    def _launched(self, event: Launched) -> list[str]:
        self._follows = event.pid is None
        if self._follows:
            text = (
                f"following {event.command}; kept in {event.log}"
                if event.command
                else f"following {event.log}"
            )
            return [self._say(event.at, text, "dim")]
        out = [self._say(event.at, f"launched, pid {event.pid}; log kept in {event.log}", "bold")]
        out += [self._say(event.at, f"environment: {text}", "dim") for text in event.environment]
        return out

    def _reached(self, event: StageReached) -> list[str]:
        if event.rank is not None:
            self._ranks[event.rank] = event.stage
        if event.stage.order < self._stage.order and event.stage is Stage.SERVER_ARGS:  # it begins anew
            self._ranks.clear()
            self._serving = False
        elif event.stage.order <= self._stage.order:
            return []  # another rank was first
        before, self._stage, self._since = self._stage, event.stage, event.at
        self._usual, self._progress = event.usual, None
        if event.stage is Stage.SERVING:
            return []  # Ready says it
        took = ""
        if event.took is not None and before is not Stage.ENV:
            took = f" ({_name(before)} took {_seconds(event.took)})"
        usual = f", usually {_range(event.usual)}" if event.usual else ""
        if event.stage is Stage.WEIGHTS and not event.usual:
            usual = ", how long depends on their size and disk"
        where = f" [{memory(self._gpus)}]" if self._gpus is not None else ""
        rank = f" on {event.rank}" if event.rank else ""
        return [self._say(event.at, f"{_name(event.stage)}{rank}{usual}{took}{where}", "cyan")]

    def _advanced(self, event: Progress, live: bool) -> list[str]:
        if event.stage is self._stage:
            self._progress = event
        quarter = event.done * _STEP // event.total
        key = (event.stage, event.rank, quarter)
        if live or quarter == 0 or key in self._steps:
            return []
        self._steps.add(key)
        rank = f" on {event.rank}" if event.rank else ""
        return [
            self._say(event.at, f"{_name(event.stage)}{rank}: {event.done}/{event.total} {event.unit}", "dim")
        ]

    def _generated(self, event: Generated) -> list[str]:
        if not event.ok:
            return [self._say(event.at, f"it does not generate: {event.said}", "red"), *self._warned(event)]
        self._serving = True
        if not event.tokens:  # an embedding, or a node that others ask
            return [self._say(event.at, f"READY: {event.said}", "green"), *self._warned(event)]
        figures = [f"{event.tokens} tokens"]
        if event.seconds is not None:
            figures.append(f"in {event.seconds:.2f} s")
        if event.tokens_per_s is not None:
            figures.append(f"({event.tokens_per_s:.0f} tokens/s)")
        if event.accept_length is not None:
            figures.append(f"accept length {event.accept_length:.2f}")
        head = self._say(event.at, f"READY, it generates: {' '.join(figures)}", "green")
        said = [f"{_LEAD}  it says: {one_line(event.said)}"] if event.said else []
        return [head, *said, *self._warned(event)]

    def _warned(self, event: Generated) -> list[str]:
        return [self._say(event.at, f"warning: {text}", "yellow") for text in event.warnings]

    def _stood_still(self, event: Stuck) -> list[str]:
        self._stuck = not event.compiling
        what = "busy compiling, not stuck" if event.compiling else "STANDS STILL"
        text = f"{what}: {_name(event.stage)}, no sign of progress for {_seconds(event.quiet_s)}"
        out = [self._say(event.at, text, "yellow")]
        if event.behind:
            out.append(f"{_LEAD}  behind: {', '.join(event.behind)}")
        out += [f"{_LEAD}  {one_line(process_line(p))}" for p in event.processes]
        for process in event.processes:
            out += [f"{_LEAD}      {one_line(frame)}" for frame in process.stack[-4:]]
        out += [f"{_LEAD}  {i}. {one_line(text)}" for i, text in enumerate(event.likely, 1)]
        return out

    def _lingers(self, event: Lingers) -> list[str]:
        return [
            self._say(
                event.at, f"HAS FAILED, and does not end: {one_line(event.title)} ({event.rule})", "red"
            ),
            f"{_LEAD}  {one_line(event.root)[:200]}",
            f"{_LEAD}  Ctrl-C ends it",
        ]

    def _ended(self, event: Ended) -> list[str]:
        after = f"after {_seconds(event.at)}"
        if event.how is End.DETACHED:
            return [self._say(event.at, "left running; mtpdoctor runs lists it", "bold")]
        style = "bold"
        if event.how is End.STOPPED:
            text = f"{'no longer watched' if self._follows else 'ended as asked'}, {after}"
        elif event.report is not None and event.report.outcome == "failed":
            text, style = f"DIED {_at(event.stage)}, {after}", "red"
        elif self._follows:
            text = f"the log ended {_at(event.stage)}, {after}"
        else:
            text, style = f"ended by itself {_at(event.stage)}, {after}", "red"
        if not self._follows:
            text += _code(event.code)
        out = [self._say(event.at, text, style)]
        if event.left_over:
            pids = ", ".join(map(str, event.left_over))
            out.append(self._say(event.at, f"left behind by it, and killed: pid {pids}", "yellow"))
        return out

    def _say(self, at: float, text: str, style: str) -> str:
        return f"{_LEAD}{self._style('dim', _clock(at))} {self._style(style, safe(' '.join(text.split())))}"


def memory(use: GpuUse) -> str:
    """``GPU 0 12.3/139.8 GiB``; of several GPUs the used only, in a row."""
    if len(use.used_gib) == 1:
        return f"GPU {use.used_gib[0]:.1f}/{use.total_gib[0]:.0f} GiB"
    return f"GPUs {' '.join(f'{used:.0f}' for used in use.used_gib)} of {max(use.total_gib):.0f} GiB"


def process_line(process: Process) -> str:
    """One process that stands still, on one line."""
    parts = [f"pid {process.pid} {process.name}"]
    if process.rank:
        parts.append(process.rank)
    parts.append(process.state)
    if process.cpu_percent is not None:
        parts.append(f"CPU {process.cpu_percent:.0f} %")
    if process.read_bytes_per_s:
        parts.append(f"reads {process.read_bytes_per_s / 2**20:.0f} MiB/s")
    if process.gpu_percent is not None:
        parts.append(f"GPU {process.gpu_percent} %")
    return ", ".join(parts)


def history_lines(history: Sequence[AttemptRecord], columns: int = 80) -> list[str]:
    """The attempts of a launch that was retried: what was changed, how far each came, and why it ended."""
    out: list[str] = []
    for record in history:
        change = "; ".join(record.edits) if record.edits else "as given"
        why = (
            f": {record.rule}: {record.cause}" if record.rule else f": {record.cause}" if record.cause else ""
        )
        text = f"{record.number}. {change} -> {_name(record.stage)}, {_seconds(record.seconds)}{why}"
        first, *rest = wrap(safe(" ".join(text.split())), max(columns - 3, 20))
        out += [first, *(f"   {row}" for row in rest)]
    return out


def _name(stage: Stage) -> str:
    return STAGES.get(stage.value, stage.value)


def _at(stage: Stage) -> str:
    return _name(stage) if stage is Stage.ENV else f"at {_name(stage)}"


def _clock(at: float) -> str:
    whole = int(at)
    return (
        f"{whole // 60}:{whole % 60:02}"
        if whole < 3600
        else f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    )


def _seconds(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _range(usual: tuple[float, float]) -> str:
    low, high = usual
    return f"{low:.0f}-{high:.0f} s" if high < 120 else f"{low:.0f} s to {high / 60:.0f} min"


def _code(code: int | None) -> str:
    if code is None:
        return ""
    if code < 0:
        from mtpdoctor.watch.postmortem import signal_name

        return f", killed by {signal_name(-code)}"
    return f", exit code {code}"
