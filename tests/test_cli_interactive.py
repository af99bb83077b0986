"""How the interactive doctor is started: at a terminal, without one, in a browser."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port
from waiting import LONG

from mtpdoctor.cli import tui
from mtpdoctor.cli.main import main
from mtpdoctor.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = str(ROOT / "sample_logs" / "spec_no_buffer_with_radix.log")


# -- without a terminal --------------------------------------------------------------------------------------
def test_without_a_terminal_the_usage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().out
    assert said.startswith("usage: mtpdoctor") and "diagnose" in said and "interactive" in said


def test_without_a_terminal_a_log_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([SAMPLE]) == 2
    assert f"mtpdoctor diagnose {SAMPLE}" in capsys.readouterr().err
    assert main(["diagnoze"]) == 2
    assert "unknown command 'diagnoze'" in capsys.readouterr().err


# -- at a terminal -------------------------------------------------------------------------------------------
@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """As if somebody sat here; what would be opened is kept instead."""
    opened: list[object] = []
    monkeypatch.setattr(tui, "is_terminal", lambda: True)
    from mtpdoctor.tui.app import DoctorApp

    monkeypatch.setattr(DoctorApp, "run", lambda self: opened.append(self))
    return opened


def test_what_is_given_is_opened(
    terminal: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "launch.sh"
    script.write_text("python -m sglang.launch_server --model-path /m --tp 2\n")
    assert main([]) == 0
    assert main([SAMPLE, "--sglang", "0.5.13", "--theme", "light"]) == 0
    assert main(["--", "python", "-m", "sglang.launch_server", "--model-path", "/m"]) == 0
    assert main(["--command-file", str(script), "--gpu", "2xsm90@140"]) == 0
    empty, log, command, file = (app.session for app in terminal)  # type: ignore[attr-defined]
    assert empty.logs == () and empty.given.document is None
    assert log.logs == (SAMPLE,) and log.given.release == "0.5.13"
    assert command.given.document.command.value("model_path") == ("/m",)
    assert file.given.document.name == str(script) and len(file.given.host.gpus) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such.log"], "no such file"),
        (["--"], "no launch command after --"),
        (["--command", "python -m sglang.launch_server", "--", "x"], "more than one"),
        (["--gpu", "nonsense"], "--gpu"),
    ],
)
def test_bad_input_is_said_before_the_screen_opens(
    terminal: list[object], arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
    assert not terminal


def test_a_folder_is_no_log(terminal: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT)]) == 2
    assert "folder" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize("no_color", [False, True])
def test_in_a_real_terminal_it_draws_and_leaves_the_terminal_clean(tmp_path: Path, no_color: bool) -> None:
    drawn = _in_terminal([SAMPLE], {"NO_COLOR": "1"} if no_color else {}, tmp_path, until=b"MTP0200")
    assert b"\x1b[?1049h" in drawn, "a screen of its own"
    assert drawn.rindex(b"\x1b[?1049l") > drawn.rindex(b"\x1b[?1049h"), "and back"
    assert b"\x1b[?25h" in drawn and b"\x1b[?1000l" in drawn, "cursor shown, mouse let go"
    colours = [
        m for m in drawn.replace(b"\x1b[1;", b"\x1b[").split(b"\x1b[") if m.startswith((b"38;2;", b"48;2;"))
    ]
    assert colours
    assert all(map(_is_grey, colours)) == no_color


def _is_grey(code: bytes) -> bool:
    numbers = code.split(b"m", 1)[0].split(b";")[2:5]
    return len(set(numbers)) == 1


def _in_terminal(arguments: list[str], env: dict[str, str], state: Path, until: bytes) -> bytes:
    import pty

    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(
            {"TERM": "xterm-256color", "COLORTERM": "truecolor", "MTPDOCTOR_STATE": str(state), **env}
        )
        os.environ["PYTHONPATH"] = str(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "mtpdoctor", *arguments])
    drawn = b""
    asked = False
    end = time.monotonic() + LONG
    try:
        while time.monotonic() < end:
            if not select.select([fd], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(fd, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            drawn += piece
            if until in drawn and not asked:
                os.write(fd, b"q")
                asked = True
    finally:
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return drawn


# -- in a browser --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address that a served doctor prints."""
    pytest.importorskip("textual_serve")
    port = free_port()
    child = subprocess.Popen(
        [sys.executable, "-m", "mtpdoctor", "--serve", "--port", str(port), SAMPLE],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        address = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        with socket.create_connection(("127.0.0.1", port), LONG):  # it is told when it listens, not before
            pass
        yield address
    finally:
        child.terminate()
        child.wait(LONG)


def _get(url: str, **headers: str) -> int:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    request = urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with opener.open(request, timeout=LONG) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_served_doctor_answers_only_whoever_was_given_the_address(served: str) -> None:
    base, _, word = served.partition("?word=")
    assert _get(served) == 200
    assert _get(base) == 403
    assert _get(f"{base}?word={word[:-1]}") == 403
    assert _get(f"{base}ws") == 403
    assert _get(served, Host="evil.example") == 403
    assert _get(served, Origin="http://evil.example") == 403


def test_the_server_listens_on_the_loopback_only(served: str) -> None:
    port = int(served.split(":")[2].split("/")[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # nothing is sent: it tells this machine's own address
            own = s.getsockname()[0]
        except OSError:
            pytest.skip("no network address")
    if own.startswith("127."):
        pytest.skip("no network address")
    with pytest.raises(OSError), socket.create_connection((own, port), 2):
        pass


def test_a_port_that_is_none_or_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("textual_serve")
    from mtpdoctor.cli.serve import serve

    with pytest.raises(UserError, match="no port"):
        serve(0, [], [])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot serve on 127.0.0.1:{port}"):
            serve(port, [], [])
    assert "http://" not in capsys.readouterr().out


def test_the_words_for_the_served_application_are_those_given() -> None:
    words = ["--serve", "--port", "9000", "a b.log", "--theme", "light"]
    assert tui._without_serve(words) == ["a b.log", "--theme", "light"]
    assert tui._without_serve(["--port=9000", "--serve", "a.log"]) == ["a.log"]
