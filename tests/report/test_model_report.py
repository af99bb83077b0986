"""A model on a page and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.model.config import read_model
from mtpdoctor.report.model_json import model_to_json
from mtpdoctor.report.model_text import render_model, stack
from mtpdoctor.text import width

MODELS = Path(__file__).parent.parent / "data" / "models"

STACKS = [
    ("LLLF" * 12, "48 = (LLLF)×12"),
    ("A" * 61, "61 = A×61"),
    ("LLLA" * 6 + "LLA", "27 = (LLLA)×6 LLA"),
    ("SF" * 12, "24 = (SF)×12"),
    ("SSSSSF" * 10 + "SS", "62 = (SSSSSF)×10 SS"),
    ("FSSSF", "5 = FSSSF"),
    ("F", "1 = F"),
]


@pytest.mark.parametrize(("letters", "shown"), STACKS)
def test_the_picture_of_the_stack(letters: str, shown: str) -> None:
    assert stack(letters) == shown


@given(st.text("LFMA-", min_size=1, max_size=90))
def test_the_picture_can_be_unfolded_again(letters: str) -> None:
    count, _, shown = stack(letters, "x").partition(" = ")
    assert int(count) == len(letters)
    head, joint, tail = shown.partition("x")
    if not joint:
        assert shown.replace(" ", "") == letters
        return
    times, _, rest = tail.partition(" ")
    assert head.strip("()") * int(times) + rest == letters


@pytest.mark.parametrize("name", sorted(p.name for p in MODELS.iterdir()))
@pytest.mark.parametrize("columns", [40, 80, 160])
def test_pages_keep_to_their_width(name: str, columns: int) -> None:
    page = render_model(read_model(MODELS / name), width=columns)
    assert all(width(row) <= columns for row in page.splitlines())
    plain = render_model(read_model(MODELS / name), width=columns, plain=True)
    assert plain.isascii()


def test_a_hybrid_model() -> None:
    page = render_model(read_model(MODELS / "Qwen3.5-122B-A10B"), width=100)
    assert "Qwen3_5MoeForConditionalGeneration (experts, hybrid, multimodal)" in page
    assert "48 = (LLLF)×12" in page and "L 36 linear attention (Gated DeltaNet)" in page
    assert "1 layer by config.json" in page
    assert "233.0 GiB by config.json" in page
    assert "\x1b[" not in page and "\x1b[" in render_model(
        read_model(MODELS / "Qwen3.5-122B-A10B"), color=True
    )


def test_problems_are_shown(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["X"], "num_hidden_layers": "many"}')
    page = render_model(read_model(tmp_path))
    assert "! config.json: 'num_hidden_layers' must be a whole number" in page


def test_numbers_out_of_all_bounds(tmp_path: Path) -> None:
    raw = json.loads((MODELS / "Qwen3-8B" / "config.json").read_text())
    for name in ("hidden_size", "vocab_size", "num_attention_heads", "num_hidden_layers", "head_dim"):
        (tmp_path / "config.json").write_text(json.dumps(raw | {name: 10**400}))
        assert render_model(read_model(tmp_path)).startswith("Model ")


def test_names_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["A\x1b[31m\nB"], "model_type": "\x9b2J"})
    )
    model = read_model(tmp_path)
    for text in (render_model(model), json.dumps(model_to_json(model), ensure_ascii=False)):
        assert "\x1b" not in text and "\x9b" not in text


def test_json(tmp_path: Path) -> None:
    model = read_model(MODELS / "Qwen3-8B")
    document = json.loads(json.dumps(model_to_json(model)))
    assert document["architecture"] == "Qwen3ForCausalLM" and document["weights"] is None
    assert document["layer_kinds"] == ["full"] * 36 and document["problems"] == []
    assert "raw" not in document
