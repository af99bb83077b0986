"""Odd launches: values that no server takes, models that the sum knows little of. Never a traceback, never a guess."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_sums import host, model, sum_of

from mtpdoctor.memory.types import MemorySum
from mtpdoctor.records import replace

RELEASES = ("0.4.6", "0.5.2", "0.5.6", "0.5.7", "0.5.9", "0.5.13.post1", "0.5.17", "0.5.23")
NAMES = ("Llama-3.1-8B", "Qwen3-Next-80B-A3B", "gpt-oss-20b", "DeepSeek-V3.2", "Nemotron-Nano-9B", "Kimi-Linear-48B-A3B")  # fmt: skip
NUMBERS = (
    "--mem-fraction-static", "--tp-size", "--pp-size", "--dp-size", "--context-length", "--max-running-requests",
    "--max-total-tokens", "--cuda-graph-max-bs", "--chunked-prefill-size", "--page-size", "--speculative-num-steps",
    "--speculative-num-draft-tokens", "--mamba-full-memory-ratio", "--max-mamba-cache-size",
    "--swa-full-tokens-ratio", "--cuda-graph-bs", "--dcp-size", "--max-prefill-tokens",
)  # fmt: skip
VALUES = (
    "0",
    "-1",
    "1",
    "1.5",
    "0.9",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "10**12",
    "1000000000000",
    "auto",
    "",
    "7",
)
SWITCHES = (
    "--speculative-algorithm NEXTN", "--speculative-algorithm DFLASH", "--enable-dp-attention",
    "--kv-cache-dtype fp4_e2m1", "--disable-radix-cache", "--mamba-scheduler-strategy extra_buffer",
    "--quantization fp8", "--disaggregation-mode decode", "--disable-cuda-graph",
)  # fmt: skip


def summed(options: str, name: str = "Llama-3.1-8B", release: str = "0.5.13.post1") -> MemorySum:
    command = f"python -m sglang.launch_server --model-path /m {options}"
    return sum_of(command, release, model(name), host(79.6, count=8))


@settings(max_examples=60, deadline=None)
@example("0.4.6", "Llama-3.1-8B", {"--tp-size": "-1"}, set())
@given(
    st.sampled_from(RELEASES),
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(NUMBERS), st.sampled_from(VALUES), max_size=4),
    st.sets(st.sampled_from(SWITCHES), max_size=3),
)
def test_no_value_breaks_the_sum(
    release: str, name: str, numbers: dict[str, str], switches: set[str]
) -> None:
    words = [f"{option} '{value}'" for option, value in sorted(numbers.items())]
    found = summed(" ".join([*words, *sorted(switches)]), name, release)
    sizes = [term.gib for term in found.terms if term.gib is not None]
    assert all(size >= 0 and size == size for size in sizes)
    if found.fits:
        assert found.missing == () and sizes


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tp_size", "-1"), ("tp_size", "0"), ("tp_size", "nan"), ("pp_size", "1.5"), ("page_size", "0"),
        ("context_length", "-5"), ("max_running_requests", "0"), ("mem_fraction_static", "much"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_meant_decides_nothing_and_is_named(option: str, value: str) -> None:
    flag = "--" + option.replace("_", "-")
    found = summed(f"{flag} {value}")
    assert found.fits is None
    assert found.missing == (f"arg.{option}",)
    assert flag in found.notes[0] and "cannot be meant" in found.notes[0]


def test_a_value_of_the_environment_is_not_judged() -> None:
    assert "arg.tp_size" not in summed('--tp-size "$TP"').missing


@pytest.mark.parametrize(
    ("fraction", "trouble"), [("0", "fraction_low"), ("-0.5", "fraction_low"), ("1.5", "fraction_high")]
)
def test_a_share_out_of_its_range_does_not_fit(fraction: str, trouble: str) -> None:
    found = summed(f"--mem-fraction-static {fraction}")
    assert found.fits is False and found.trouble == trouble
    value = found.advice[0].value
    assert value is None or 0.3 < value < 0.98


@pytest.mark.parametrize(
    ("options", "name", "says"),
    [
        ("--tp-size 3", "Llama-3.1-8B", "32 attention heads cannot be shared out evenly over 3 ranks"),
        ("--json-model-override-args '{\"a\": 1}'", "Llama-3.1-8B", "--json-model-override-args"),
        ("--quantization some_new_scheme", "Llama-3.1-8B", "--quantization some_new_scheme"),
        ("--cpu-offload-gb 600 --tp 2", "DeepSeek-V3", "--cpu-offload-gb"),
    ],
)
def test_what_the_sum_does_not_follow_is_not_decided_and_says_why(options: str, name: str, says: str) -> None:
    found = summed(options, name)
    assert found.fits is None
    assert found.numbers["sure"] is False
    assert any(note.startswith("Not decided: ") and says in note for note in found.notes)


def test_an_architecture_with_caches_of_its_own_is_not_decided() -> None:
    other = replace(model("DeepSeek-V3"), architecture="DeepseekV4ForCausalLM")
    found = sum_of(
        "python -m sglang.launch_server --model-path /m --tp 8", "0.5.23", other, host(79.6, count=8)
    )
    assert found.fits is None and found.numbers["sure"] is False


def test_a_model_without_layers_never_fits() -> None:
    for layers in (0, 10**12):
        odd = replace(model("Llama-3.1-8B"), layers=layers, layer_kinds=())
        found = sum_of("python -m sglang.launch_server --model-path /m", "0.5.23", odd, host(79.6))
        assert found.fits is not True
