"""A watched launch in words, bars and graphs of plain characters. No Textual here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpdoctor.log.types import Stage
from mtpdoctor.report.text import STAGES
from mtpdoctor.tui.launch.state import GpuTrack, LaunchState
from mtpdoctor.watch.types import AttemptRecord, End, Process

BLOCKS = " ▁▂▃▄▅▆▇█"
# What a launch passes through, in its order; the others are named only when they are reached.
EXPECTED = (
    Stage.IMPORT, Stage.SERVER_ARGS, Stage.DIST_INIT, Stage.WEIGHTS, Stage.MEMORY_POOL, Stage.GRAPH_CAPTURE,
    Stage.WARMUP, Stage.SERVING,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the stages. ``kind``: "done", "now", "slow" (longer than usual), "to come", "died"."""

    kind: str
    name: str
    time: str
    usual: str
    progress: str = ""


def seconds(value: float) -> str:
    """ "0.4 s", "12 s", "3:05 min", "1:02 h"."""
    if value < 10:
        return f"{max(value, 0):.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    whole = int(value)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def headline(state: LaunchState, now: float) -> tuple[str, str]:
    """(kind, text) of the first line: "busy", "good", "bad", "doubtful", "idle". ``now``: seconds since launch."""
    ended, generated = state.ended, state.generated
    if ended is not None:
        return _ended(state)
    if state.launched is None:
        return "idle", "Nothing has been launched."
    if state.ending:
        if state.ending == "gently":
            return "doubtful", "Ending it gently ... Ctrl+C again: hard"
        return "doubtful", "Ending it hard ..."
    if generated is not None:
        if not generated.ok:
            return "bad", f"Ready, but does not generate: {generated.said}"
        return ("doubtful" if generated.warnings else "good"), f"Ready and generating{_figures(state)}"
    if state.ready is not None:
        return "busy", f"Says it is ready at {state.ready.url}; asking it for tokens ..."
    stage = STAGES.get(state.stage.value, state.stage.value)
    if state.lingers is not None:
        return "bad", f"Has failed, and does not end ({state.lingers.rule}): {state.lingers.title}"
    if state.stuck is not None:
        quiet = f"no output for {seconds(state.stuck.quiet_s)}"
        if state.stuck.compiling:
            return "busy", f"Compiling kernels ({stage}), {quiet}: slow, not stuck"
        return "doubtful", f"Stands still at {stage}: {quiet}"
    what = stage if state.stages else "starting"
    return "busy", f"{what[0].upper()}{what[1:]} ... {seconds(now)}"


def _figures(state: LaunchState) -> str:
    generated = state.generated
    assert generated is not None
    parts = []
    if generated.tokens_per_s is not None:
        parts.append(f"{generated.tokens_per_s:.0f} tokens/s")
    if generated.accept_length is not None:
        parts.append(f"acceptance length {generated.accept_length:.2f}")
    if state.ready is not None:
        parts.append(state.ready.url)
    return f": {', '.join(parts)}" if parts else ""


def _ended(state: LaunchState) -> tuple[str, str]:
    ended = state.ended
    assert ended is not None
    stage = STAGES.get(ended.stage.value, ended.stage.value)
    after = f"after {seconds(ended.at)}"
    if ended.how is End.STOPPED:
        left = f"; {len(ended.left_over)} of its processes had to be killed" if ended.left_over else ""
        return "idle", f"Ended by you {after}{left}"
    if ended.how is End.DETACHED:
        return (
            "idle",
            f"Runs on by itself, watched no longer; its log: {state.launched.log if state.launched else ''}",
        )
    if ended.how is End.REFUSED:
        return "bad", "Could not be started"
    code = ""
    if ended.code is not None:
        code = f" (signal {-ended.code})" if ended.code < 0 else f" (exit code {ended.code})"
    first = ended.report.diagnoses[0] if ended.report is not None and ended.report.diagnoses else None
    why = f": {first.title}" + (f" ({first.rule})" if first.rule else "") if first else ""
    return "bad", f"Died {after}, {stage}{code}{why}"


def stage_rows(state: LaunchState, now: float) -> tuple[Row, ...]:
    """The stages reached, with their times, then those to come."""
    out: list[Row] = []
    reached = {row.stage for row in state.stages}
    died = state.ended is not None and state.ended.how is End.DIED
    for i, row in enumerate(state.stages):
        last = i == len(state.stages) - 1
        usual = f"usual {_range(row.usual)}" if row.usual else ""
        if last and row.took is None:
            took = now - row.began
            slow = row.usual is not None and took > row.usual[1]
            kind = "done" if row.stage is Stage.SERVING else "slow" if slow else "now"
            time = "" if row.stage is Stage.SERVING else seconds(took)
            out.append(Row(kind, _name(row.stage), time, usual, _progress(state)))
        else:
            took = row.took or 0.0
            kind = "died" if died and last else "done"
            out.append(Row(kind, _name(row.stage), seconds(took), usual))
    if state.ended is None:
        furthest = state.stage.order if state.stages else -1
        out += [Row("to come", _name(s), "", "") for s in EXPECTED if s not in reached and s.order > furthest]
    return tuple(out)


_SHORT = {
    Stage.ENV: "environment",
    Stage.IMPORT: "importing",
    Stage.ARGPARSE: "command line",
    Stage.SERVER_ARGS: "arguments",
    Stage.CONFIG: "model config",
    Stage.TOKENIZER: "tokenizer",
    Stage.DIST_INIT: "GPUs and ranks",
    Stage.WEIGHTS: "weights",
    Stage.MEMORY_POOL: "memory pool",
    Stage.GRAPH_CAPTURE: "CUDA graphs",
    Stage.WARMUP: "warm-up",
    Stage.SERVING: "serving",
}


def _name(stage: Stage) -> str:
    return _SHORT.get(stage, stage.value)


def _range(usual: tuple[float, float]) -> str:
    """ "1-6 s", "5 s to 1 min", "2-10 min"."""
    low, high = usual
    if high < 60:
        return f"{low:.0f}-{high:.0f} s"
    if low < 60:
        return f"{low:.0f} s to {high / 60:.2g} min"
    return f"{low / 60:.2g}-{high / 60:.2g} min"


def _progress(state: LaunchState) -> str:
    progress = state.progress
    if progress is None or progress.total <= 0:
        return ""
    return f"{bar(progress.done / progress.total, 6)} {progress.done}/{progress.total} {progress.unit}"


def bar(share: float, width: int) -> str:
    """A bar of ``width`` characters, filled to ``share`` (0 to 1)."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)


def spark(values: Sequence[float], top: float, width: int) -> str:
    """All values as ``width`` blocks, 0 to ``top`` (so that two GPUs can be compared), the newest at the
    right. Where there are more values than blocks, each block is the largest of its share of them."""
    if width <= 0 or top <= 0:
        return ""
    n = len(values)
    if n > width:
        values = [max(values[i * n // width : (i + 1) * n // width]) for i in range(width)]
    cells = []
    for value in values:
        share = min(max(value / top, 0.0), 1.0)
        cells.append(BLOCKS[0] if share == 0 else BLOCKS[max(1, round(share * (len(BLOCKS) - 1)))])
    return "".join(cells).rjust(width)


def gpu_label(index: int, track: GpuTrack) -> str:
    """ "GPU 0  71.2 of 139.7 GiB, 70.1 by this launch"."""
    used = track.used[-1] if track.used else 0.0
    own = f", own {track.own:.1f}" if track.own >= 0.05 else ""
    return f"GPU {index} {used:.1f}/{track.total:.1f} GiB{own}"


def notes_of(state: LaunchState) -> tuple[tuple[str, str], ...]:
    """(kind, text) of what should be read: warnings of the proof, why it stands still."""
    out: list[tuple[str, str]] = []
    if state.generated is not None:
        if state.generated.ok and state.generated.said:
            out.append(("muted", f"It said: {state.generated.said}"))
        out += [("doubtful", text) for text in state.generated.warnings]
    stuck = state.stuck
    if stuck is not None and not stuck.compiling:
        if stuck.behind:
            out.append(("doubtful", f"Behind the others: {', '.join(stuck.behind)}"))
        out += [("doubtful", text) for text in stuck.likely]
        out += [("muted", process_words(p)) for p in stuck.processes]
    return tuple(out)


def process_words(process: Process) -> str:
    """One process of a launch that stands still, in a line."""
    parts = [process.state]
    if process.cpu_percent is not None:
        parts.append(f"CPU {process.cpu_percent:.0f}%")
    if process.gpu_percent is not None:
        parts.append(f"GPU {process.gpu_percent}%")
    if process.stack:
        parts.append(f"in {process.stack[-1]}")
    who = f"{process.rank} " if process.rank else ""
    return f"{who}{process.name} (pid {process.pid}): {', '.join(parts)}"


def history_row(record: AttemptRecord) -> tuple[str, str, str, str, str]:
    """Number, what was changed, how far it came, how long, why it ended."""
    edits = (
        "; ".join(record.edits)
        if record.edits
        else ("as it was" if record.number == 1 else "nothing changed")
    )
    rule = f"{record.rule} " if record.rule else ""
    return str(record.number), edits, record.stage.value, seconds(record.seconds), f"{rule}{record.cause}"


def line_kind(line: str) -> str:
    """How a line of the output is shown: "error", "warning" or ""."""
    if "Traceback (most recent" in line or "Error: " in line or " ERROR" in line or line.startswith("ERROR"):
        return "error"
    return "warning" if "WARNING" in line or "Warning: " in line else ""
