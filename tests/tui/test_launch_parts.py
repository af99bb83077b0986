"""A watched launch in words and graphs, and the thread that drives it; no screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import COMMAND, Played, died, ready, starting
from waiting import LONG

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.types import Stage
from mtpdoctor.tui.launch.starting import after_launch, launched_document
from mtpdoctor.tui.launch.state import SAMPLES, LaunchState, advance, record_of
from mtpdoctor.tui.launch.wording import (
    bar,
    gpu_label,
    headline,
    history_row,
    line_kind,
    notes_of,
    seconds,
    spark,
    stage_rows,
)
from mtpdoctor.tui.launch.worker import KEPT_LINES, Launcher
from mtpdoctor.tui.session import Session, given_of
from mtpdoctor.watch.types import (
    AttemptRecord,
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Lingers,
    Output,
    Process,
    Resumed,
    StageReached,
    Stuck,
    WatchEvent,
)


def after(events: list[WatchEvent]) -> LaunchState:
    state = LaunchState()
    for event in events:
        state = advance(state, event)
    return state


def test_stages_close_with_their_times_and_the_current_one_runs_on() -> None:
    rows = stage_rows(after(starting()), now=12.5)
    assert [(r.name, r.kind, r.time) for r in rows[:3]] == [
        ("arguments", "done", "3.6 s"),
        ("GPUs and ranks", "done", "5.0 s"),
        ("weights", "now", "3.5 s"),
    ]
    assert rows[2].progress == "██░░░░ 3/8 shards" and rows[1].usual == "usual 2-20 s"
    assert [r.kind for r in rows[3:]] == ["to come"] * len(rows[3:]) and rows[-1].name == "serving"


def test_a_stage_that_takes_longer_than_usual_is_said_to_be_slow() -> None:
    assert stage_rows(after(starting()), now=200.0)[2].kind == "slow"


def test_a_second_rank_does_not_begin_a_stage_again() -> None:
    state = after(starting())
    assert [r.stage for r in state.stages].count(Stage.DIST_INIT) == 1
    assert state.stages[1].ranks == ("TP0", "TP1")


def test_the_headline_follows_the_launch() -> None:
    assert headline(LaunchState(), 0)[0] == "idle"
    kind, text = headline(after(starting()), 12.0)
    assert kind == "busy" and text.startswith("Loading the weights") and "12 s" in text
    kind, text = headline(after(ready()), 44.0)
    assert kind == "doubtful" and "123 tokens/s" in text and "2.91" in text and "30000" in text
    kind, text = headline(after(died("x.log")), 14.0)
    assert kind == "bad" and "exit code 1" in text and "14 s" in text


def test_ready_without_tokens_is_no_success() -> None:
    events = [*ready()[:-1], Generated(44.0, False, "HTTP 500")]
    assert headline(after(events), 45.0) == ("bad", "Ready, but does not generate: HTTP 500")


def test_compiling_is_slow_and_not_stuck() -> None:
    stuck = Stuck(99.0, Stage.GRAPH_CAPTURE, 80.0, (), (), ("NCCL waits",), compiling=True)
    assert "slow, not stuck" in headline(after([*starting(), stuck]), 99.0)[1]
    assert notes_of(after([*starting(), stuck])) == ()


def test_one_that_was_said_to_have_failed_and_goes_on_is_busy_again() -> None:
    lingers = Lingers(99.0, "MTP0510", "The port is taken", "[Errno 98]", 10.0)
    state = after([*starting(), lingers])
    assert headline(state, 99.0) == ("bad", "Has failed, and does not end (MTP0510): The port is taken")
    assert headline(advance(state, Resumed(100.0, Stage.WARMUP)), 100.0)[0] == "busy"


def test_a_launch_that_stands_still_says_who_and_why() -> None:
    process = Process(77, "sglang::scheduler", "TP1", "sleeping", 0.0, None, 100, ("forward", "all_reduce"))
    stuck = Stuck(99.0, Stage.DIST_INIT, 80.0, ("TP1",), (process,), ("the network interface is wrong",))
    said = [text for _, text in notes_of(after([*starting(), stuck]))]
    assert said[0] == "Behind the others: TP1" and "network interface" in said[1]
    assert "in all_reduce" in said[2] and "GPU 100%" in said[2]


def test_warnings_of_the_proof_are_shown() -> None:
    assert ("doubtful", "the overlap scheduler is off") in notes_of(after(ready()))


def test_memory_is_kept_for_each_gpu_and_bounded() -> None:
    events: list[WatchEvent] = [Launched(0.0, 1, COMMAND, "x", ())]
    events += [GpuUse(float(i), (float(i), 1.0), (2000.0, 80.0), (0.0, 0.0)) for i in range(SAMPLES + 50)]
    state = after(events)
    assert len(state.gpus) == 2 and len(state.gpus[0].used) == SAMPLES
    assert state.gpus[0].used[-1] == SAMPLES + 49
    assert gpu_label(1, state.gpus[1]) == "GPU 1 1.0/80.0 GiB"


def test_a_graph_reaches_from_nothing_to_all_of_the_memory() -> None:
    assert spark((0.0, 40.0, 80.0), 80.0, 5) == "   ▄█"
    assert spark((1.0,), 80.0, 2) == " ▁"
    assert spark(tuple(float(i) for i in range(1, 101)), 100.0, 4) == "▂▄▆█"


@given(st.lists(st.floats(0, 200), max_size=300), st.floats(0.1, 100), st.integers(0, 60))
def test_a_graph_has_its_width_whatever_is_measured(values: list[float], top: float, width: int) -> None:
    assert len(spark(values, top, width)) == width


@given(st.floats(-1, 2), st.integers(1, 30))
def test_a_bar_has_its_width(share: float, width: int) -> None:
    assert len(bar(share, width)) == width


@pytest.mark.parametrize(
    ("value", "shown"), [(0.4, "0.4 s"), (12.2, "12 s"), (185, "3:05 min"), (3725, "1:02 h"), (-1, "0.0 s")]
)
def test_times_are_short(value: float, shown: str) -> None:
    assert seconds(value) == shown


def test_errors_and_warnings_in_the_output_stand_out() -> None:
    assert line_kind("Traceback (most recent call last):") == "error"
    assert line_kind("ValueError: x") == "error" and line_kind("[..] WARNING: y") == "warning"
    assert line_kind("Load weight begin") == ""


def test_the_history_says_what_was_changed_and_why_it_ended() -> None:
    record = record_of(after(died("x.log")), 2, ("set --tp-size 4",), "x.log")
    assert record.how is End.DIED and record.stage is Stage.WEIGHTS and record.seconds == 13.5
    assert history_row(record)[:4] == ("2", "set --tp-size 4", "weights", "14 s")
    stopped = after([*ready(), Ended(60.0, End.STOPPED, 0, Stage.SERVING, None)])
    assert "generated" in record_of(stopped, 1, (), "y").cause


def test_a_container_is_not_mistaken_for_a_process_of_this_machine() -> None:
    text = "docker run --gpus all lmsysorg/sglang:v0.5.13 python3 -m sglang.launch_server --model-path M"
    base = read_launch(text)
    from mtpdoctor.launch.render import command_line

    session = Session(Given(), base=base)
    assert launched_document(session, command_line(base.command)) is base
    assert launched_document(session, COMMAND).command.container is None
    with pytest.raises(UserError):
        launched_document(session, "ls")


def test_the_log_of_a_launch_from_here_is_that_of_the_launched_command_and_no_other_log_is() -> None:
    record = AttemptRecord(1, (), Stage.WEIGHTS, End.DIED, None, "x", 1.0, "x.log")
    document = read_launch(COMMAND)
    session = after_launch(Session(Given(), logs=("old.log",), host=made.host()), record, document)
    assert session.history == (record,) and given_of(session) == Given()
    own = replace(session, logs=("x.log",))
    assert given_of(own).document is document and given_of(own).host is session.host
    assert after_launch(session, record, None).launched == session.launched


# -- the thread ------------------------------------------------------------------------------------------
def drained(launcher: Launcher) -> list[WatchEvent]:
    seen: list[WatchEvent] = []
    end = time.monotonic() + LONG
    while launcher.running and time.monotonic() < end:
        seen += launcher.drain()
        time.sleep(0.005)
    return seen + launcher.drain()


def test_events_are_kept_in_order_until_they_are_fetched() -> None:
    launcher = Launcher(Played(died("x")))
    launcher.start()
    assert drained(launcher) == died("x") and not launcher.running


def test_ending_reaches_the_launch_and_closing_waits_for_it() -> None:
    played = Played(starting())
    launcher = Launcher(played)
    launcher.start()
    launcher.close()
    assert played.asked == ["gently"]
    assert isinstance(drained(launcher)[-1], Ended)
    launcher.close()
    assert played.asked == ["gently"], "a launch that is over is left alone"


def test_closing_right_after_leaving_it_running_does_not_end_it() -> None:
    played = Played(starting())
    launcher = Launcher(played)
    launcher.start()
    launcher.detach()
    launcher.close()
    last = drained(launcher)[-1]
    assert isinstance(last, Ended) and last.how is End.DETACHED
    assert played.asked == []


def test_a_flood_of_output_is_bounded_and_nothing_else_is_lost() -> None:
    class Flood(Played):
        def events(self) -> Iterator[WatchEvent]:
            yield StageReached(0.0, Stage.WEIGHTS, None, None, None)
            for i in range(400):
                yield Output(float(i), tuple(f"line {i} {j}" for j in range(100)))
            yield Ended(1.0, End.DIED, 1, Stage.WEIGHTS, None)

    launcher = Launcher(Flood(()))
    launcher.start()
    launcher._thread.join(LONG)
    seen = launcher.drain()
    lines = [line for e in seen if isinstance(e, Output) for line in e.lines]
    assert len(lines) <= KEPT_LINES and lines[-1] == "line 399 99"
    assert isinstance(seen[0], StageReached) and isinstance(seen[-1], Ended)


def test_what_goes_wrong_in_the_thread_is_raised_where_it_is_fetched() -> None:
    class Wrong(Played):
        def events(self) -> Iterator[WatchEvent]:
            yield Launched(0.0, 1, "x", "y", ())
            raise UserError("the program could not be started")

    launcher = Launcher(Wrong(()))
    launcher.start()
    launcher._thread.join(LONG)
    assert isinstance(launcher.drain()[0], Launched), "what happened before it comes first"
    with pytest.raises(UserError, match="could not be started"):
        launcher.drain()
    assert launcher.drain() == []


def test_ending_never_holds_up_the_screen() -> None:
    go = threading.Event()

    class Slow(Played):
        def end(self, hard: bool = False) -> None:
            go.wait(LONG)
            super().end(hard)

    launcher = Launcher(Slow(starting()))
    launcher.start()
    launcher.end()
    assert not go.is_set() and launcher.running, "it came back while the end was still being asked for"
    go.set()
    launcher.close()
