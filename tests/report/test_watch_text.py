"""What a person sees of a watched launch: a line for what stays, one line for the present."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.log.types import Stage
from mtpdoctor.report.watch_json import event_to_json, run_to_json
from mtpdoctor.report.watch_text import WatchText, history_lines
from mtpdoctor.text import safe, width
from mtpdoctor.watch.types import (
    AttemptRecord,
    End,
    Ended,
    Generated,
    GpuUse,
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

PROCESS = Process(7, "sglang::schedul", "TP1", "sleeping", 0.4, 5 * 2**20, 100, ("a", "b (x.py:1)"))
EVENTS: list[WatchEvent] = [
    Launched(0.1, 42, "python -m sglang.launch_server", "/state/server.log", ("A=b",)),
    Output(0.2, ("a line",)),
    StageReached(0.2, Stage.IMPORT, None, None, (5, 40)),
    GpuUse(1.0, (12.3, 4.0), (139.8, 139.8), (11.0, 0.0)),
    StageReached(24.0, Stage.WEIGHTS, "TP0", 2.5, (1, 600)),
    StageReached(25.0, Stage.WEIGHTS, "TP1", 3.5, (1, 600)),
    Progress(26.0, Stage.WEIGHTS, "TP0", 5, 10, "shards"),
    Stuck(300.0, Stage.WEIGHTS, 120.0, ("TP1",), (PROCESS,), ("slow weights",)),
    Resumed(310.0, Stage.WEIGHTS),
    Ready(400.0, "http://127.0.0.1:30000"),
    Generated(402.0, True, "said", 64, 0.5, 128.0, 1.02, ("nothing is accepted",)),
    Ended(3723.0, End.DIED, -9, Stage.SERVING, None, (99,)),
]


def told(*events: WatchEvent, live: bool = False) -> list[str]:
    text = WatchText()
    return [line for event in events for line in text.lines(event, live=live)]


def test_each_stage_is_told_once_with_its_times_and_the_memory() -> None:
    lines = told(*EVENTS)
    weights = [line for line in lines if "loading the weights" in line and "usually" in line]
    assert weights == [
        "mtpdoctor: 0:24 loading the weights on TP0, usually 1 s to 10 min (importing SGLang took 2.5 s) "
        "[GPUs 12 4 of 140 GiB]"
    ]
    joined = "\n".join(lines)
    for part in (
        "launched, pid 42",
        "environment: A=b",
        "5/10 shards",
        "STANDS STILL",
        "behind: TP1",
        "pid 7 sglang::schedul, TP1, sleeping, CPU 0 %, reads 5 MiB/s, GPU 100 %",
        "1. slow weights",
        "it goes on",
        "READY, it generates: 64 tokens in 0.50 s (128 tokens/s) accept length 1.02",
        "warning: nothing is accepted",
        "killed by SIGKILL",
        "left behind by it, and killed: pid 99",
    ):
        assert part in joined, part


def test_in_a_terminal_progress_is_only_in_the_one_line() -> None:
    assert not any("5/10" in line for line in told(*EVENTS[:7], live=True))
    text = WatchText(columns=120)
    for event in EVENTS[:7]:
        text.lines(event, live=True)
    assert text.status(34.0) == (
        "0:34 loading the weights 10 s (usual 1 s to 10 min) | 5/10 shards | GPUs 12 4 of 140 GiB"
    )


def test_ready_without_tokens_says_why() -> None:
    assert (
        told(Generated(9.0, True, "all ranks of node 1 are up"))[0]
        == "mtpdoctor: 0:09 READY: all ranks of node 1 are up"
    )


def test_a_compiling_launch_is_not_called_stuck() -> None:
    line = told(Stuck(9.0, Stage.GRAPH_CAPTURE, 8.0, (), (), (), compiling=True))[0]
    assert "busy compiling, not stuck" in line and "STANDS" not in line


@given(st.integers(1, 200), st.floats(0, 1e6), st.integers(0, len(EVENTS)))
def test_the_one_line_fits(columns: int, at: float, upto: int) -> None:
    text = WatchText(columns=columns)
    for event in EVENTS[:upto]:
        text.lines(event, live=True)
    assert width(text.status(at)) < max(columns, 2)


@given(st.text(max_size=60))
def test_what_the_server_says_cannot_move_the_cursor(said: str) -> None:
    for line in told(
        Generated(1.0, False, said, warnings=(said,)), Generated(1.0, True, said, warnings=(said,))
    ):
        assert "\n" not in line and safe(line) == line


def test_events_as_json() -> None:
    documents = [json.loads(json.dumps(event_to_json(event))) for event in EVENTS]
    assert [d["event"] for d in documents] == [
        "launched",
        "output",
        "stage_reached",
        "gpu_use",
        "stage_reached",
        "stage_reached",
        "progress",
        "stuck",
        "resumed",
        "ready",
        "generated",
        "ended",
    ]
    assert documents[4]["stage"] == "weights" and documents[7]["processes"][0]["pid"] == 7
    assert documents[-1]["how"] == "died" and documents[-1]["left_over"] == [99]


RECORD = AttemptRecord(
    1, ("set --tp-size 2",), Stage.WEIGHTS, End.DIED, "MTP0001", "too little memory", 12.0, "/x/server.log"
)


def test_the_history() -> None:
    assert history_lines([RECORD], 200) == [
        "1. set --tp-size 2 -> loading the weights, 12 s: MTP0001: too little memory"
    ]
    assert all(len(line) <= 40 for line in history_lines([RECORD], 40))


def test_the_whole_run_as_json() -> None:
    ended, generated = EVENTS[-1], EVENTS[-2]
    assert isinstance(ended, Ended) and isinstance(generated, Generated)
    document = json.loads(json.dumps(run_to_json(ended, generated, [RECORD], "/x/server.log", 3)))
    assert document["schema"] == 1 and document["exit_code"] == 3 and document["code"] == -9
    assert document["attempts"][0]["edits"] == ["set --tp-size 2"] and document["generated"]["tokens"] == 64
