"""The terminal report: what it says, in which order, and that it fits and is safe."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace

import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.report.text import render
from mtpdoctor.text import width as columns_of

COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", reports.ALL)
@pytest.mark.parametrize(("width", "verbose"), [(80, False), (120, True)])
def test_golden(name: str, width: int, verbose: bool, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.{width}.txt", render(reports.ALL[name], width=width, verbose=verbose))


@pytest.mark.parametrize("name", reports.ALL)
def test_colour_changes_no_word(name: str) -> None:
    plain = render(reports.ALL[name])
    coloured = COLOR.sub("", render(reports.ALL[name], color=True))
    without_carets = [row for row in plain.split("\n") if not re.fullmatch(r" +\| [ ^]+", row)]
    assert coloured.split("\n") == without_carets


def test_order_of_the_parts() -> None:
    text = render(reports.SEVERAL)
    parts = ["FAILED", "MTP0007:", "node0.log:25", "Why:", "Not the cause:", "Fix 1 (safe)", "Fix 2 (risky)"]
    parts += ["Also failing", "Works, but not as wanted", "Note:", "mtpdoctor explain MTP0007"]
    at = [text.index(part) for part in parts]
    assert at == sorted(at)


def test_common_case_fits_a_screen_and_a_half() -> None:
    assert render(reports.FAILED, color=True).count("\n") <= 36


def test_only_the_changed_flags_show_in_the_diff() -> None:
    rows = [r.strip() for r in render(reports.FAILED).split("\n") if re.match(r"    [-+] ", r)]
    assert rows == [
        "- --mamba-scheduler-strategy no_buffer",
        "+ --mamba-scheduler-strategy extra_buffer",
        "+ --disable-radix-cache",
    ]


def _pasted(text: str) -> str:
    """The first command block: what a person would copy."""
    rows = text.split("\n")
    start = next(i for i, row in enumerate(rows) if row.startswith("python "))
    end = next(i for i in range(start, len(rows)) if not rows[i].endswith("\\"))
    return "\n".join(rows[start : end + 1])


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_command_can_be_pasted(width: int) -> None:
    pasted = _pasted(render(reports.FAILED, width=width))
    wanted = reports.EXTRA_BUFFER.command
    assert wanted is not None
    assert shlex.split(pasted.replace("\\\n", " ")) == shlex.split(wanted)


_WORDS = st.lists(st.text(alphabet="ab -'\"$\\{}|&;*?=é漢", min_size=1, max_size=30), min_size=1, max_size=12)


@given(_WORDS, st.integers(40, 120))
def test_any_quoted_command_can_be_pasted(words: list[str], width: int) -> None:
    command = "python -m sglang.launch_server " + shlex.join(
        w for pair in zip([f"--flag-{i}" for i in range(12)], words, strict=False) for w in pair
    )
    report = replace(
        reports.FAILED,
        command=None,
        diagnoses=(replace(reports.NO_BUFFER, fixes=(replace(reports.EXTRA_BUFFER, command=command),)),),
    )
    pasted = _pasted(render(report, width=width))
    assert shlex.split(pasted.replace("\\\n", " ")) == shlex.split(command)


def test_ranks_are_collapsed_and_consequences_folded() -> None:
    text = render(reports.RANKS)
    assert "server.log:210  (x4, first TP5)" in text
    folded = " ".join(text.split())
    assert "5 lines that follow from it (sigquit, EOFError, scheduler is dead, exit code -9)" in folded
    assert "lines 215-217, 230, 231" in folded
    assert "$ nvidia-smi -L" in text


def test_an_unknown_failure_shows_its_chain_and_where_to_look_and_no_fix() -> None:
    text = render(reports.UNKNOWN)
    assert "Cause not known" in text and "Fix" not in text and "mtpdoctor explain" not in text
    assert text.index("310 | KeyError") < text.index("330 | RuntimeError") < text.index("Look next")


def test_a_healthy_log_is_one_line() -> None:
    assert render(reports.READY) == "READY (SGLang 0.5.13.post1): the server came up; nothing is wrong.\n"


def test_less_certain_causes_say_so() -> None:
    for confidence, says in (
        (0.7, "MTP0007 (likely, 70%):"),
        (0.4, "MTP0007 (possible, 40%):"),
        (0.9, "MTP0007:"),
    ):
        report = replace(reports.FAILED, diagnoses=(replace(reports.NO_BUFFER, confidence=confidence),))
        assert says in render(report)


def test_secrets_are_masked_everywhere_and_named_where_one_pastes() -> None:
    key = "my-very-own-key-42"
    command = f"HF_TOKEN=hf_abcdefghijklmnopqrstuv python -m sglang.launch_server --api-key {key}"
    fix = replace(reports.EXTRA_BUFFER, command=command + " --tp 2", why=f"the key {key} is fine")
    fix = replace(
        fix,
        edits=(Edit(EditOp.SET, "--api-key", key), Edit(EditOp.ENV, "HF_TOKEN", "abcdefgh")),
        run=(f"curl -H 'Authorization: Bearer {key}' http://h",),
    )
    root = reports.line(9, f"ValueError: rejected {key}")
    diagnosis = replace(
        reports.NO_BUFFER,
        fixes=(fix,),
        root=root,
        cause=f"because of {key}",
        marks=(key,),
        consequences=(root,),
    )
    report = replace(reports.FAILED, command=command, diagnoses=(diagnosis,), notes=(f"note {key}",))
    text = render(report, verbose=True)
    assert key not in text and "hf_abc" not in text and "abcdefgh" not in text
    assert "put your own in place of <hidden>" in text


_HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("\x1b\x9b\x07\r\n\t\x00\x7f\u202e\u2066\u200b\u2028漢é^|\\'\" [];mKJ0123"),
        st.characters(),
    ),
    max_size=200,
)


@given(_HOSTILE, st.integers(40, 130), st.booleans(), st.integers(1, 10**9))
def test_no_log_text_breaks_out_of_the_page(text: str, width: int, verbose: bool, number: int) -> None:
    made = reports.hostile if number % 2 else reports.hostile_stop
    page = render(made(text, number), width=width, verbose=verbose)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", page)
    for row in page.split("\n"):
        assert columns_of(row) <= width
    page.encode("utf-8")


@given(_HOSTILE)
def test_colours_are_the_only_escapes(text: str) -> None:
    page = render(reports.hostile(text, 7), color=True, verbose=True)
    assert "\x1b" not in COLOR.sub("", page)


@pytest.mark.parametrize("name", reports.ALL)
@pytest.mark.parametrize("width", [40, 57, 80, 200])
def test_rows_fit(name: str, width: int) -> None:
    for row in render(reports.ALL[name], width=width, verbose=True).split("\n"):
        assert columns_of(row) <= width


def test_a_long_line_is_shortened_around_its_decisive_words() -> None:
    text = "RuntimeError: " + "noise " * 5000 + "the decisive words here " + "tail " * 5000
    root = reports.line(4, text)
    report = replace(
        reports.FAILED, diagnoses=(replace(reports.NO_BUFFER, root=root, marks=("decisive words",)),)
    )
    page = render(report)
    assert page.count("\n") <= 40
    evidence = [row for row in page.split("\n") if " | " in row]
    assert evidence[0].startswith("->  4 | RuntimeError: ")
    assert any("the decisive words here" in row for row in evidence)
    at = next(i for i, row in enumerate(evidence) if "decisive words" in row)
    column = evidence[at].index("decisive words")
    assert evidence[at + 1][column : column + 14] == "^" * 14
