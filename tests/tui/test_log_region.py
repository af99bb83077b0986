"""The Log region by its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from still import SAMPLES, app_of, screen_text, settled, until
from textual import events
from textual.pilot import Pilot
from waiting import LONG

from mtpdoctor.tui.log import LogRegion, document, region
from mtpdoctor.tui.log.document import AT_ONCE, LogDocument
from mtpdoctor.tui.log.view import LogView

KILLED = str(SAMPLES / "scheduler_killed_sigkill.log")
EIGHT = "".join(
    f"[2026-01-31 12:00:{i:02} TP{r}] step {what}\n"
    for i, what in enumerate(("Load weight begin.", "Load weight end.", "Capture cuda graph begin."))
    for r in range(8)
)


async def in_log(pilot: Pilot[Any]) -> LogView:
    await settled(pilot)
    await pilot.press("3")
    await settled(pilot)
    return pilot.app.query_one(LogRegion).view


async def find(pilot: Pilot[Any], text: str, *before: str) -> None:
    """As one who pastes what is to be found."""
    await pilot.press("slash", *before)
    pilot.app.post_message(events.Paste(text))
    await press(pilot, "enter")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


async def test_moving_by_keys() -> None:
    app = app_of(KILLED)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        await press(pilot, "home")
        assert view.number == 1 and view.scroll_y == 0
        await press(pilot, "down", "j", "k")
        assert view.number == 2
        await press(pilot, "pagedown")
        assert view.number == 1 + view.room.height
        await press(pilot, "G")
        assert view.number == view.document.count
        assert view.scroll_y == len(view.rows) - view.room.height
        await press(pilot, "colon", "4", "0", "enter")
        assert view.number == 40
        await press(pilot, "colon", "9", "9", "9", "9", "9", "enter")
        assert view.number == view.document.count
        await press(pilot, "colon", "x", "enter")
        assert view.number == view.document.count


async def test_jumps_to_the_cause_the_stages_and_what_counts() -> None:
    app = app_of(KILLED)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        await press(pilot, "home", "c")
        assert view.number == app.session.report.diagnoses[0].root.number
        assert "root cause" in screen_text(app)
        await press(pilot, "home", "right_square_bracket")
        first = view.number
        await press(pilot, "right_square_bracket", "left_square_bracket")
        assert view.number == first
        assert "at server_args" in screen_text(app) or "at " in screen_text(app)
        await press(pilot, "home", "full_stop")
        assert view.number in view.marks
        await press(pilot, "home", "comma")
        assert "no further mark" in screen_text(app)


async def test_long_lines_sideways_and_wrapped(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("start\n" + "word " * 60 + "END\n" + "last\n")
    app = app_of(str(log))
    async with app.run_test(size=(80, 24)) as pilot:
        await in_log(pilot)
        assert "END" not in screen_text(app)
        await press(pilot, *["right"] * 14)
        assert "END" in screen_text(app)
        await press(pilot, *["left"] * 14, "w")
        text = screen_text(app)
        assert "END" in text and "last" in text
        assert "word" * 1 in text and "".join(text.split()).count("word") == 60
        await press(pilot, "w")
        assert "END" not in screen_text(app)


async def test_ranks_are_folded_and_filtered(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("$ python -m sglang.launch_server --model-path /m --tp 8\n" + EIGHT)
    app = app_of(str(log))
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        assert len(view.rows) == 25
        await press(pilot, "f")
        assert "×8" in screen_text(app) and len(view.rows) < 25
        assert "hidden" in screen_text(app)
        await press(pilot, "f", "r")
        await press(pilot, "down", "down", "down", "enter")
        assert "only TP2" in screen_text(app)
        ranks = {view.line(view.rows.number(r)).rank for r in range(len(view.rows))}
        assert ranks - {None, "TP2"} <= {view.line(n).rank for n in view.marks}, (
            "another rank's line is shown only where it is marked"
        )
        await press(pilot, "r", "home", "enter")
        assert len(view.rows) == 25


async def test_searching(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(f"line {n} {'Needle' if n % 40 == 0 else 'hay'}\n" for n in range(1, 201)))
    app = app_of(str(log))
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        await press(pilot, "home", "slash", *"needle", "enter")  # typed, key by key
        assert view.number == 40
        await press(pilot, "n", "n")
        assert view.number == 120
        await press(pilot, "N")
        assert view.number == 80
        await press(pilot, "end", "n")
        assert view.number == 40 and "from the other end" in screen_text(app)
        await find(pilot, "hay$", "ctrl+r")
        assert view.number == 41
        await press(pilot, "slash", *"(", "enter")
        assert "not a regular expression" in screen_text(app)
        await find(pilot, "nowhere", "ctrl+r")
        assert "not found: nowhere" in screen_text(app)
        await press(pilot, "slash", "escape")
        assert view.pattern is None and view.has_focus


async def test_a_large_log_shows_its_end_before_its_lines_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    line = "[2026-01-31 12:00:00] The quick brown fox jumps over the lazy dog, again and again\n"
    log.write_text(line * (2 * AT_ONCE // len(line)) + "the very end\n")
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.open_logs((str(log),))
        view = app.query_one(LogRegion).view
        seen = []
        view.watch(view, "cursor", lambda: seen.append(view.document and view.document.numbered), init=False)
        await settled(pilot)
        await pilot.press("3")
        assert seen[0] is False, "the end was shown before the lines were counted"
        assert view.document.numbered and view.number == view.document.count
        assert "the very end" in screen_text(app)


async def test_several_files_are_one_launch(tmp_path: Path) -> None:
    names = []
    for rank in (0, 1):
        log = tmp_path / f"rank{rank}.log"
        log.write_text(f"[2026-01-31 12:00:00 TP{rank}] Load weight begin.\nof rank {rank}\n")
        names.append(str(log))
    app = app_of(*names)
    async with app.run_test(size=(80, 24)) as pilot:
        await in_log(pilot)
        assert "of rank 0" in screen_text(app) and "file 1 of 2" in screen_text(app)
        await press(pilot, "l")
        assert "of rank 1" in screen_text(app) and "file 2 of 2" in screen_text(app)
        app.query_one(LogRegion).go_to(0, 1)
        await settled(pilot)
        assert "file 1 of 2" in screen_text(app) and app.query_one(LogRegion).view.number == 1


async def test_log_text_is_text(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(
        b"[bold red]not bold[/] [link=http://x]y[/link] [@click=app.bell]z[/]\n"
        b"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[Hgone? \x9b31m \xe2\x80\xae rtl\n"
    )
    app = app_of(str(log))
    async with app.run_test(size=(100, 24)) as pilot:
        await in_log(pilot)
        text = screen_text(app)
        assert "[bold red]not bold[/] [link=http://x]y[/link] [@click=app.bell]z[/]" in text
        assert "gone?" in text
        assert not any((ord(c) < 32 and c != "\n") or c == "\u202e" or ord(c) == 0x9B for c in text)
        await press(pilot, "y")
        assert "\x1b" not in app.clipboard


async def test_clicks_and_the_wheel() -> None:
    app = app_of(KILLED)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        await press(pilot, "home")
        await pilot.click(LogView, offset=(20, 5))
        await pilot.pause()
        assert view.number == 6
        view.scroll_down(animate=False)
        await pilot.pause()
        assert view.scroll_y == 1 and view.number == 6


async def test_whoever_stands_at_the_end_follows_a_log_that_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region, "LOOK_EVERY", 0.02)
    log = tmp_path / "server.log"
    log.write_text("".join(f"line {n}\n" for n in range(1, 101)) + "half a li")
    app = app_of(str(log))
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        with log.open("a") as file:
            file.write("ne\nline 102\n")
        await until(pilot, lambda: view.number == 102, "the new end")
        text = screen_text(app)
        assert "half a line" in text and "line 102" in text and "followed" in text
        await press(pilot, "home")
        with log.open("a") as file:
            file.write("line 103\n" * 3)
        await until(pilot, lambda: len(view.rows) == 105, "the new lines")
        assert view.number == 1 and "End follows" in screen_text(app)
        await find(pilot, "line 103")
        assert view.number == 103
        log.write_text("begun anew\n")
        await until(pilot, lambda: "begun anew" in screen_text(app), "word of the new file")
        await press(pilot, "f5")
        assert app.region == "log" and view.document.count == 1


async def test_a_choice_of_lines_follows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region, "LOOK_EVERY", 0.02)
    log = tmp_path / "server.log"
    log.write_text("$ python -m sglang.launch_server --model-path /m --tp 8\n" + EIGHT)
    app = app_of(str(log))
    async with app.run_test(size=(80, 24)) as pilot:
        view = await in_log(pilot)
        await press(pilot, "f", "end")
        with log.open("a") as file:
            file.write("[2026-01-31 12:00:09 TP0] one more\n[2026-01-31 12:00:09 TP1] one more\n")
        await until(pilot, lambda: view.document.count == 27 and view.number == 26, "the new lines")
        assert "ranks folded" in screen_text(app)


async def test_escape_ends_a_search_but_never_the_counting_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    go = threading.Event()
    build = LogDocument.build

    def slowly(self: LogDocument, progress: Any = None, stop: Any = None) -> Any:
        go.wait(LONG)
        return build(self, progress, stop)

    monkeypatch.setattr(document, "AT_ONCE", 0)
    monkeypatch.setattr(LogDocument, "build", slowly)
    app = app_of(KILLED)
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.query_one(LogRegion).view
        await until(pilot, lambda: view.document is not None, "the end of the log")
        await pilot.press("3", "slash", "escape", "escape")
        go.set()
        await settled(pilot)
        assert view.document.numbered
