"""Placeholders are filled from facts; what a log says never becomes more than a word."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.kb.templates import TemplateError, fill, parse_edit, placeholders, resolve_remedy
from mtpdoctor.kb.types import Remedy, Safety
from mtpdoctor.launch.types import EditOp
from mtpdoctor.release import parse_release

CASE = make_facts(
    {
        "arg.mem_fraction_static": 0.88,
        "flag.tp_size": "8",
        "flag.dtype": None,
        "host.gpu.count": 6,
        "model.heads": 40,
        "model.is_mla": True,
        "release": parse_release("0.5.13.post1"),
    },
    Source.USER,
)


def remedy(*edits: str, run: tuple[str, ...] = (), title: str = "t", safety: Safety = Safety.SAFE) -> Remedy:
    return Remedy(title, safety, "why", edits=tuple(map(parse_edit, edits)), run=run)


def edit(text: str, captures: dict[str, str] | None = None, facts: Facts = CASE) -> str | None:
    """The one edit as text; None when it lacks a fact."""
    resolved = resolve_remedy(remedy(text), facts, captures or {})
    return None if resolved.missing else str(resolved.edits[0])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "set --mem-fraction-static {arg.mem_fraction_static|minus:0.06|round:2}",
            "set --mem-fraction-static 0.82",
        ),
        ("set --tp-size {host.gpu.count}", "set --tp-size 6"),
        ("set --tp-size {flag.tp_size|div:2|int}", "set --tp-size 4"),
        ("set --tp-size {flag.tp_size|min:$host.gpu.count}", "set --tp-size 6"),
        ("set --tp-size {model.heads|largest_divisor_le:$host.gpu.count}", "set --tp-size 5"),
        ("set --page-size {n|floor_multiple:64|max:64}", "set --page-size 64"),
        ("set --page-size {n|plus:30|floor_multiple:64}", "set --page-size 128"),
        ("set --x {n|times:1.5}", "set --x 150"),
        ("set --dtype {flag.dtype|default:auto}", "set --dtype auto"),
        ("set --x {word|lower}", "set --x word"),
        ("env A_B={n}", "env A_B=100"),
        ("env A='two words'", "env A=two words"),
        (
            'set --json-model-override-args \'{"a": {"b": 1}}\'',
            'set --json-model-override-args {"a": {"b": 1}}',
        ),
        ("set --x {{n}}", "set --x {n}"),
        ("add {flagname}", "add --enable-x"),
        ("add --enable-{word|lower}-y", "add --enable-word-y"),
        ("remove --tp-size", "remove --tp-size"),
        ("unset A_B", "unset A_B"),
        ("shm-size 16g", "shm-size 16g"),
        ("image-tag v{release}", "image-tag v0.5.13.post1"),
    ],
)
def test_edits_are_filled(written: str, expected: str) -> None:
    assert edit(written, {"n": "100", "word": "WORD", "flagname": "--enable-x"}) == expected


@pytest.mark.parametrize(
    ("written", "missing", "shown"),
    [
        ("set --x {model.vocab_size}", "model.vocab_size", "set --x <vocab-size>"),
        ("set --x {flag.dtype}", "flag.dtype", "set --x <dtype>"),
        ("set --x {nothing}", "nothing", "set --x <nothing>"),
        ("set --x {flag.tp_size|min:$host.ram_gib}", "host.ram_gib", "set --x <tp-size>"),
        ("set --x {word|plus:1}", "word", "set --x <word>"),
        ("set --x {flag.tp_size|div:0}", "flag.tp_size", "set --x <tp-size>"),
    ],
)
def test_an_edit_that_lacks_a_fact_is_only_text(written: str, missing: str, shown: str) -> None:
    resolved = resolve_remedy(remedy(written), CASE, {"word": "abc"})
    assert resolved.missing == (missing,)
    assert resolved.safety is Safety.MANUAL
    assert str(resolved.edits[0]) == shown


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a b",
        "a\nb",
        "a\tb",
        "--trust-remote-code",
        "-x",
        "\x1b[31m",
        "a\u202eb",
        "x" * 5000,
        "a\u00a0b",
        "a\x00",
    ],
)
def test_a_capture_that_is_no_plain_word_is_refused(value: str) -> None:
    assert edit("set --model-path {path}", {"path": value}) is None


@pytest.mark.parametrize("value", ["tp-size", "--x y", "--x;reboot", "$(x)", "--x\n", "--"])
def test_a_capture_is_taken_for_a_flag_only_when_it_is_one(value: str) -> None:
    assert edit("add {flagname}", {"flagname": value}) is None


def test_negative_numbers_are_values() -> None:
    assert edit("set --x {n}", {"n": "-1"}) == "set --x -1"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20))
def test_untrusted_values_within_quotes_of_the_template(value: str) -> None:
    run = ('pip install "x{v}" \'{v}y\' "{v}"',)
    typed = resolve_remedy(remedy(run=run), CASE, {"v": value}).run[0]
    assert shlex.split(typed) == ["pip", "install", f"x{value}", f"{value}y", value]


@pytest.mark.parametrize(
    "value", ["bitsandbytes>=0.44.0", "$(echo no)", "`echo no`", "a!b", "it's", 'a"b', "a\\$HOME"]
)
def test_a_shell_reads_what_the_log_said(value: str) -> None:
    typed = resolve_remedy(remedy(run=("printf '%s|' \"{v}\" '{v}' {v}",)), CASE, {"v": value}).run[0]
    said = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True).stdout
    assert said == f"{value}|" * 3


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_untrusted_values_stay_one_word_everywhere(value: str) -> None:
    resolved = resolve_remedy(remedy("set --a {v}", run=("ls {v}",)), CASE, {"v": value})
    if not resolved.missing:
        assert resolved.edits[0].value == value
        assert not any(c.isspace() for c in value) and value
        assert shlex.split(shlex.quote(value)) == [value]
    words = shlex.split(resolved.run[0])
    assert words in (["ls", value], ["ls", "<v>"])
    told = fill("it says {v}.", CASE, {"v": value})
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", told)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 100_000), st.integers(1, 512))
def test_the_largest_divisor_is_one_and_is_largest(number: int, limit: int) -> None:
    facts = make_facts({"model.heads": number}, Source.MODEL)
    told = edit(f"set --tp {{model.heads|largest_divisor_le:{limit}}}", facts=facts)
    assert told is not None
    found = int(told.split()[-1])
    assert number % found == 0 and found <= limit
    assert not any(number % d == 0 for d in range(found + 1, min(limit, number) + 1))


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(0, 4))
def test_arithmetic_of_filters(value: float, by: float, digits: int) -> None:
    facts = make_facts({"arg.x": value, "arg.y": by}, Source.USER)
    text = fill(f"{{arg.x|plus:$arg.y|round:{digits}}}", facts)
    assert math.isclose(float(text), value + by, abs_tol=10**-digits)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}|:abc.$ \"'", max_size=30))
def test_any_text_is_filled_or_refused_in_words(text: str) -> None:
    try:
        placeholders(text)
    except TemplateError:
        return
    assert isinstance(fill(text, CASE, {}), str)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{flag.tp_size} GPUs for {arch}", "8 GPUs for Qwen"),
        ("{model.vocab_size} words", "<vocab-size> words"),
        ("{model.vocab_size|default:many} words", "many words"),
        ("{model.is_mla}", "true"),
        ("{capture.arch} and {arch}", "Qwen and Qwen"),
        ('a {"json": 1} and {{braces}}', 'a {"json": 1} and {braces}'),
    ],
)
def test_sentences_are_filled(text: str, told: str) -> None:
    assert fill(text, CASE, {"arch": "Qwen"}) == told


def test_titles_reasons_and_commands_are_filled() -> None:
    it = Remedy("Use {n}", Safety.RISKY, "because {n}", run=("kill {n}", "ls {path}"), risk="lose {n}")
    resolved = resolve_remedy(it, CASE, {"n": "3", "path": "/a b"})
    assert (resolved.title, resolved.why, resolved.risk) == ("Use 3", "because 3", "lose 3")
    assert resolved.run == ("kill 3", "ls '/a b'")
    assert resolved.safety is Safety.RISKY


@pytest.mark.parametrize(
    "text",
    [
        "set --x", "set x 1", "add --x 1", "remove", "env A", "env 1A=2", "unset A B", "shm-size",
        "sed --x 1",
        "set --x {a|nofilter}", "set --x {a|plus}", "set --x {a|plus:b}", "set --x {a|int:3}", "",
        "set --x {a|min:$gpu}",
    ],
)  # fmt: skip
def test_what_is_no_edit_is_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        parse_edit(text)


def test_every_kind_of_edit_can_be_written() -> None:
    texts: dict[str, Any] = {
        "set": "set --a 1", "add": "add --a", "remove": "remove --a", "env": "env A=1", "unset": "unset A",
        "shm-size": "shm-size 16g", "ipc": "ipc host", "gpus": "gpus all", "image-tag": "image-tag v1",
    }  # fmt: skip
    assert {EditOp(parse_edit(t).op) for t in texts.values()} == set(EditOp)
