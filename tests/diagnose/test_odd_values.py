"""Options that count something and were given nothing."""

from __future__ import annotations

import dying
import pytest

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
