"""Reports inside the application: the theme's colours, and nothing that a log could smuggle in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.report.style import Style
from mtpdoctor.tui.page import themed

STYLE = Style(True)


def test_the_styles_of_the_reports_become_the_themes() -> None:
    text = f"a {STYLE('red', 'b')} c {STYLE('dim', 'd')}"
    content = themed(text)
    assert content.plain == "a b c d"
    assert [(s.start, s.end, s.style) for s in content.spans] == [
        (2, 3, "bold $text-error"),
        (6, 7, "$text-muted"),
    ]


def test_every_style_of_the_reports_is_known() -> None:
    from mtpdoctor.report.style import _CODES

    for name in _CODES:
        assert themed(STYLE(name, "x")).spans, name


def test_markup_stays_text() -> None:
    assert themed("[bold]x[/bold] [@click=app.quit]y[/]").plain == "[bold]x[/bold] [@click=app.quit]y[/]"


@given(st.text(alphabet="ab[]\x1b\x9b]0;m31\x07\n", max_size=60))
def test_no_escape_passes(text: str) -> None:
    plain = themed(text).plain
    assert "\x1b" not in plain and "\x9b" not in plain and "\x07" not in plain
