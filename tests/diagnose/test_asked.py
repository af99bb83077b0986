"""What messages of SGLang ask of the options that they name, in both directions."""

from pathlib import Path

import pytest

from mtpdoctor.case import Case
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.kinds.asked import asked
from mtpdoctor.diagnose.kinds.bare_values import value_meant
from mtpdoctor.diagnose.kinds.said import spoken_of
from mtpdoctor.facts import Source, make_facts
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table

KNOWLEDGE = load_knowledge()
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


@pytest.mark.parametrize(
    ("typed", "model", "wanted"),
    [
        ("--tool-call-parser llama4", "M", ["--tool-call-parser pythonic"]),  # what it is called here
        ("--tool-call-parser qwen2.5", "M", ["--tool-call-parser qwen25"]),
        ("--tool-call-parser warp", "Qwen25-Warp", ["--tool-call-parser qwen25"]),  # what the model is
        ("--tool-call-parser warp", "M", []),  # none is more likely than the next
    ],
)
def test_the_value_taken_of_a_list(typed: str, model: str, wanted: list[str]) -> None:
    log = f"""\
$ python -m sglang.launch_server --model-path org/{model} {typed}
[2026-01-01 10:00:00] sglang version 0.5.9
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/sglang/srt/warp/parsers.py", line 9, in pick
    raise ValueError(message)
ValueError: Warp takes for tool_call_parser only one of: deepseekv3, pythonic, qwen25
"""
    report = diagnose(reading_from_text(log, KNOWLEDGE.literals), KNOWLEDGE, Given(release="0.5.9"))
    titles = (f.title for d in report.diagnoses for f in d.fixes)
    assert [t.partition("lists: ")[2] for t in titles if "message lists" in t] == wanted
