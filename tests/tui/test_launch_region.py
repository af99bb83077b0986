"""The region Launch by key and mouse, in an application of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made import BUFFER, failed, with_chosen
from one_region import SIZES, OneRegion, drive
from playing import Played, died, ready, starting
from still import until
from textual.pilot import Pilot

from mtpdoctor.tui.launch import LaunchRegion
from mtpdoctor.tui.launch.tail import OutputTail
from mtpdoctor.tui.messages import (
    LaunchEnded,
    OpenLog,
)
from mtpdoctor.watch.types import End, Output


@pytest.mark.parametrize("size", SIZES)
def test_a_launch_is_seen_from_its_start_to_its_end(size: tuple[int, int]) -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(ready())

    async def steps(pilot: Pilot[None]) -> None:
        assert "Nothing has been launched" in app.text()
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.generated is not None, "the events")
        await pilot.pause()
        shown = app.text()
        for said in (
            "Ready and generating",
            "123 tokens/s",
            "2.91",
            "GPU 1 121.0/140.0",
            "fired up",
            "overlap",
        ):
            assert said in shown, said
        assert "[bold red]no markup[/]" in shown
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "the end")
        assert played.asked == ["gently"] and app.of(LaunchEnded)[0].record.how is End.STOPPED

    drive(app, steps, size)


def test_of_a_flood_the_newest_lines_are_shown() -> None:
    app = OneRegion(LaunchRegion(), failed())
    flood = Output(0.5, tuple(f"line {i}" for i in range(3000)))

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, Played([*starting()[:1], flood]), None)
        await until(pilot, lambda: "line 2999" in app.text(), "the end of the flood")
        tail = region.query_one(OutputTail)
        assert len(tail.lines) < 300 and "2,800 lines more" in tail.lines[0].text
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "its end")

    drive(app, steps)


def test_ctrl_c_again_ends_it_hard() -> None:
    app = OneRegion(LaunchRegion(), failed())

    class Stubborn(Played):
        def end(self, hard: bool = False) -> None:
            self.asked.append("hard" if hard else "gently")
            if hard:
                self._end.set()

    played = Stubborn(starting())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.launched is not None, "the launch")
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "Ending it gently" in app.text() and region.running
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.of(LaunchEnded), "the end")
        assert played.asked == ["gently", "hard"]

    drive(app, steps)


def test_one_that_is_left_running_is_not_ended() -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(ready())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.generated is not None, "the events")
        await pilot.press("b")
        await until(pilot, lambda: app.of(LaunchEnded), "the end of watching")
        assert app.of(LaunchEnded)[0].record.how is End.DETACHED

    drive(app, steps)
    assert played.asked == []


def test_the_history_lists_the_attempts_and_opens_their_logs() -> None:
    app = OneRegion(LaunchRegion(), with_chosen(failed(), BUFFER))

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, Played(died("/logs/one.log"), "/logs/one.log"), None)
        await until(pilot, lambda: app.of(LaunchEnded), "its death")
        assert "Died after" in app.text() and "exit code 1" in app.text()
        app.show(replace(app.session, history=(app.of(LaunchEnded)[0].record,)))
        await pilot.press("h")
        await pilot.pause()
        assert "extra_buffer" in app.text() and "weights" in app.text()
        await pilot.press("enter")
        await pilot.pause()
        assert app.of(OpenLog)[0].paths == ("/logs/one.log",)

    drive(app, steps, (140, 38))


def test_quitting_ends_the_launch() -> None:
    app = OneRegion(LaunchRegion(), failed())
    played = Played(starting())

    async def steps(pilot: Pilot[None]) -> None:
        region = app.query_one(LaunchRegion)
        region.drive(app.session, played, None)
        await until(pilot, lambda: region.state.launched is not None, "the launch")

    drive(app, steps)
    assert played.asked == ["gently"]
