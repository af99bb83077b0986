"""Colour and width follow the environment."""

from __future__ import annotations

import io

import pytest

from mtpdoctor.report.style import Style, terminal


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("tty", "env", "color"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colour(tty: bool, env: dict[str, str], color: bool) -> None:
    assert terminal(_Tty() if tty else io.StringIO(), env)[1] is color


@pytest.mark.parametrize(
    ("columns", "width"), [("100", 100), ("5", 40), ("9999", 200), ("", 80), ("x", 80), ("0", 80), ("²", 80)]
)
def test_width_of_a_pipe(columns: str, width: int) -> None:
    assert terminal(io.StringIO(), {"COLUMNS": columns})[0] == width


def test_a_closed_stream_is_plain() -> None:
    stream = io.StringIO()
    stream.close()
    assert terminal(stream, {}) == (80, False)


def test_plain_style_adds_nothing() -> None:
    assert Style(False)("red", "x") == "x"
    assert Style(True)("red", "") == ""
    assert Style(True)("red", "x") == "\x1b[1;31mx\x1b[0m"
