"""What messages of SGLang ask of the options that they name, in both directions."""

from pathlib import Path

import pytest

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.asked import asked
from mtpdoctor.diagnose.kinds.bare_values import value_meant
from mtpdoctor.diagnose.kinds.said import spoken_of
from mtpdoctor.facts import Source, make_facts
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table

ROWS = [
    line.split(" || ")
    for line in (Path(__file__).parents[1] / "data" / "asked.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("release", "message", "wanted"), ROWS, ids=[row[1][:60] for row in ROWS])
def test_what_a_message_asks_of_each_option(release: str, message: str, wanted: str) -> None:
    said = [
        ("-" if one.verb == "away" else "+")
        + one.spec.name
        + (f"={one.value}" if one.value and one.verb == "towards" else "")
        for one in asked(message, flag_table(parse_release(release)))
        if one.verb == "away" or (one.verb == "towards" and (one.value or one.spec.arity == "switch"))
    ]
    assert said == wanted.split()


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("The FlashInfer LoRA backend went, please use `triton` instead.", "--lora-backend triton"),
        ("Warp only supports layer_first layout, got page_first", "--hicache-mem-layout layer_first"),
        ("Warp only supports trtllm_mla, fa3 or triton attention backend", "--attention-backend fa3"),
        ("Warp only supports FP8 block quantization", ""),
        ("The Warp attention backend must be fast", ""),
    ],
)
def test_a_value_without_its_option(message: str, wanted: str) -> None:
    case = Case(make_facts({"release": "0.5.20", "host.gpu.sm": 90, "host.platform": "cuda"}, Source.PROBE))
    table = flag_table(case.release)
    found = value_meant(message, spoken_of(message, case, table), table, case)
    assert (f"{found[0].name} {found[1]}" if found else "") == wanted
