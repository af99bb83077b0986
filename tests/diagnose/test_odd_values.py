"""Options that count something and were given nothing."""

from __future__ import annotations

import dying
import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

OWN = "/x/sglang/srt/managers/warp.py:step"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("--page-size 0", "--page-size"),
        ("--context-length -5", "--context-length"),
        ("--cuda-graph-bs 0", "--cuda-graph-bs"),
        ("--tp 0", "--tensor-parallel-size"),
    ],
)
def test_a_count_of_nothing_goes_first(typed: str, name: str) -> None:
    found = dying.first("ZeroDivisionError: integer modulo by zero", (OWN,), more=typed)
    fix = found["fixes"][0]
    assert [(e["op"], e["name"]) for e in fix["edits"]] == [("remove", name)]
    assert fix["safety"] == "risky"


@pytest.mark.parametrize(
    "typed", ["--chunked-prefill-size -1", "--base-gpu-id 0", "--page-size 16", "--port 0", ""]
)
def test_what_has_a_meaning_stays(typed: str) -> None:
    found = dying.first("ZeroDivisionError: integer modulo by zero", (OWN,), more=typed)
    assert not any("above 0" in fix["title"] for fix in found["fixes"])


@pytest.mark.parametrize("size", ["9" * 420, "9" * 5000, "0", "-1", "nan"])
def test_a_size_beyond_all_numbers_stops_no_diagnosis(size: str) -> None:
    knowledge = load_knowledge()
    text = (
        f"$ python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp {size} --nnodes {size} --ep {size}\nsglang==0.5.9\n"
        "[2026-05-05 10:00:01 TP0] Load weight begin. avail mem=78.00 GB\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    assert diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses
