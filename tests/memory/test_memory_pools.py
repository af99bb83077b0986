"""Properties of the sum: what grows with what, and that the bounds it gives are bounds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sums import count, flags, host, model, sum_of, term

RELEASES = (
    "0.4.6",
    "0.4.10",
    "0.5.2",
    "0.5.5",
    "0.5.7",
    "0.5.9",
    "0.5.12",
    "0.5.13.post1",
    "0.5.16",
    "0.5.23",
)
MODELS = (
    "Llama-3.1-8B", "Qwen3-30B-A3B", "Qwen3-Next-80B-A3B", "gpt-oss-20b", "DeepSeek-V3", "Qwen3.5-27B",
    "Nemotron-Nano-9B", "Kimi-Linear-48B-A3B", "Falcon-H1-7B", "Gemma-3-27B", "Qwen2.5-7B-AWQ", "MiniMax-M2",
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(RELEASES),
    st.sampled_from(MODELS),
    st.sampled_from([23.6, 44.4, 79.6, 139.8, 178.4]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["", "EAGLE", "NGRAM"]),
    st.floats(0.05, 0.97),
)
def test_no_launch_breaks_the_sum(
    release: str, name: str, gib: float, tp: int, spec: str, fraction: float
) -> None:
    options = {"tp_size": tp, "mem_fraction_static": round(fraction, 3)}
    if spec:
        options |= {"speculative_algorithm": spec, "speculative_num_draft_tokens": 4}
    found = sum_of(flags(**options), release, model(name), host(gib, count=tp))
    assert found.fits in (True, False, None)
    assert all(t.gib is None or t.gib >= 0 for t in found.terms)
    assert all(c.value is None or c.value >= 0 for c in found.counts)
    least, best = found.numbers.get("fraction_least"), found.numbers.get("fraction_best")
    if best is not None:
        assert least is not None
        assert float(least) <= float(best) <= max(float(found.numbers["fraction_most"]), float(least))
    if found.fits:
        assert found.trouble == "none"
        assert not found.advice


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(MODELS), st.sampled_from(["0.5.9", "0.5.13.post1", "0.5.20"]))
def test_the_best_fraction_fits_and_below_the_least_nothing_does(name: str, release: str) -> None:
    of, on = model(name), host(139.8, count=8)
    if of.heads is not None and of.heads % 8:
        return  # eight ranks cannot share them
    numbers = sum_of(flags(tp_size=8), release, of, on).numbers
    if "fraction_best" not in numbers:
        return
    assert sum_of(flags(tp_size=8, mem_fraction_static=numbers["fraction_best"]), release, of, on).fits
    below = round(float(numbers["fraction_least"]) - 0.004, 3)
    if below > 0:
        lower = sum_of(flags(tp_size=8, mem_fraction_static=below), release, of, on)
        tokens = count(lower, "KV tokens") or 0
        assert not lower.fits or tokens < 6000


@settings(max_examples=20, deadline=None)
@given(st.floats(0.3, 0.85), st.floats(0.01, 0.1))
def test_a_larger_share_holds_more_tokens(fraction: float, more: float) -> None:
    of, on = model("Llama-3.1-8B"), host(79.6)
    small = sum_of(flags(mem_fraction_static=round(fraction, 3)), "0.5.13", of, on)
    large = sum_of(flags(mem_fraction_static=round(fraction + more, 3)), "0.5.13", of, on)
    assert (count(small, "KV tokens") or 0) < (count(large, "KV tokens") or 0)


def bytes_of_token(name: str, release: str = "0.5.13.post1", **options: object) -> float:
    found = sum_of(flags(mem_fraction_static=0.9, **options), release, model(name), host(178.4, count=16))
    tokens = count(found, "KV tokens")
    assert tokens
    return term(found, "KV pool") * 2**30 / tokens


@pytest.mark.parametrize(
    ("name", "options", "size"),
    [
        ("Llama-3.1-8B", {}, 32 * 8 * 256 * 2),
        ("Llama-3.1-8B", {"tp_size": 4}, 32 * 2 * 256 * 2),
        ("Llama-3.1-8B", {"tp_size": 16}, 32 * 1 * 256 * 2),  # fewer KV heads than ranks: repeated
        ("Llama-3.1-8B", {"kv_cache_dtype": "fp8_e4m3"}, 32 * 8 * 256),
        ("Llama-3.1-8B", {"kv_cache_dtype": "fp4_e2m1"}, 32 * (8 * 256 / 2 + 8 * 128 * 2 / 16)),
        ("Llama-3.1-8B", {"pp_size": 4}, 8 * 8 * 256 * 2),
        ("DeepSeek-V3", {"tp_size": 8}, 61 * 576 * 2),  # MLA: the latent is whole on every rank
        ("DeepSeek-V3", {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}, 61 * 576 * 2),
        ("Qwen3-Next-80B-A3B", {"tp_size": 2}, 12 * 1 * 512 * 2),  # hybrid: full layers only
        ("Qwen3-30B-A3B", {"tp_size": 8, "dp_size": 2, "enable_dp_attention": True}, 48 * 1 * 256 * 2),
        ("gpt-oss-20b", {}, (12 + 0.8 * 12) * 8 * 128 * 2),  # two pools
        ("gpt-oss-20b", {"disable_hybrid_swa_memory": True}, 24 * 8 * 128 * 2),
    ],
)
def test_bytes_of_one_token(name: str, options: dict[str, object], size: float) -> None:
    assert bytes_of_token(name, **options) == pytest.approx(size, rel=0.001)


def test_quantization_while_loading_halves_what_it_touches() -> None:
    plain = sum_of(flags(), "0.5.13", model("Llama-3.1-8B"), host(139.8))
    fp8 = sum_of(flags(quantization="fp8"), "0.5.13", model("Llama-3.1-8B"), host(139.8))
    whole = model("Llama-3.1-8B")
    vocabulary = 2 * (whole.vocab_size or 0) * (whole.hidden_size or 0) * 2 / 2**30
    assert term(fp8, "weights") == pytest.approx(
        (term(plain, "weights") - vocabulary) / 2 + vocabulary, rel=0.02
    )


def test_a_checkpoint_that_is_quantized_stays_as_it_is() -> None:
    plain = sum_of(flags(), "0.5.13", model("Qwen3-Coder-480B-FP8"), host(139.8))
    asked = sum_of(flags(quantization="fp8"), "0.5.13", model("Qwen3-Coder-480B-FP8"), host(139.8))
    assert term(asked, "weights") == pytest.approx(term(plain, "weights"))


def test_experts_are_split_and_attention_only_over_its_ranks() -> None:
    of = model("DeepSeek-V3")
    tensor = sum_of(flags(tp_size=8), "0.5.13", of, host(139.8, count=8))
    data = sum_of(flags(tp_size=8, dp_size=8, enable_dp_attention=True), "0.5.13", of, host(139.8, count=8))
    assert term(tensor, "weights") < term(data, "weights") < 2 * term(tensor, "weights")


def test_the_draft_pool_comes_on_top_before_0_5_14_and_out_of_the_share_after() -> None:
    of, on = model("DeepSeek-V3"), host(139.8, count=8)
    options = flags(tp_size=8, speculative_algorithm="EAGLE", mem_fraction_static=0.85)
    before, after = (sum_of(options, release, of, on) for release in ("0.5.13.post1", "0.5.14"))
    assert (count(before, "KV tokens") or 0) > (count(after, "KV tokens") or 0)
    assert term(before, "draft KV pool") > 0


def test_more_requests_need_more_state_until_they_do_not_fit() -> None:
    of, on = model("Qwen3-Next-80B-A3B"), host(95.0, count=2)
    options = {"tp_size": 2, "speculative_algorithm": "NEXTN", "disable_radix_cache": True}
    few = sum_of(flags(max_running_requests=8, **options), "0.5.13.post1", of, on)
    many = sum_of(flags(max_running_requests=4000, **options), "0.5.13.post1", of, on)
    assert few.fits
    assert not many.fits
    assert many.trouble == "requests"
    assert (many.advice[0].option, many.advice[0].direction) == ("max_running_requests", "lower")
    lowered = sum_of(flags(max_running_requests=many.advice[0].value, **options), "0.5.13.post1", of, on)
    assert lowered.trouble != "requests"
