"""Which way to move what: every recorded memory failure, and the two messages that look alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_sums import DATA, H200, knowledge_once, model, of_log

from mtpdoctor.diagnose.engine import Given, diagnose
from mtpdoctor.host.types import HostFacts
from mtpdoctor.launch.types import EditOp
from mtpdoctor.log.reading import read_logs, reading_from_text
from mtpdoctor.memory.types import Advice, MemorySum

REAL, LOGS = DATA / "real_logs", DATA / "h200_logs"
GPU = 143771 / 1024  # GiB of the H200 they ran on


def first(found: MemorySum) -> Advice:
    return found.advice[0]


@pytest.mark.parametrize("known", [True, False], ids=["model known", "log alone"])
@pytest.mark.parametrize(
    ("path", "name", "least"),
    [
        (REAL / "mem_fraction_static_too_low.log", "Qwen3-tiny", 0.1),
        (LOGS / "hybrid_tiny_fraction.log", "Qwen3.5-tiny", 0.01),
        (LOGS / "tp2_kv_zero.log", "Qwen3-tiny", 0.01),
        (LOGS / "tp2_hybrid_zero.log", "Qwen3.5-tiny", 0.01),
        (H200 / "qwen35_122b_nextn_tp2.log", "Qwen3.5-122B-A10B", 0.83),
    ],
    ids=lambda v: v.stem if isinstance(v, Path) else None,
)
def test_a_share_that_is_too_small_goes_up(path: Path, name: str, least: float, known: bool) -> None:
    found = of_log(path, model(name) if known else None, GPU)
    assert found.trouble == "fraction_low"
    assert first(found).option == "mem_fraction_static"
    assert first(found).direction == "raise"
    assert least <= float(first(found).value or 0) <= 0.95
    assert float(found.numbers["fraction_least"]) <= float(first(found).value or 0)


@pytest.mark.parametrize("known", [True, False], ids=["model known", "log alone"])
@pytest.mark.parametrize(
    ("path", "name", "most"),
    [
        (LOGS / "hog_oom_high.log", "Qwen3-tiny", 0.97),
        (H200 / "h_nextn_default.log", "Qwen3.5-tiny", 0.72),
    ],
    ids=lambda v: v.stem if isinstance(v, Path) else None,
)
def test_a_share_that_is_too_large_goes_down(path: Path, name: str, most: float, known: bool) -> None:
    found = of_log(path, model(name) if known else None, GPU)
    assert found.trouble == "fraction_high"
    assert (first(found).option, first(found).direction) == ("mem_fraction_static", "lower")
    assert 0.3 <= float(first(found).value or 0) <= most
    assert float(first(found).value or 0) < float(found.numbers["fraction"])


def test_a_gpu_filled_by_others_is_no_matter_of_an_option() -> None:
    found = of_log(REAL / "kv_pool_zero_gpu_filled_by_others.log", model("Qwen3-tiny"), GPU)
    assert found.trouble == "others"
    assert found.advice == ()
    assert float(found.numbers["others_gib"]) > 130
    assert any("free the GPU" in note for note in found.notes)


SIZED = """\
$ python -m sglang.launch_server --model-path /m {options}
[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m', mem_fraction_static={fraction}, tp_size=1)
[2026-01-01 10:00:01] Load weight begin. avail mem=78.50 GB
[2026-01-01 10:00:09] Load weight end. elapsed=9.10 s, type=LlamaForCausalLM, avail mem={after} GB, mem usage={used} GB.
"""
NOT_ENOUGH = """\
[2026-01-01 10:00:10] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/model_executor/pool_configurator.py", line 60, in __post_init__
    raise RuntimeError(msg)
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
"""
CAPTURE = """\
[2026-01-01 10:00:10] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 480000, K size: 29.30 GB, V size: 29.30 GB
[2026-01-01 10:00:10] Memory pool end. avail mem=1.90 GB
[2026-01-01 10:00:10] Capture cuda graph begin. This can take up to several minutes. avail mem=1.05 GB
[2026-01-01 10:00:25] Scheduler hit an exception: Traceback (most recent call last):
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of \
79.18 GiB of which 302.81 MiB is free.
"""


def fixes(text: str, name: str | None = None, on: HostFacts | None = None) -> list[dict[str, str | None]]:
    knowledge = knowledge_once()
    reading = reading_from_text(text, knowledge.literals)
    given = Given(model=model(name) if name else None, host=on, release="0.5.13.post1")
    report = diagnose(reading, knowledge, given)
    return [
        {"title": fix.title, "safety": fix.safety}
        | {e.name: e.value for e in fix.edits if e.op is EditOp.SET}
        for fix in report.diagnoses[0].fixes
    ]


def test_not_enough_memory_raises_the_share_where_the_weights_leave_room() -> None:
    text = SIZED.format(options="--mem-fraction-static 0.4", fraction=0.4, after=46.9, used=31.6) + NOT_ENOUGH
    value = float(fixes(text, "Llama-3.1-8B")[0].get("--mem-fraction-static") or 0)
    assert value == 0 or 0.42 <= value <= 0.95  # a number, or the option taken out
    text = SIZED.format(options="--mem-fraction-static 0.8", fraction=0.8, after=12.1, used=66.4) + NOT_ENOUGH
    assert 0.86 <= float(fixes(text)[0].get("--mem-fraction-static") or 0) <= 0.95


def test_not_enough_memory_never_lowers_the_share() -> None:
    for fraction, after, used in ((0.1, 62.0, 16.5), (0.6, 30.0, 48.5), (0.9, 2.0, 76.5)):
        options = f"--mem-fraction-static {fraction}"
        text = SIZED.format(options=options, fraction=fraction, after=after, used=used) + NOT_ENOUGH
        for fix in fixes(text):
            value = fix.get("--mem-fraction-static")
            assert value is None or float(value) > fraction


def test_weights_that_fill_the_gpu_get_no_share_at_all() -> None:
    text = SIZED.format(options="", fraction=0.88, after=1.2, used=77.3) + NOT_ENOUGH
    assert not any("--mem-fraction-static" in fix for fix in fixes(text))


def test_a_failed_capture_lowers_the_share_or_the_batch_and_never_raises_it() -> None:
    text = SIZED.format(options="--mem-fraction-static 0.95", fraction=0.95, after=62.5, used=16.0) + CAPTURE
    found = fixes(text)
    assert found[0]["safety"] == "safe"
    assert 0.8 <= float(found[0]["--mem-fraction-static"] or 0) < 0.95
    assert all(float(f.get("--mem-fraction-static") or 0) < 0.95 for f in found)


def test_the_batch_is_halved_from_what_it_was() -> None:
    options = "--mem-fraction-static 0.95 --cuda-graph-max-bs 64"
    text = SIZED.format(options=options, fraction=0.95, after=62.5, used=16.0) + CAPTURE
    batches = [fix.get("--cuda-graph-max-bs") for fix in fixes(text)]
    assert "32" in batches


LOADING = """\
[2026-01-01 10:00:00] Load weight begin. avail mem=78.50 GB
[2026-01-01 10:00:09] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/model_executor/model_runner.py", line 1364, in load_model
    self.model = self.loader.load_model(
  File "/opt/sglang/srt/model_loader/loader.py", line 743, in load_model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.18 GiB of \
which 702.81 MiB is free.
"""


def test_out_of_memory_while_loading_asks_for_gpus_not_for_the_share() -> None:
    from memory_sums import host

    text = f"$ python -m sglang.launch_server --model-path /m\n{LOADING}"
    found = fixes(text, "Qwen3-Next-80B-A3B", host(79.6, count=8))
    assert found[0].get("--tp-size") == "4"
    assert not any("--mem-fraction-static" in fix for fix in found)


def test_the_page_and_the_json_show_the_sum() -> None:
    from mtpdoctor.report.json import to_json
    from mtpdoctor.report.text import render

    knowledge = knowledge_once()
    reading = read_logs([str(H200 / "h_nextn_default.log")], knowledge.literals)
    report = diagnose(reading, knowledge, Given(model=model("Qwen3.5-tiny")))
    page = render(report)
    assert "Memory of each GPU" in page
    assert "draft KV pool" in page
    assert all(len(row) <= 80 for row in page.splitlines() if row.startswith("  "))
    assert to_json(report)["memory"]["trouble"] == "fraction_high"


def test_a_failure_of_another_kind_shows_no_sum() -> None:
    from mtpdoctor.report.json import to_json

    knowledge = knowledge_once()
    reading = read_logs([str(REAL / "port_in_use.log")], knowledge.literals)
    assert to_json(diagnose(reading, knowledge))["memory"] is None


# -- every option that can be moved is, in some case, with a number --------------------------------------


def foreseen(options: str, name: str, release: str, on: HostFacts) -> MemorySum:
    from memory_sums import sum_of

    return sum_of(f"python -m sglang.launch_server --model-path /m {options}", release, model(name), on)


def remedies_of_check(options: str, name: str, release: str, on: HostFacts) -> dict[str, str | None]:
    from mtpdoctor.diagnose.check import check
    from mtpdoctor.launch.document import read_launch

    document = read_launch(f"python -m sglang.launch_server --model-path /m {options}")
    report = check(Given(document=document, host=on, model=model(name), release=release), knowledge_once())
    problem = next(p for p in report.problems if p.rule and p.rule.startswith("MTP071"))
    return {e.name: e.value for fix in problem.fixes for e in fix.edits if e.op is EditOp.SET}


def test_a_context_far_beyond_the_pool_is_shortened_to_what_the_pool_holds() -> None:
    from memory_sums import host

    arguments = ("--mem-fraction-static 0.93", "Gemma-3-27B", "0.5.20", host(79.6))
    found = foreseen(*arguments)
    assert found.trouble == "fraction_high"
    assert (first(found).option, first(found).direction) == ("context_length", "lower")
    tokens = next(c.value for c in found.counts if c.name == "KV tokens")
    assert 0.9 * float(tokens or 0) <= float(first(found).value or 0) <= float(tokens or 0)
    shorter = foreseen(f"{arguments[0]} --context-length {first(found).value}", *arguments[1:])
    assert shorter.fits and (shorter.left_gib or -1) >= 0
    assert remedies_of_check(*arguments)["--context-length"] == str(first(found).value)


def test_a_shorter_context_is_no_advice_where_it_does_not_save_enough() -> None:
    from memory_sums import host

    found = foreseen("--mem-fraction-static 0.97", "Gemma-3-27B", "0.5.20", host(79.6))
    assert first(found).option == "mem_fraction_static"
    assert "context_length" not in {a.option for a in found.advice}
    assert "max_running_requests" not in {a.option for a in found.advice}


def test_a_context_beyond_the_models_whose_tables_fill_the_gpu_goes_back_to_it() -> None:
    from memory_sums import host

    found = foreseen("--context-length 1000000000", "gpt-oss-20b", "0.5.20", host(79.6))
    assert found.fits is False
    assert (first(found).option, first(found).value) == ("context_length", 131072)


def test_many_requests_of_a_long_context_are_made_fewer() -> None:
    from memory_sums import host

    options, on = "--tp 8 --mem-fraction-static 0.95 --context-length 1000000", host(178.0, count=8, sm=100)
    found = foreseen(options, "MiniMax-M2", "0.5.20", on)
    fewer = next(a for a in found.advice if a.option == "max_running_requests")
    assert fewer.direction == "lower" and 200 <= float(fewer.value or 0) <= 300
    assert (
        foreseen(f"{options} --max-running-requests {fewer.value}", "MiniMax-M2", "0.5.20", on).left_gib or -1
    ) > 0


def test_what_fits_only_if_the_estimates_are_too_high_is_called_tight() -> None:
    from memory_sums import host

    from mtpdoctor.report.memory_text import render_memory

    options = "--mem-fraction-static 0.95 --context-length 1000000"
    found = foreseen(options, "Llama-3.1-8B", "0.5.20", host(178.0))
    assert found.fits and (found.left_gib or 0) < 0
    page = render_memory(found)
    assert page.startswith("TIGHT: ") and "-3" not in page.splitlines()[0]
    assert f"--mem-fraction-static {found.numbers['fraction_most']}" in page


SERVING = """\
[2026-01-01 10:00:10] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 466000, K size: 28.30 GB, V size: 28.30 GB
[2026-01-01 10:00:10] Memory pool end. avail mem=6.10 GB
[2026-01-01 10:00:25] The server is fired up and ready to roll!
[2026-01-01 10:09:20] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 3039, in run_batch
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.16 GiB. GPU 0 has a total capacity of 79.25 GiB of \
which 802.81 MiB is free.
"""


def test_out_of_memory_while_serving_lowers_the_share_and_names_the_chunk() -> None:
    options = "--mem-fraction-static 0.92 --chunked-prefill-size 16384"
    text = SIZED.format(options=options, fraction=0.92, after=63.3, used=15.2) + SERVING
    found = fixes(text, "Llama-3.1-8B")
    assert 0.8 <= float(found[0]["--mem-fraction-static"] or 0) < 0.9
    assert "8192" in [fix.get("--chunked-prefill-size") for fix in found]


def test_weights_that_need_more_gpus_than_are_here_name_their_number() -> None:
    from memory_sums import host

    text = f"$ python -m sglang.launch_server --model-path /m\n{LOADING}"
    titles = [str(fix["title"]) for fix in fixes(text, "Qwen3-Next-80B-A3B", host(79.6))]
    assert any("Use 4 such GPUs (--tp-size 4)" in title for title in titles)
    assert any(
        "FP8 is half as large" in title for title in titles
    )  # weights quantized while loading are built whole first
