"""What two launches ran on: environment, release, packages, host, model, and the memory their logs print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.compare.arguments import same_value
from mtpdoctor.compare.launch import Launch
from mtpdoctor.compare.relevance import Relevance, environment_weight, host_weight, package_weight
from mtpdoctor.compare.types import Difference
from mtpdoctor.facts import UNKNOWN, Fact
from mtpdoctor.patterns import lazy
from mtpdoctor.redact import MASK, mask_secrets

_PACKAGE = lazy(
    r"(?<![\w.-])(sglang|sgl[-_]kernel|sglang[-_]kernel|torch|torchvision|transformers|flashinfer[-_]python|triton|xgrammar"
    r"|nccl|nvidia-nccl-cu1\d|nvidia-cudnn-cu1\d|deep[-_]ep|deep[-_]gemm|numpy|huggingface[-_]hub|compressed[-_]tensors|mooncake\S*"
    r"|vllm|outlines|cuda-python)(?:==|[ :]+v?(?=\d+\.\d+\.\d))v?(\d+\.\d+[\w.+]*\w)"
)
_HEAD = 400  # lines in which versions are looked for
_MODEL = (
    "architecture",
    "model_type",
    "layers",
    "heads",
    "kv_heads",
    "quantization",
    "dtype",
    "context_length",
    "mtp_layers",
)
# fact -> what it is, and how far apart counts (a share of the larger)
_MEMORY = {
    "log.total_mem_gib": ("memory of a GPU (GiB)", 0.02),
    "log.avail_mem_before_load_gib": ("free before the weights (GiB)", 0.04),
    "log.weights_gib": ("weights (GiB)", 0.04),
    "log.avail_mem_after_load_gib": ("free after the weights (GiB)", 0.05),
    "log.kv_gib": ("KV pool (GiB)", 0.05),
    "log.state_gib": ("linear-attention state (GiB)", 0.05),
    "log.max_total_num_tokens": ("tokens of the KV pool", 0.05),
    "log.max_running_requests": ("requests at once", 0.05),
    "log.context_len": ("context length", 0.0),
    "log.avail_mem_after_pool_gib": ("free after the pools (GiB)", 0.1),
    "log.graph_gib": ("graph capture (GiB)", 0.25),
}
_LEAST_GIB = 0.5  # of a GPU's memory: less is chance
_SEEN_FIRST = (
    "log.total_mem_gib",
    "log.avail_mem_before_load_gib",
    "log.weights_gib",
)  # not made by the arguments


def surroundings(good: Launch, bad: Launch, relevance: Relevance) -> Iterator[Difference]:
    yield from _release(good.case, bad.case, relevance)
    yield from _environment(good.case, bad.case, relevance)
    yield from _packages(good, bad, relevance)
    yield from _named("host", good.case, bad.case, relevance)
    yield from _named("model", good.case, bad.case, relevance)
    yield from _named("container", good.case, bad.case, relevance)
    yield from _memory(good.case, bad.case, relevance)


def _difference(
    area: str, name: str, a: Fact | None, b: Fact | None, weight: int, why: str | None, **more: Any
) -> Difference:
    values = [f.value if f is not None else None for f in (a, b)]
    kind = "changed" if None not in values else "added" if values[0] is None else "removed"
    where = (a.where if a is not None else "", b.where if b is not None else "")
    return Difference(area, name, values[0], values[1], kind, weight, why, where=where, **more)


def _release(good: Case, bad: Case, relevance: Relevance) -> Iterator[Difference]:
    a, b = good.facts.fact("release"), bad.facts.fact("release")
    if a is None or b is None or a.value == b.value:
        return
    if not (good.release_is_certain and bad.release_is_certain):
        return  # worked out as one of several: no difference that anybody saw
    weight, why = relevance.release(str(a.value), str(b.value))
    yield _difference("release", "SGLang", a, b, weight, why)


def _environment(good: Case, bad: Case, relevance: Relevance) -> Iterator[Difference]:
    names = {n for case in (good, bad) for n in case.facts if n.startswith("env.")}
    for name in sorted(names):
        a, b = good.facts.look(name), bad.facts.look(name)
        if a is UNKNOWN or b is UNKNOWN or a == b:
            continue
        variable = name[4:]
        weight, why = relevance.weigh((name,), environment_weight(variable), b)
        found = _difference("environment", variable, good.facts.fact(name), bad.facts.fact(name), weight, why)
        yield Difference(
            found.area,
            variable,
            _masked(variable, a),
            _masked(variable, b),
            found.kind,
            weight,
            why,
            None,
            found.where,
        )


def _masked(variable: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    masked = mask_secrets(f"{variable}={value}")
    return masked.partition("=")[2] if masked.startswith(f"{variable}=") else MASK


def _packages(good: Launch, bad: Launch, relevance: Relevance) -> Iterator[Difference]:
    sides = [_installed(launch) for launch in (good, bad)]
    for name in sorted({n for side in sides for n in side}):
        a, b = sides[0].get(name), sides[1].get(name)
        if a is None or b is None:
            complete = [_knows_packages(launch.case) for launch in (good, bad)]
            if not all(complete):
                continue
        if a == b or (name == "sglang" and "release" in good.case.facts and "release" in bad.case.facts):
            continue
        weight, why = relevance.weigh((f"host.package.{name}",), package_weight(name), b)
        kind = "changed" if a and b else "added" if b else "removed"
        yield Difference("packages", name, a, b, kind, weight, why)


def _knows_packages(case: Case) -> bool:
    return any(n.startswith("host.package.") for n in case.facts)


def _installed(launch: Launch) -> dict[str, str]:
    """Of the host, where it was given; else what the head of the log names."""
    facts = launch.case.facts
    out = {
        n.removeprefix("host.package."): str(facts[n])
        for n in facts
        if n.startswith("host.package.") and facts[n]
    }
    if out:
        return out
    for i, line in enumerate(launch.lines()):
        if i >= _HEAD:
            break
        for name, version in _PACKAGE.findall(line.text):
            out.setdefault(name.lower().replace("_", "-"), version)
    return out


def _named(area: str, good: Case, bad: Case, relevance: Relevance) -> Iterator[Difference]:
    names = {n for case in (good, bad) for n in case.facts if n.startswith(f"{area}.")}
    for name in sorted(names):
        if area == "host" and (name.startswith("host.package.") or host_weight(name) <= 15):
            continue
        if area == "model" and name[6:] not in _MODEL:
            continue
        a, b = good.facts.fact(name), bad.facts.fact(name)
        if a is None or b is None or same_value(a.value, b.value) or _close(a.value, b.value, 0.02):
            continue
        base = host_weight(name) if area == "host" else 58 if name == "model.architecture" else 40
        weight, why = relevance.weigh((name,), base, b.value)
        yield _difference("host" if area == "container" else area, name, a, b, weight, why)


def _close(a: Any, b: Any, share: float) -> bool:
    if (
        isinstance(a, bool)
        or isinstance(b, bool)
        or not isinstance(a, (int, float))
        or not isinstance(b, (int, float))
    ):
        return False
    return abs(a - b) <= share * max(abs(a), abs(b))


def _memory(good: Case, bad: Case, relevance: Relevance) -> Iterator[Difference]:
    for name, (words, share) in _MEMORY.items():
        a, b = good.facts.fact(name), bad.facts.fact(name)
        if a is None or b is None or _close(a.value, b.value, share):
            continue
        if not isinstance(a.value, (int, float)) or not isinstance(b.value, (int, float)):
            continue
        if name.endswith("_gib") and abs(a.value - b.value) < _LEAST_GIB:
            continue
        less = b.value < a.value
        base = 24 if name in _SEEN_FIRST and less else 12
        why = None
        if name in _SEEN_FIRST and relevance.asks_memory and (less or name == "log.weights_gib"):
            base = 96 if less and b.value < a.value / 2 and name != "log.weights_gib" else 88
            why = "the failure is one of memory"
        elif name == "log.avail_mem_before_load_gib" and less and a.value - b.value > 2:
            base = 30
        yield _difference("memory", words, a, b, base, why)
