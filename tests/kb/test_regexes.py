"""A rule's regex finds the same with either engine, and no text stalls it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import regex as limited
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.kb.growth import growth
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.regexes import NotARegex, RuleRegex


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"out of memory", (1, 1, 13)),
        (r"^out of memory", (1, 0, 1)),
        (r"(?m)^out of memory", (1, 1, 1)),
        (r"tried (?P<n>\d+) GiB", (1, 2, 6)),
        (r"tried (?P<n>.*)", (1, 1, 6)),  # nothing comes after it: it is matched once
        (r"tried (?P<n>.*)$", (1, 2, 6)),
        (r"a{0,80}b", (80, 1, 1)),
        (r"(?:Type|Value)Error: .*x", (1, 2, 1)),
        (r"(?:Type|T\w+)Error", (2, 2, 1)),
        (r"--[a-z]+(?:-[a-z]+)* not", (1, 3, 1)),  # each turn begins with what it cannot go on with
        (r"abcab.*c.*d", (1, 3, 3)),  # its beginning may overlap with itself
        (r"--[a-z]+(?:-[a-z-]+)* not", None),
        (r"(?:a+)+b", None),
        (r"(?:(a)|b)*c", None),
        (r"(?P<q>['\"]).*(?P=q)", None),
        (r"(?:one){e<=1}", None),
        (r"one\K two", None),
        (r"(?<=a+)b", None),
    ],
)
def test_growth(pattern: str, expected: tuple[int, int, int] | None) -> None:
    assert growth(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?:a+)+b|(?:a|a)+c", "a" * 4000),
        (r"a.*a.*a.*a.*b|a.*c", "a" * 4000),
    ],
)
def test_a_text_made_to_stall_is_given_up(pattern: str, text: str) -> None:
    with pytest.raises(TimeoutError):
        RuleRegex(pattern).search(text, timeout=0.02)


def test_what_is_no_regex() -> None:
    with pytest.raises(NotARegex):
        RuleRegex(r"(unclosed").search("(unclosed", timeout=1)


TEXTS = [
    "ValueError: --mem-fraction-static 0.9 is too high",
    '  File "/x/sglang/srt/y.py", line 7, in z',
    "torch.OutOfMemoryError: tried 3.50 GiB; 1.2 GiB free\n[TP0] x",
    "naïve Größe\tstraße\u3000x １２",
]


@given(st.sampled_from(TEXTS), st.integers(0, 60), st.integers(0, 60))
def test_both_engines_find_the_same_in_a_stretch(text: str, start: int, size: int) -> None:
    for pattern in (r"^\w+", r"\b\d+(?P<rest>.*)$", r"(?<=\s)\S+", r"(?<!a)r\b", r"[^\s:]+:? (?P<a>\w+)"):
        found = RuleRegex(pattern).search(text, start, start + size, timeout=1)
        expected = limited.compile(pattern).search(text, start, start + size)
        assert (found and found.span()) == (expected and expected.span())


def test_rules_find_the_same_with_either_engine() -> None:
    """On every example, that holds the literal, of every fourth rule."""
    tried = 0
    for rule in load_knowledge().rules[::4]:
        examples = [example["log"] for kind in ("bad", "ok") for example in rule.examples.get(kind, ())]
        for pattern in rule.match:
            for text in examples:
                if pattern.literal not in text:
                    continue
                found = RuleRegex(pattern.regex).search(text, timeout=5)
                expected = limited.compile(pattern.regex).search(text)
                assert (found and (found.span(), found.groupdict())) == (
                    expected and (expected.span(), expected.groupdict())
                )
                tried += 1
    assert tried > 300


def test_most_rules_need_the_standard_engine_only() -> None:
    """The package ``regex`` is not loaded for a failure whose rules are plain."""
    code = (
        "import sys; from mtpdoctor.cli.main import main;"
        "main(['diagnose', 'sample_logs/spec_no_buffer_with_radix.log']);"
        "print('regex' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"
