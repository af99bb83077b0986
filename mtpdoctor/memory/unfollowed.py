"""What the sum does not follow: options and models for which a verdict would be a guess."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.memory.launch import Launch
from mtpdoctor.memory.weights import shrink
from mtpdoctor.model.types import ModelFacts

# Options that take weights or pools off the GPU: what does not fit by the sum may fit with them.
_EASING = (
    "cpu_offload_gb", "offload_group_size", "enable_memory_saver", "ple_offload_embedding", "dcp_size",
    "enable_hisparse", "enable_unified_memory", "enable_kv_cache_sharding", "kt_weight_path",
    "prefill_only_disable_kv_cache", "is_embedding", "encoder_only", "elastic_ep_backend", "torchao_config",
)  # fmt: skip
# Options with which the model is another than its config says, or runs elsewhere.
_CHANGING = ("device", "model_impl", "load_format", "json_model_override_args", "modelopt_quant")
_UNSURE = (
    "enable_lora",
    "lora_paths",
    "weight_loader_drop_cache_after_load",
)  # small; no verdict rests on them
_HARMLESS = {
    "device": ("cuda",), "load_format": ("auto", "safetensors", "pt", "dummy"), "dcp_size": ("1",),
    "cpu_offload_gb": ("0",), "model_impl": ("auto", "sglang"), "json_model_override_args": ("{}",),
    "torchao_config": ("",), "offload_group_size": ("-1", "0"),
}  # fmt: skip
# Architectures with caches of their own make, or whose layers no config of this reader tells.
_ARCHITECTURES = ("DeepseekV4", "MiniMaxM3Sparse", "HYV4", "Glm5Next", "KimiK3", "LLaDA")
UNIFIED = frozenset({87, 110, 121})  # SMs of chips whose GPU uses the system's memory


def eased_by(launch: Launch) -> tuple[str, ...]:
    """The options in force, by SGLang's field names, with which less has to be on the GPU than the sum says."""
    return tuple(name for name in _EASING if _counts(launch, name))


def not_followed(launch: Launch, model: ModelFacts | None) -> str | None:
    """Why nothing can be said of this launch at all; None where the sum follows it."""
    for name in _CHANGING:
        if _counts(launch, name):
            return f"with --{name.replace('_', '-')} the sum does not know what is loaded"
    architecture = (model.architecture or "") if model is not None else ""
    if architecture.startswith(_ARCHITECTURES):
        return f"{architecture} keeps caches of a kind that the sum does not follow"
    ranks = launch.attention_tp
    if model is not None and model.heads and model.heads % ranks:
        return f"{model.heads} attention heads cannot be shared out evenly over {ranks} ranks"
    method = launch.arguments.text("quantization")
    known = shrink(launch) is not None or model is None or model.quantization is not None
    if method is not None and launch.arguments.typed("quantization") and not known:
        return f"how large --quantization {method} leaves these weights is not known"
    return None


def is_followed(case: Case, launch: Launch, model: ModelFacts | None) -> bool:
    """Is nothing in play that the sum does not know of? Only then a launch is refused for it."""
    if not_followed(launch, model) is not None or any(_counts(launch, n) for n in (*_EASING, *_UNSURE)):
        return False
    platform = case.facts.look("host.platform")
    return platform in (UNKNOWN, "cuda") and case.facts.look("host.gpu.sm") not in UNIFIED


def _counts(launch: Launch, name: str) -> bool:
    """Was the option typed, with a value that matters?"""
    arguments = launch.arguments
    if not arguments.typed(name):
        return False
    return str(arguments.facts.look(f"flag.{name}")) not in _HARMLESS.get(name, ())
