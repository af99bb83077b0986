"""The tokenizer against the standard library's, and rendering read back."""

from __future__ import annotations

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.shell.lexer import ShellSyntaxError, tokenize

from .corpus import corpus, text_of
from .tables import TABLE

_TEXT = st.text(st.sampled_from("ab \t'\"\\=-/é#"), max_size=24)


@settings(max_examples=400, deadline=None)
@given(_TEXT)
def test_words_are_those_of_shlex(text: str) -> None:
    try:
        expected: list[str] | None = shlex.split(text, comments=False)
    except ValueError:
        expected = None
    if "#" in text or text.endswith("\\"):
        return  # comments begin at words only, and a trailing backslash is kept: shlex differs from a shell
    try:
        tokens = tokenize(text)
    except ShellSyntaxError:
        assert expected is None
        return
    assert [t.word.literal for t in tokens if t.word] == expected
    for token in tokens:
        again = tokenize(text[token.start : token.end])
        assert [t.word and t.word.literal for t in again] == [token.word and token.word.literal]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8), max_size=5))
def test_quoted_words_are_read_back(values: list[str]) -> None:
    tokens = tokenize(shlex.join(values))
    assert [t.word.literal for t in tokens if t.word] == values


def test_every_form_renders_to_a_line_that_reads_the_same() -> None:
    for path in corpus():
        command = read_launch(text_of(path), name=path.name, table=TABLE).command
        for multiline in (False, True):
            line = command_line(command, multiline=multiline)
            again = read_launch(line, table=TABLE).command
            assert again.flags == command.flags, path
            assert dict(again.env) == dict(command.env), path
            assert again.positionals == command.positionals
            assert multiline or "\n" not in line


def test_control_characters_are_rendered_as_escapes() -> None:
    line = command_line(read_launch("sglang serve --model-path $'a\\n\\x1b[31m\\'b'", table=TABLE).command)
    assert line == "sglang serve --model-path $'a\\n\\x1b[31m\\'b'"
