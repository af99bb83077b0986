"""What a release's argparse would say, held against what the real one said."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.parse import parse_error

VERDICTS = Path(__file__).parent.parent / "data" / "verdicts"
TABLE = flag_table(parse_release("0.5.13.post1"))


@pytest.mark.parametrize("file", sorted(VERDICTS.glob("*.xz")), ids=lambda p: p.name)
def test_it_says_what_the_real_parser_said(file: Path) -> None:
    """Recorded commands: the same ones are refused, with the same first words."""
    table = flag_table(parse_release(file.name.removesuffix(".jsonl.xz")))
    with lzma.open(file, "rt") as stream:
        rows = [json.loads(line) for line in stream]
    assert len(rows) >= 200
    wrong = []
    for row in rows:
        real = row["error"].partition(": ")[2] if row.get("stage") == "argparse" else ""
        mine = (parse_error(row["argv"], table) or "").partition("error: ")[2]
        if bool(real) != bool(mine) or mine[:36] != real[:36]:
            wrong.append((row["id"], mine, real))
    assert not wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model-path m --tp two", "argument --tensor-parallel-size/--tp-size: invalid int value: 'two'"),
        ("--model-path m --tp", "expected one argument"),
        ("--model-path m --tp -1", None),
        ("--model-path m --tp=2", None),
        ("--model-path m --trust-remote-code=yes", "ignored explicit argument 'yes'"),
        ("--model-path m --trust-remote-code yes", "unrecognized arguments: yes"),
        ("--model-path m --speculative-num", "ambiguous option: --speculative-num could match"),
        ("--model-path m --attention-backend fa5", "invalid choice: 'fa5'"),
        ("--model-path m --mem-fraction-static 0,9", "invalid float value: '0,9'"),
        ("--model-path m -tp 2", "unrecognized arguments: -tp 2"),
        ("--tp 2", "the following arguments are required: --model-path/--model"),
        ("--config f.yaml", None),
        ("--model-path $MODEL --tp $TP", None),
        ("--model m --tp 2 --lora-paths a=b c=d --port 1", None),
    ],
)
def test_the_kinds_of_error(words: str, said: str | None) -> None:
    found = parse_error(words.split(), TABLE)
    if said is None:
        assert found is None
    else:
        assert said in (found or "")


@given(st.lists(st.sampled_from([*list(TABLE)[:40], "--", "-", "x", "-1", "--a=b", "1.5", "{}", "--tp", ""])))
@settings(max_examples=150, deadline=None)
def test_any_words_get_an_answer_of_one_line(words: list[str]) -> None:
    found = parse_error(words, TABLE)
    assert found is None or found.startswith("launch_server.py: error: ")
