"""Values that no launch can mean: a sum over them would say nothing."""

from __future__ import annotations

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.memory.arguments import as_number

# The least that SGLang takes, of the options by which the sum divides or multiplies.
_LEAST = {
    "tp_size": 1, "pp_size": 1, "dp_size": 1, "ep_size": 1, "attn_cp_size": 1, "page_size": 1, "context_length": 1,
    "max_running_requests": 1, "max_total_tokens": 1, "max_mamba_cache_size": 1, "max_prefill_tokens": 1,
    "cuda_graph_max_bs": 1, "chunked_prefill_size": -1, "speculative_num_steps": 0, "speculative_num_draft_tokens": 0,
    "speculative_eagle_topk": 0, "ep_num_redundant_experts": 0,
}  # fmt: skip
_SHARES = ("mem_fraction_static", "mamba_full_memory_ratio", "swa_full_tokens_ratio", "cpu_offload_gb")


def senseless(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The options whose value cannot be meant: SGLang's field name, and what is wrong in words.

    A value that is not typed, or comes from the environment (``$TP``), is not judged."""
    out = []
    for name in (*_LEAST, *_SHARES):
        value = facts.look(f"flag.{name}")
        if value is None or value is UNKNOWN or "$" in str(value):
            continue
        wrong = _wrong(name, value)
        if wrong is not None:
            out.append((name, f"--{name.replace('_', '-')} {value} cannot be meant: {wrong}."))
    return tuple(out)


def _wrong(name: str, value: object) -> str | None:
    number = as_number(value)
    if name in _SHARES:
        return "a number is wanted" if number is None else None
    least = _LEAST[name]
    if number is None or number != int(number) or number < least:
        return f"a whole number is wanted, {least} or more"
    return None
