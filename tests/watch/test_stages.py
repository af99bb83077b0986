"""Stages as they come: per rank, with times, progress, and what is usual."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.diagnose.given import Given
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import read_logs
from mtpdoctor.log.types import Stage
from mtpdoctor.watch.gpus import GpuSampler
from mtpdoctor.watch.lines import LineCutter
from mtpdoctor.watch.stages import StageTracker
from mtpdoctor.watch.types import Progress, StageReached
from mtpdoctor.watch.usual import usual, weight_bytes

DATA = Path(__file__).resolve().parents[1] / "data"
RECORDED = sorted((DATA / "h200_logs").glob("*.log")) + sorted((DATA / "real_logs").glob("*.log"))


def fed(text: str, at: float = 0.0, late: bool = False, tracker: StageTracker | None = None) -> list[object]:
    tracker = tracker or StageTracker()
    lines = LineCutter().feed(text.encode() + b"\n").lines
    return [event for line in lines for event in tracker.feed(line, at, late=late)]


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_as_far_as_the_whole_log_says(path: Path) -> None:
    """Live, from pieces, the stage of the last attempt's marks is the one that reading the whole file finds."""
    tracker, cutter = StageTracker(), LineCutter()
    data = path.read_bytes()
    for at in range(0, len(data), 4096):
        for line in cutter.feed(data[at : at + 4096]).lines:
            list(tracker.feed(line, 0.0))
    for line in cutter.last().lines:
        list(tracker.feed(line, 0.0))
    attempt = read_logs([str(path)]).attempt
    assert attempt is not None
    marks = [m.stage for m in attempt.marks if m.stage is not Stage.ARGPARSE]
    assert tracker.stage is max(marks, key=lambda s: s.order, default=Stage.ENV)
    assert (tracker.ready_line is not None) == (attempt.ready is not None)


def _wrap() -> Any:
    """The transports that the tests of reading logs use."""
    path = Path(__file__).resolve().parents[1] / "log" / "wrap.py"
    spec = importlib.util.spec_from_file_location("wrapped_logs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRAP = _wrap()


def followed(data: bytes, size: int) -> list[tuple[Stage, str | None]]:
    tracker, cutter = StageTracker(), LineCutter()
    lines = [line for at in range(0, len(data), size) for line in cutter.feed(data[at : at + size]).lines]
    events = [event for line in (*lines, *cutter.last().lines) for event in tracker.feed(line, 0.0)]
    return [(event.stage, event.rank) for event in events if isinstance(event, StageReached)]


@pytest.mark.parametrize("transport", WRAP.TRANSPORTS)
def test_however_the_log_is_carried(transport: str) -> None:
    """Live, where the transport is learned from what has come so far."""
    path = DATA / "h200_logs" / "dp2_ready.log"
    lines = path.read_text().splitlines()[1:]
    assert followed(WRAP.wrap(lines, transport), 1500) == followed("\n".join(lines).encode(), 1500)


def test_each_rank_has_its_own_stages_and_times() -> None:
    tracker = StageTracker(Stage.IMPORT)
    first = tracker.start(0.0)
    assert first is not None and first.stage is Stage.IMPORT and first.usual == usual(Stage.IMPORT)
    fed("server_args=ServerArgs(model_path='m')", 8.0, tracker=tracker)
    fed("[2026-11-29 15:20:19 TP0] Init torch distributed begin.", 20.0, tracker=tracker)
    fed("[2026-11-29 15:20:19 TP1] Init torch distributed begin.", 21.0, tracker=tracker)
    (event,) = fed("[2026-11-29 15:20:22 TP1] Load weight begin. avail mem=1 GB", 24.5, tracker=tracker)
    assert event == StageReached(24.5, Stage.WEIGHTS, "TP1", 3.5, usual(Stage.WEIGHTS))
    assert tracker.ranks == {"TP0": Stage.DIST_INIT, "TP1": Stage.WEIGHTS}
    assert tracker.stage is Stage.WEIGHTS


def test_a_log_that_is_read_late_tells_its_own_times() -> None:
    text = "[2026-11-29 15:20:19] Init torch distributed begin.\n[2026-11-29 15:21:01] Load weight begin. avail mem=1 GB"
    events = fed(text, 0.5, late=True)
    assert [(e.stage, e.took) for e in events if isinstance(e, StageReached)] == [
        (Stage.DIST_INIT, None),
        (Stage.WEIGHTS, 42.0),
    ]


@pytest.mark.parametrize(
    ("line", "stage", "done", "total", "unit"),
    [
        (
            "Loading safetensors checkpoint shards:  50% Completed | 5/10 [00:01<00:01,  5.00it/s]",
            Stage.WEIGHTS,
            5,
            10,
            "shards",
        ),
        (
            "Multi-thread loading shards:  25% Completed | 4/16 [00:01<00:03,  4.00it/s]",
            Stage.WEIGHTS,
            4,
            16,
            "shards",
        ),
        (
            "Capturing batches (bs=4 avail_mem=117.53 GB):  33%|###  | 1/3 [00:01<?, ?it/s]",
            Stage.GRAPH_CAPTURE,
            1,
            3,
            "graphs",
        ),
        (
            "Compiling num tokens (num_tokens=64):  10%|#    | 2/20 [00:01<?, ?it/s]",
            Stage.GRAPH_CAPTURE,
            2,
            20,
            "graphs",
        ),
    ],
)
def test_progress_within_a_stage(line: str, stage: Stage, done: int, total: int, unit: str) -> None:
    progress = [e for e in fed(line, 1.0) if isinstance(e, Progress)]
    assert progress == [Progress(1.0, stage, None, done, total, unit)]


def test_the_same_progress_is_told_once() -> None:
    tracker = StageTracker()
    bar = "Capturing batches (bs=4 avail_mem=1 GB):  33%|###  | 1/3 [00:01<?, ?it/s]"
    assert len([e for e in fed(f"{bar}\n{bar}", tracker=tracker) if isinstance(e, Progress)]) == 1


def test_a_bar_without_a_rank_is_no_stage_of_a_rank_of_its_own() -> None:
    tracker = StageTracker()
    fed("[2026-11-29 15:20:23 DP1] Capture cuda graph begin. avail mem=1 GB", tracker=tracker)
    events = fed("Capturing batches (bs=4 avail_mem=1 GB):  33%|###  | 1/3 [00:01<?, ?it/s]", tracker=tracker)
    assert [type(e) for e in events] == [Progress]


def test_a_draft_model_loaded_later_is_no_step_back() -> None:
    tracker = StageTracker()
    fed("Memory pool end. avail mem=1 GB", tracker=tracker)
    assert fed("Load weight begin. avail mem=1 GB", tracker=tracker) == []
    assert tracker.stage is Stage.MEMORY_POOL


def test_a_launch_that_begins_anew_is_followed_from_its_beginning() -> None:
    tracker = StageTracker()
    fed("The server is fired up and ready to roll!", tracker=tracker)
    assert tracker.ready_line is not None
    (event,) = fed("server_args=ServerArgs(model_path='m')", 9.0, tracker=tracker)
    assert isinstance(event, StageReached) and event.stage is Stage.SERVER_ARGS
    assert tracker.restarted == 1 and tracker.ready_line is None and tracker.stage is Stage.SERVER_ARGS


def test_only_what_waits_for_something_has_a_usual_time() -> None:
    assert usual(Stage.SERVING) is None
    for stage in (
        Stage.IMPORT,
        Stage.DIST_INIT,
        Stage.MEMORY_POOL,
        Stage.GRAPH_CAPTURE,
        Stage.WARMUP,
    ):
        low, high = usual(stage) or (1.0, 0.0)
        assert 0 <= low < high


def test_what_is_usual_for_weights_grows_with_them(tmp_path: Path) -> None:
    assert usual(Stage.WEIGHTS) is None  # nobody knows
    small, large = usual(Stage.WEIGHTS, 1 << 30), usual(Stage.WEIGHTS, 600 << 30)
    assert small is not None and large is not None
    assert small[1] <= 10 and large[0] > 60 and large[1] > 1800
    (tmp_path / "config.json").write_text("{}")
    for number in (1, 2):
        with open(tmp_path / f"model-{number}.safetensors", "wb") as file:
            file.truncate(5 << 30)
    start = "python -m sglang.launch_server --model-path"
    known = weight_bytes(Given(document=read_launch(f"{start} {tmp_path}")))
    assert known == 10 << 30
    assert weight_bytes(Given(document=read_launch(f"{start} {tmp_path} --load-format dummy"))) == 0
    assert (
        weight_bytes(Given(document=read_launch(f"{start} /none/M"))) is None
        and weight_bytes(Given()) is None
    )
    tracker = StageTracker(Stage.IMPORT, known)
    (event,) = fed("Load weight begin. avail mem=1 GB", 3.0, tracker=tracker)
    assert isinstance(event, StageReached) and event.usual == usual(Stage.WEIGHTS, known)


# -- memory of the GPUs ----------------------------------------------------------------------------------


class Memory:
    def __init__(self, used: int, total: int) -> None:
        self.used, self.total = used, total


class Running:
    def __init__(self, pid: int, used: int | None) -> None:
        self.pid, self.usedGpuMemory = pid, used


class Nvml:
    """Two GPUs, as NVML answers."""

    class NVMLError(Exception):
        pass

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.open = fails, False

    def nvmlInit(self) -> None:
        if self.fails:
            raise self.NVMLError
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Memory:
        return Memory((handle + 1) * 10 * 2**30, 80 * 2**30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Running]:
        return [Running(5, 4 * 2**30), Running(6, None), Running(7, 2**30)] if handle == 0 else []


def test_memory_of_each_gpu_and_of_the_launch() -> None:
    nvml = Nvml()
    sampler = GpuSampler(nvml)
    use = sampler.sample(2.0, (5, 6))
    assert use is not None
    assert (use.used_gib, use.total_gib, use.own_gib) == ((10, 20), (80, 80), (4, 0))
    sampler.close()
    assert not nvml.open and sampler.sample(3.0, ()) is None


def test_without_a_driver_there_is_no_memory_to_show() -> None:
    assert GpuSampler(Nvml(fails=True)).sample(0.0, ()) is None
