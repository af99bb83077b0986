"""Whatever a regex matches contains the pieces that are said to be required."""

from __future__ import annotations

import re

import pytest
import regex as engine
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.kb.literals import NoLiteral, group_names, required_literal, required_pieces, required_runs

WORDS = st.text(alphabet="abcXYZ 01:_-.[](){}*+?|^$\\\"'<&é\n", min_size=1, max_size=8)


@st.composite
def regex_and_text(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """A regex and a text that it matches in full."""
    kind = draw(st.sampled_from(["word", "any", "set"] if depth == 0 else list(KINDS)))
    if kind == "word":
        word = draw(WORDS)
        return re.escape(word), word
    if kind == "any":
        return r"[\s\S]", draw(st.sampled_from("a\n:é"))
    if kind == "set":
        return r"[ab\d]", draw(st.sampled_from("ab7"))
    inner, text = draw(regex_and_text(depth=depth - 1))
    if kind == "group":
        return draw(st.sampled_from([f"({inner})", f"(?:{inner})"])), text
    if kind == "lookahead":
        return rf"(?=[\s\S]|\Z)(?:{inner})", text
    if kind == "repeat":
        low, high = draw(st.sampled_from([(0, 1), (1, 3), (2, 2), (2, 4), (0, 0)]))
        times = draw(st.integers(low, high))
        lazy = draw(st.sampled_from(["", "?"]))
        return f"(?:{inner}){{{low},{high}}}{lazy}", text * times
    if kind == "star":
        plus = draw(st.booleans())
        return f"(?:{inner}){'+' if plus else '*'}", text * draw(st.integers(1 if plus else 0, 3))
    other, other_text = draw(regex_and_text(depth=depth - 1))
    if kind == "either":
        return f"(?:{inner}|{other})", draw(st.sampled_from([text, other_text]))
    if kind == "caseless":
        return f"{inner}(?i:{other})", text + "".join(
            draw(st.sampled_from([c.lower(), c.upper()])) for c in other_text
        )
    return inner + other, text + other_text


def matches(pattern: str, text: str) -> bool:
    """Whether the text is matched in full (nested stars may take for ever: then it does not count)."""
    try:
        return engine.fullmatch(pattern, text[:2000], timeout=0.2) is not None
    except TimeoutError:
        return False


KINDS = ("word", "any", "set", "group", "lookahead", "repeat", "star", "either", "caseless", "join")


@settings(max_examples=400, deadline=None)
@given(regex_and_text())
def test_every_match_contains_every_required_piece(pair: tuple[str, str]) -> None:
    pattern, text = pair
    if not matches(pattern, text):
        return
    for piece in required_pieces(pattern):
        assert piece in text


@settings(max_examples=200, deadline=None)
@given(regex_and_text(), regex_and_text())
def test_the_literal_is_in_one_line_of_the_match(left: tuple[str, str], right: tuple[str, str]) -> None:
    pattern = left[0] + "some literal" + right[0]
    text = left[1] + "some literal" + right[1]
    literal = required_literal(pattern)
    assert len(literal) >= 6
    if matches(pattern, text):
        assert any(literal in line for line in text.split("\n"))


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (
            r"Speculative decoding for (?P<arch>\S+) is not compatible with radix cache",
            "is not compatible with radix cache",
        ),
        (r"(?:Error|Fatal Error): out of memory", "Error: out of memory"),
        (r"assert self\.page_size == 1[\s\S]*AssertionError", "assert self.page_size == 1"),
        (r"(?:ab){4}c+d", "ababababc"),
        (r"x+ (?:one thing|one theme)$", "x one th"),
        (r"^\[rank\d\]: in use: 'abcdef'\b", "]: in use: 'abcdef'"),
        (r"(?i)errno 98\d: 123456", ": 123456"),
        (r"(?x) spaces \  are \  explicit # comment", "spaces are explicit"),
        (r"(?<!not )available memory", "available memory"),
        (r"(?P<a>\d+) of (?P=a) devices", "devices"),
    ],
)
def test_the_longest_literal_is_found(pattern: str, literal: str) -> None:
    assert required_literal(pattern) == literal


@pytest.mark.parametrize(
    "pattern", ["first thing|second one", r"\d+ \w+", "(?i)out of memory", "short", r"(?:long enough)?", ""]
)
def test_a_regex_without_a_literal_is_refused(pattern: str) -> None:
    with pytest.raises(NoLiteral, match="no literal of 6 characters"):
        required_literal(pattern)


def test_a_literal_avoids_what_transports_escape() -> None:
    assert required_literal('the module "abcdefgh" is <not there> at all, sorry') == "at all, sorry"
    assert required_literal('say "hello"') == 'say "hello"'  # better than none
    assert required_literal("first line\nsecond longer line") == "second longer line"


@pytest.mark.parametrize(
    "pattern", [r"(?<name>abcdefgh)", r"abc(defgh", r"\habcdefgh", r"(?:abcdefgh){e<=1}", "[z-a]bcdefgh"]
)
def test_what_the_standard_library_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        required_literal(pattern)


@pytest.mark.parametrize("pattern", ["(?>abcdefgh)", "(?:abcdefgh)++"])
def test_what_only_newer_pythons_know_is_refused_by_all(pattern: str) -> None:
    engine.compile(pattern)
    with pytest.raises(ValueError):
        required_literal(pattern)


def test_groups_are_named() -> None:
    assert group_names(r"(?P<arch>\S+) of (?P<size>\d+)(x)") == {"arch", "size"}


@given(regex_and_text())
@settings(max_examples=200, deadline=None)
def test_every_match_has_one_alternative_of_each_run(pair: tuple[str, str]) -> None:
    pattern, text = pair
    for alternatives in required_runs(pattern, minimum=1):
        assert any(all(run in text for run in runs) for runs in alternatives)


def test_runs_of_alternatives_and_options() -> None:
    assert required_runs(r"(?:Alpha|Beta one)\d? does not(?: really)? run") == (
        (("Alpha",), ("Beta one",)),
        (("does not",),),
    )
    assert required_runs(r"long text (?:Alpha|\w+)") == ((("long text",),),)
    assert required_runs(r"(?i)long text") == ()
    assert required_runs(r"long (?i:text) here") == ((("long",),), (("here",),))
