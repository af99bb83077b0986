"""The Markdown reports, read as a forge reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hostile import EVIL, TOKEN, hostile_log
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from reports import ALL, FAILED
from triages import NO_BUFFER, failed, group, triage

from mtpdoctor.cli.main import main
from mtpdoctor.diagnose.types import Report
from mtpdoctor.records import replace
from mtpdoctor.report.markdown import render_markdown
from mtpdoctor.report.markdown_fit import MOST, fit
from mtpdoctor.report.markdown_text import code, fenced, prose
from mtpdoctor.report.markdown_triage import render_triage_markdown
from mtpdoctor.text import safe

READER = MarkdownIt("gfm-like", {"html": True})
OURS = re.compile(r"\s*(</?details>|<summary>[^<]*</summary>|</?sub>|\s)*\s*")


def tokens(text: str) -> list[Token]:
    out = []
    for token in READER.parse(text):
        out += [token, *(token.children or [])]
    return out


def words(text: str) -> str:
    """What a reader sees of one paragraph."""
    return "".join(t.content for t in tokens(text) if t.type in ("text", "code_inline", "text_special"))


@given(st.text(max_size=200) | st.text("`*_[]()<>#@!|~-+=:/\\ \n&;$.1aAé", max_size=60))
def test_prose_reads_as_the_same_words_and_nothing_else(text: str) -> None:
    text = safe(text)
    shown = prose(text)
    kinds = {t.type for t in tokens(shown)}
    assert kinds <= {"paragraph_open", "inline", "paragraph_close", "text", "code_inline"}
    assert words(shown) == " ".join(text.split())
    outside = " ".join(t.content for t in tokens(shown) if t.type == "text")
    assert not re.search(r"[@#<>*_`$\[\]|~\\]|://|www\.|\b[0-9a-f]{7,40}\b(?<=\d)", outside)


@given(st.text(max_size=100) | st.text("` a", max_size=30))
def test_a_code_span_holds_the_text(text: str) -> None:
    plain = " ".join(safe(text).split())
    spans = [t.content for t in tokens(f"x {code(plain)} y") if t.type == "code_inline"]
    assert spans == ([plain] if plain else [])


@given(st.text("`~\n a<", max_size=80))
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    blocks = [t for t in tokens(fenced(text) + "\n\nafter") if t.type != "text"]
    assert [b.content.rstrip() for b in blocks if b.type == "fence"] == [text.rstrip()]
    assert [b.content for b in blocks if b.type == "inline"] == ["after"]


@given(
    st.lists(st.text(max_size=300), max_size=8),
    st.lists(st.text(max_size=300), max_size=8),
    st.integers(300, 900),
)
def test_it_fits_whatever_it_is_given(needed: list[str], wanted: list[str], most: int) -> None:
    text = fit(needed, wanted, "the end", most)
    assert len(text) <= most
    assert text.endswith("the end\n")
    whole = "\n\n".join((*needed, *wanted, "the end")) + "\n"
    assert text == whole or "left out here" in text


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_kind_of_report_renders(name: str) -> None:
    text = render_markdown(ALL[name])
    kinds = {t.type for t in tokens(text)}
    assert "heading_open" in kinds
    assert not kinds & {"image", "hr", "code_block", "blockquote_open", "s_open"}
    assert all(OURS.fullmatch(t.content) for t in tokens(text) if t.type in ("html_block", "html_inline"))
    assert text.count("<details>") == text.count("</details>")


def test_what_an_issue_needs_stands_outside_the_folds() -> None:
    text = render_markdown(FAILED)
    open_part = text.partition("<details>")[0]
    assert open_part.startswith("## SGLang 0.5.13.post1 does not start: Speculative decoding")
    fences = [t for t in tokens(open_part) if t.type == "fence"]
    assert "-> 25 | ValueError: Speculative decoding" in fences[0].content
    assert fences[-1].info == "bash"
    command = fences[-1].content.replace("\\\n ", "")
    assert " ".join(command.split()) == FAILED.diagnoses[0].fixes[0].command
    assert "Not the cause:" in open_part
    assert "the command as it was" in text.partition("<details>")[2].lower()


def test_a_hostile_log_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(hostile_log(tmp_path)), "--format", "markdown"]) == 3
    text = capsys.readouterr().out
    assert TOKEN not in text
    assert not set(text) & set("\x1b\u202e\u202c\x07")
    found = tokens(text)
    assert {t.type for t in found} & {"image", "link_open"} == set()
    assert all(OURS.fullmatch(t.content) for t in found if t.type in ("html_block", "html_inline"))
    plain = " ".join(t.content for t in found if t.type == "text")
    assert not re.search(r"@octocat|#1\b|org/repo#2|evil\.example", plain)
    shown = [t.content for t in found if t.type == "fence"]
    assert any("<script>window.pwned=1</script>" in block and "````" in block for block in shown)
    assert EVIL.count("</details>") == 1
    assert text.count("\n<details>\n") == text.count("\n</details>")


def huge() -> Report:
    first = FAILED.diagnoses[0]
    lines = tuple(replace(first.root, number=n, text="x" * 5000, body="x" * 5000) for n in range(30, 430))
    fixes = tuple(replace(f, why="because " * 3000) for f in first.fixes * 20)
    notes = tuple(f"note {n} " + "y" * 900 for n in range(500))
    diagnosis = replace(first, evidence=lines, consequences=lines, fixes=fixes, cause="since " * 20_000)
    return replace(FAILED, diagnoses=(diagnosis,) * 6, notes=notes, command="run " + "--x 1 " * 30_000)


def test_a_huge_report_stays_within_an_issue() -> None:
    text = render_markdown(huge())
    assert 20_000 < len(text) <= MOST
    assert "left out here" in text
    assert text.count("<details>") == text.count("</details>")
    assert "-> 25 | ValueError" in text


def test_a_triage_shows_each_cause_and_who_has_it() -> None:
    text = render_triage_markdown(triage())
    assert text.startswith("## 3 of 6 launches failed, of 2 causes")
    assert "table_open" in {t.type for t in tokens(text)}
    cells = [t.content for t in READER.parse(text) if t.type == "inline"]
    assert "2" in cells and "known" in cells and "new" in cells
    for name in (
        "customer-a/node0",
        "customer-b/run7",
        "customer-c/first",
        "customer-d/cut",
        "customer-d/secret",
    ):
        assert f"`{name}`" in text
    assert "--mamba-scheduler-strategy extra_buffer" in text
    assert "The HTTP port is in use" in text
    assert "permission denied" in text


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    odd = failed("a", NO_BUFFER, 5, title="a | b || `c|d`", release="0|1")
    text = render_triage_markdown(triage(groups=(group(None, odd),)))
    rows = [t for t in READER.parse(text) if t.type == "tr_open"]
    assert len(rows) == 2
    assert sum(t.type == "td_open" for t in READER.parse(text)) == 6


def test_a_big_triage_stays_within_an_issue() -> None:
    members = tuple(failed(f"customer/{n}", NO_BUFFER, n + 3) for n in range(3000))
    many = tuple(group("new", *members[n * 10 : n * 10 + 10]) for n in range(300))
    text = render_triage_markdown(triage(groups=many))
    assert len(text) <= MOST
    assert "3,000 of 3,003 launches failed" in text


def test_a_next_step_shows_no_secret(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "$ python -m sglang.launch_server --model-path M\nTraceback (most recent call last):\n"
        f'  File "/w/sglang/srt/x.py", line 29, in run\n    token="{TOKEN}"\nOSError: {TOKEN} is gated\n'
    )
    main(["diagnose", str(tmp_path / "a.log"), "--format", "markdown"])
    page = capsys.readouterr().out
    assert "issues for" in page and TOKEN not in page
