"""Untrusted text is made safe; widths are those of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.text import char_width, cut, one_line, safe, width, wrap


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jx", "x"),
        ("a\x1b(Bb\x1bcd", "abd"),
        ("bar\rbaz\x00\x08", "barbaz"),
        ("abc\u202edef\u2066g\u200b", "abcdefg"),
        ("a\u2028b", "a b"),
        ("\ud800\udc00x\ufffe", "\ufffd\ufffdx\ufffd"),
        ("héllo 漢字 👍", "héllo 漢字 👍"),
    ],
)
def test_safe(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(alphabet=st.characters(categories=None, exclude_categories=[]), max_size=60))
def test_safe_is_idempotent_and_can_be_encoded(text: str) -> None:
    once = safe(text)
    assert safe(once) == once
    once.encode("utf-8")
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in once)
    assert "\n" not in one_line(text) and "\t" not in one_line(text)


@pytest.mark.parametrize(
    ("char", "columns"), [("a", 1), ("é", 1), ("漢", 2), ("👍", 2), ("\u0301", 0), ("|", 1)]
)
def test_widths(char: str, columns: int) -> None:
    assert char_width(char) == columns == width(char)


@given(st.text(alphabet="ab 漢é\u0301", max_size=80), st.integers(2, 30))
def test_wrapped_rows_fit_and_lose_nothing(text: str, columns: int) -> None:
    rows = wrap(text, columns)
    assert all(width(row) <= columns for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@given(st.text(alphabet="ab漢", min_size=1, max_size=20), st.integers(1, 10))
def test_cut_splits_without_loss(text: str, columns: int) -> None:
    head, rest = cut(text, columns)
    assert head + rest == text and head
    assert width(head) <= max(columns, 2)
