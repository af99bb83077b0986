"""The application around the regions: the path through it, messages, copying, export, crashes."""

from __future__ import annotations

import base64
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from still import EMPTY_MACHINE, FAILED, HEALTHY, SAMPLES, app_of, screen_text, settled, until
from textual.command import CommandPalette
from textual.widgets import Footer, OptionList
from waiting import LONG

from mtpdoctor.tui import crash
from mtpdoctor.tui.diagnosis.parts import Place
from mtpdoctor.tui.diagnosis.preview import Preview
from mtpdoctor.tui.diagnosis.widgets import Leads
from mtpdoctor.tui.export import export_report
from mtpdoctor.tui.help import HelpScreen
from mtpdoctor.tui.log import LogRegion
from mtpdoctor.tui.messages import CopyText
from mtpdoctor.tui.tabs import REGIONS, RegionTabs, tab_labels
from mtpdoctor.tui.themes import THEMES


async def test_from_a_log_to_the_line_of_its_cause_and_to_a_word_in_it() -> None:
    app = app_of(FAILED)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert app.region == "diagnosis", "the cause is shown as soon as it is known"
        assert "MTP0200" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot)
        assert app.region == "log"
        view = app.query_one(LogRegion).view
        assert view.number == 25
        assert "root cause" in screen_text(app)
        await pilot.press("slash", *"_handle_model", "enter")
        await settled(pilot)
        assert view.number != 25
        assert "_handle_model" in view.line(view.number).text
        first = view.number
        await pilot.press("n")
        await settled(pilot)
        assert view.number != first and "_handle_model" in view.line(view.number).text


async def test_a_newcomer_is_led_to_a_sample() -> None:
    app = app_of(places=EMPTY_MACHINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "No log of SGLang was found" in screen_text(app)
        assert isinstance(app.focused, OptionList)
        await pilot.press("enter")
        await settled(pilot)
        assert app.session.report is not None and app.session.report.outcome == "failed"


async def test_a_command_without_a_log_is_checked() -> None:
    app = app_of(command="python -m sglang.launch_server --model-path /models/none --no-such-flag 1")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert app.session.check is not None
        assert "There is no log" in screen_text(app)
        await pilot.press("e")
        await pilot.pause()
        assert len(app._notifications) == 1
        title = screen_text(app).splitlines()[0]
        assert {"reject": "WOULD NOT START", "accept": "WOULD START", "unknown": "NOT DECIDED"}[
            app.session.check.verdict
        ] in title
        await pilot.press("question_mark")
        await pilot.pause()
        assert not len(app._notifications), "what was told does not stand before the help"


async def test_an_unreadable_log_is_said_and_leads_on() -> None:
    app = app_of(str(SAMPLES))  # a folder
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert app.region == "diagnosis"
        text = screen_text(app)
        assert "could not be diagnosed" in text and "is a directory" in text
        await pilot.press("3")
        assert "is a directory" in screen_text(app)
        await pilot.press("2", "down", "enter")
        await settled(pilot)
        assert app.region == "start"


async def test_a_log_that_cannot_be_diagnosed_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtpdoctor.errors import UserError
    from mtpdoctor.tui.log import document

    def broken(self: Any, session: Any) -> None:
        raise UserError("1 error in the knowledge", hint="see docs")

    monkeypatch.setattr(document, "AT_ONCE", 0)
    app = app_of(FAILED)
    monkeypatch.setattr(type(app.doctor), "diagnose", broken)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "1 error in the knowledge (see docs)" in screen_text(app)
        await pilot.press("3")
        await settled(pilot)
        assert "ValueError: Speculative decoding" in screen_text(app)


async def test_opening_another_log_while_one_is_being_read(tmp_path: Path) -> None:
    from mtpdoctor.tui.log.document import AT_ONCE

    large = tmp_path / "large.log"
    large.write_bytes(b"a line of some length, again and again\n" * (4 * AT_ONCE // 39))
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for path in (str(large), FAILED, str(large), FAILED):
            app.open_logs((path,))
            await pilot.pause()
        await settled(pilot)
        assert app.session.report is not None and app.session.report.outcome == "failed"
        assert app.query_one(LogRegion).view.document.count == 25


async def test_every_region_by_number_and_by_mouse_and_the_footer_fits() -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for number, (name, _) in enumerate(REGIONS, 1):
            await pilot.press(str(number))
            await pilot.pause()
            assert app.region == name
            footer = app.query_one(Footer)
            assert footer.virtual_size.width <= 80, f"the keys of {name} do not fit"
            if name != "launch":
                assert app.focused is not None, name
        at = 0
        for name, title in REGIONS:
            await pilot.click(RegionTabs, offset=(at + 3, 0))
            await pilot.pause()
            assert app.region == name
            at += len(title) + 4


async def test_help_names_the_keys_of_all_regions() -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(100, 50)) as pilot:
        await settled(pilot)
        await pilot.press("3", "question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = str(app.screen._content())
        for _, title in REGIONS:
            if title not in ("Model",):
                assert f"{title}\n" in text, title
        for words in (
            "Find text",
            "Show once what several ranks say",
            "Quit",
            "Export the report as text",
            "Ctrl+P",
        ):
            assert words in text
        await pilot.press("3")  # a number behind the help changes nothing
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)


async def test_the_palette_runs_what_a_key_would() -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")
        await pilot.press(*"go to log")
        found = app.screen.query_one(OptionList)
        await until(
            pilot,
            lambda: found.highlighted == 0 and str(found.options[0].prompt).startswith("Go to Log"),
            "the command",
        )
        await pilot.press("enter")
        await until(pilot, lambda: app.region == "log", "the Log region")


async def test_themes_turn() -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        seen = [app.theme]
        for _ in THEMES:
            await pilot.press("t")
            seen.append(app.theme)
        assert set(seen) == {t.name for t in THEMES.values()}
        assert seen[0] == seen[-1]


async def test_copying_by_the_terminal_and_into_a_private_file(tmp_path: Path) -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.screen.post_message(CopyText("sglang serve --api-key k", "The command"))
        await pilot.pause()
        assert app.clipboard == "sglang serve --api-key k"
        path = tmp_path / "state" / "clipboard.txt"
        assert path.read_text() == "sglang serve --api-key k"
        assert path.stat().st_mode & 0o077 == 0
        assert any(str(path) in n.message for n in app._notifications)


async def test_osc52_is_what_the_terminal_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        written: list[str] = []
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", written.append)
        app.screen.post_message(CopyText("grüß", "It"))
        await pilot.pause()
        assert f"\x1b]52;c;{base64.b64encode('grüß'.encode()).decode()}\a" in written


async def test_back_from_the_shell_all_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(HEALTHY)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        drawn: list[Any] = []
        display = app._display
        monkeypatch.setattr(app, "_display", lambda *a: drawn.append(a) or display(*a))
        app.app_resume_signal.publish(app)
        await until(pilot, lambda: bool(drawn), "the screen")


async def test_export_writes_what_the_command_line_prints(tmp_path: Path) -> None:
    app = app_of(FAILED)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for form, ending in (("text", ".txt"), ("json", ".json"), ("text", "-2.txt")):
            said = export_report(app.session, form, tmp_path)
            path = tmp_path / f"mtpdoctor-spec_no_buffer_with_radix{ending}"
            assert str(path) in said
            assert "MTP0200" in path.read_text()


async def test_work_can_be_ended() -> None:
    import threading

    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        go, came = threading.Event(), []
        app.work.start("slow", "counting sheep", lambda: go.wait(LONG), came.append)
        await until(pilot, lambda: "counting sheep" in screen_text(app), "word of it")
        await pilot.press("escape")
        go.set()
        await settled(pilot)
        assert not came
        assert "counting sheep" not in screen_text(app)


async def test_what_is_told_can_carry_no_escape_and_no_secret(tmp_path: Path) -> None:
    evil = tmp_path / "a\x1b]0;pwn\x07\x1b[31m[bold]b[bold] sk-abcdefghijklmnopqrstuvwx12345.txt.log"
    evil.write_text(Path(FAILED).read_text())
    app = app_of(str(evil))
    async with app.run_test(size=(140, 24)) as pilot:
        await settled(pilot)
        app.notify(f"{evil}: gone", title=str(evil))
        app.query_one(LogRegion).notify(str(evil))
        for note in app._notifications:
            for text in (note.message, note.title):
                assert "\x1b" not in text and "\x07" not in text and "sk-abc" not in text
            assert "[bold]b[bold]" in note.message and not note.markup
        said = export_report(app.session, "text", tmp_path)
        assert re.search(r"/mtpdoctor-[\w-]+\.txt$", said), "a name that is safe everywhere"
        assert not any(ord(c) < 32 and c != "\n" for c in screen_text(app))


@pytest.mark.parametrize("width", [40, 58, 60, 80, 140])
def test_the_names_of_the_regions_fit(width: int) -> None:
    for name, title in REGIONS:
        labels = tab_labels(width, name)
        assert sum(len(number + title) for number, title in labels) <= width
        assert [number.strip() for number, _ in labels] == [str(n) for n in range(1, len(REGIONS) + 1)]
        assert labels[[n for n, _ in REGIONS].index(name)][1].strip(), "where one is can always be read"


async def test_the_log_stands_beside_the_diagnosis_where_there_is_room() -> None:
    app = app_of(FAILED)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        preview = app.query_one(Preview)
        assert "line 25 of 25" in screen_text(app) and "raise ValueError(" in screen_text(app)
        await pilot.resize_terminal(100, 40)
        await pilot.pause()
        assert not preview.display and "raise ValueError(" not in screen_text(app)
    app = app_of(HEALTHY)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press("2")
        places = {row.part.number: row for row in app.query(Leads) if isinstance(row.part, Place)}
        for number in (max(places), min(places)):
            places[number].focus()
            await pilot.pause()
            assert f"line {number} of 92" in screen_text(app), "it goes along"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_q_does(number: signal.Signals) -> None:
    app = app_of()

    async def ended(pilot: Any) -> None:
        await settled(pilot)
        os.kill(os.getpid(), number)
        await until(pilot, lambda: app.return_code is not None, "the end")

    app.run(headless=True, size=(80, 24), auto_pilot=ended)
    assert app.return_code == 128 + number


def test_a_crash_beside_the_screen_is_told_with_its_own_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of(FAILED)

    def broken(self: Any, session: Any) -> None:
        raise KeyError("of the core")

    monkeypatch.setattr(type(app.doctor), "diagnose", broken)
    app.run(headless=True, size=(80, 24))
    told = " ".join("".join(capsys.readouterr()).split())
    assert app.return_code == 1 and "KeyError: 'of the core'" in told and "WorkerFailed" not in told
    written = (tmp_path / "state" / "crash.txt").read_text()
    assert "in broken" in written and "test_shell.py" in written


def test_a_crash_leaves_one_line_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of()

    def broken(self: Any, session: Any) -> None:
        raise RuntimeError("ear \x1b[31m api_key=hunter2hunter2")

    monkeypatch.setattr(type(app), "update", broken)
    app.run(headless=True, size=(80, 24))
    assert app.return_code == 1
    told = capsys.readouterr()
    text = told.out + told.err
    assert "Traceback" not in text
    assert "the interactive doctor broke" in " ".join(text.split())
    written = (tmp_path / "state" / "crash.txt").read_text()
    assert "RuntimeError" in written and "test_shell.py" in written
    assert "hunter2" not in text + written and "\x1b[31m" not in written


def test_a_crash_without_a_place_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MTPDOCTOR_STATE", str(tmp_path / "file" / "below"))
    assert "cannot write" in crash.record_crash(ValueError("x"))
