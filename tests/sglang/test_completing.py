"""Completing, explaining and marking flags while a command is typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.release import parse_release
from mtpdoctor.sglang.completing import complete, explain, flag_at, flag_words, marks
from mtpdoctor.sglang.flags import flag_table

TABLE = flag_table(parse_release("0.5.13.post1"))
HEAD = "FOO=1 python -m sglang.launch_server --model-path /m "


def texts(text: str, cursor: int | None = None) -> list[str]:
    found = complete(text, len(text) if cursor is None else cursor, TABLE)
    return [item.text for item in found.items] if found else []


def test_flags_that_begin_with_what_is_typed_come_first() -> None:
    offered = texts(HEAD + "--speculative-al")
    assert offered[0] == "--speculative-algorithm"
    assert texts(HEAD + "--max-mamba")[0] == "--max-mamba-cache-size"


def test_a_flag_is_found_by_the_words_inside_it() -> None:
    assert "--mem-fraction-static" in texts(HEAD + "--fraction")
    assert "--disable-radix-cache" in texts(HEAD + "--radix")


def test_a_completion_takes_the_place_of_the_word_at_the_cursor() -> None:
    text = HEAD + "--attention-back triton"
    cursor = text.index("-back") + 5
    found = complete(text, cursor, TABLE)
    assert found is not None and text[found.start : found.end] == "--attention-back"


@pytest.mark.parametrize("text", ["--attention-backend ", "--attention-backend=", '"--attention-backend", "'])
def test_choices_of_the_flag_before_are_offered(text: str) -> None:
    assert {"triton", "flashinfer", "fa3"} <= set(texts(HEAD + text))


def test_choices_that_begin_so_come_before_those_that_hold_it() -> None:
    offered = texts(HEAD + "--attention-backend tri")
    assert offered[0] == "triton"


def test_choices_known_of_another_release_are_offered_where_this_one_takes_any_text() -> None:
    assert {"EAGLE", "NEXTN"} <= set(texts(HEAD + "--speculative-algorithm "))


@pytest.mark.parametrize(
    "text",
    [
        "ls --speculative-al | python -m sglang.launch_server",  # before the program
        HEAD + "--disable-radix-cache ",  # a switch takes nothing
        HEAD + "--port 30000 ",  # has its one value
        HEAD + "--port 1 && other --speculative-al",  # another program's
    ],
)
def test_nothing_is_offered_where_no_flag_of_the_server_can_stand(text: str) -> None:
    cursor = 19 if text.startswith("ls") else len(text)
    assert texts(text, cursor) == []


def test_unknown_flags_and_refused_values_are_marked_where_they_stand() -> None:
    text = HEAD + "--attention-backend flashinfr --hermes --tp x --mem-fraction-static 0,8 --port $PORT"
    found = {text[m.start : m.end]: m for m in marks(text, TABLE)}
    assert set(found) == {"flashinfr", "--hermes", "x", "0,8"}
    assert "flashinfer" in found["flashinfr"].why
    assert found["--hermes"].kind == "unknown" and found["x"].kind == "value"


def test_flags_of_other_programs_are_not_marked() -> None:
    text = "docker run --gpus all image python -m sglang.launch_server --port 1; curl --fail x"
    assert marks(text, TABLE) == ()


def test_a_list_in_yaml_is_understood() -> None:
    text = 'command: ["python3", "-m", "sglang.launch_server"]\nargs:\n  - --tp\n  - "two"\n  - --no-such\n'
    assert {text[m.start : m.end] for m in marks(text, TABLE)} == {"two", "--no-such"}


def test_the_flag_at_the_cursor_is_that_of_the_value_too() -> None:
    text = HEAD + "--tp-size 2"
    for at in (text.index("--tp") + 2, len(text)):
        spec = flag_at(text, at, TABLE)
        assert spec is not None and spec.dest == "tp_size"


def test_a_flag_is_explained_with_what_it_takes_its_default_and_where_it_exists() -> None:
    said = "\n".join(explain(TABLE["--tp-size"]))
    assert "whole number" in said and "Default 1" in said and "0.4.6" in said
    assert "triton" in "\n".join(explain(TABLE["--attention-backend"]))


def test_words_follow_a_renamed_option() -> None:
    old, new = flag_words("mamba_scheduler_strategy"), flag_words("mamba_radix_cache_strategy")
    assert old and new


@given(st.text(alphabet="-= \n\t'\"\\;|abtps01{}[],$é\x1b", max_size=60), st.integers(0, 80))
def test_any_text_can_be_typed(text: str, cursor: int) -> None:
    text = HEAD + text
    cursor = min(cursor, len(text))
    found = complete(text, cursor, TABLE)
    if found is not None:
        assert 0 <= found.start <= cursor <= len(text) and found.start <= found.end <= len(text)
        assert found.items
    for mark in marks(text, TABLE):
        assert 0 <= mark.start < mark.end <= len(text) and mark.why
    flag_at(text, cursor, TABLE)


def test_every_flag_is_offered_for_its_own_name_and_never_marked_unknown() -> None:
    for option in (o for o in TABLE if o.startswith("--") and TABLE[o].refused is None):
        assert {option, TABLE[option].name} & set(texts(HEAD + option)), option
        assert all(m.kind != "unknown" for m in marks(f"{HEAD}{option}", TABLE)), option
