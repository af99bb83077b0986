"""Whether a release captures CUDA graphs for prefill (piecewise, later breakable graphs).

Off by default up to 0.5.9; on from 0.5.10 on unless one of the release's own exclusions holds.
"""

from __future__ import annotations

from mtpdoctor.memory.architecture import is_mla
from mtpdoctor.memory.arguments import Arguments
from mtpdoctor.memory.releases import of
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.release import Release

_NOT_PIECEWISE = frozenset(
    {
        "DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark",
        "Qwen3NextForCausalLM", "BailingMoeV2_5ForCausalLM", "LLaDAModelLM",
    }
)  # fmt: skip
_V4 = frozenset({"DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark"})
# Multimodal models whose prefill is captured all the same: from which release on.
_MULTIMODAL: tuple[tuple[str, frozenset[str]], ...] = (
    (
        ">=0.5.16",
        frozenset(
            {
                "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
                "Cohere2VisionForConditionalGeneration", "KimiK25ForConditionalGeneration",
                "MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration",
            }
        ),
    ),
    (
        ">=0.5.20",
        frozenset(
            {
                "Glm5NextForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
                "PaddleOCRVLForConditionalGeneration", "MuseGlimmerForConditionalGeneration",
                "KimiK3ForConditionalGeneration",
            }
        ),
    ),
)  # fmt: skip
_A2A_TRIED = frozenset({"deepep", "megamoe", "flashinfer"})


def prefill_graphs_on(
    arguments: Arguments, release: Release, model: ModelFacts | None, multimodal: bool | None
) -> bool:
    if of(release, "<0.5.3.post2"):
        return False
    if of(release, "<0.5.10rc0"):
        return arguments.on("enable_piecewise_cuda_graph")
    if of(release, "<0.5.14"):
        if arguments.on("enforce_piecewise_cuda_graph"):
            return True
        return not arguments.on("disable_piecewise_cuda_graph") and not _piecewise_excluded(
            arguments, release, model, multimodal
        )
    chosen = arguments.text("cuda_graph_backend_prefill")
    if chosen is not None:
        return chosen != "disabled"
    if any(
        arguments.on(name)
        for name in ("disable_cuda_graph", "disable_prefill_cuda_graph", "disable_piecewise_cuda_graph")
    ):
        return False
    return not _breakable_excluded(arguments, release, model, multimodal)


def _piecewise_excluded(
    arguments: Arguments, release: Release, model: ModelFacts | None, multimodal: bool | None
) -> bool:
    """0.5.10 to 0.5.13."""
    if model is not None and model.architecture in _NOT_PIECEWISE:
        return True
    if of(release, "<0.5.11") and arguments.on("speculative_algorithm"):
        return True
    return bool(
        multimodal
        or (arguments.count("pp_size") or 1) > 1
        or (arguments.count("attn_cp_size") or 1) > 1
        or (arguments.number("cpu_offload_gb") or 0) > 0
        or "gguf" in (arguments.text("load_format"), arguments.text("quantization"))
        or any(arguments.asked(name) for name in _PIECEWISE_SWITCHES if arguments.on(name) or name == _DP)
    )


_DP = "enable_dp_attention"  # one rank of it is taken back, after the graphs were decided
_PIECEWISE_SWITCHES = (
    _DP, "enable_torch_compile", "moe_a2a_backend", "lora_paths", "enable_lora",
    "dllm_algorithm", "enable_hierarchical_cache", "enable_deterministic_inference", "disaggregation_mode",
    "enable_symm_mem", "enable_eplb", "expert_distribution_recorder_mode", "debug_cuda_graph",
    "enable_dsa_prefill_context_parallel",
)  # fmt: skip


def _breakable_excluded(
    arguments: Arguments, release: Release, model: ModelFacts | None, multimodal: bool | None
) -> bool:
    """From 0.5.14 on."""
    mla = model is not None and is_mla(model, arguments)
    if of(release, ">=0.5.16") and arguments.text("disaggregation_mode") == "decode":
        return True
    if of(release, "<0.5.15"):
        return mla
    if model is not None and model.architecture in _V4:
        return True
    if multimodal and not any(
        of(release, since) and model is not None and model.architecture in names
        for since, names in _MULTIMODAL
    ):
        return True
    if (arguments.count("attn_cp_size") or 1) > 1 or (arguments.count("dcp_size") or 1) > 1:
        return True
    a2a = arguments.text("moe_a2a_backend")
    if of(release, "<0.5.17"):
        return (
            mla
            or arguments.asked(_DP)
            or any(arguments.on(n) for n in ("lora_paths", "enable_lora", "moe_a2a_backend"))
        )
    if arguments.on("enable_two_batch_overlap") or (a2a not in (None, "none") and a2a not in _A2A_TRIED):
        return True
    if of(release, "<0.5.18"):
        return mla or (model is not None and (model.architecture or "").startswith("NemotronH"))
    if (arguments.count("pp_size") or 1) > 1 and of(release, ">=0.5.19"):
        return True
    return of(release, ">=0.5.20") and model is not None and model.linear_kind == "kda"
