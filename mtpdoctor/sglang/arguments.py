"""Server arguments across releases: defaults, and what is set at start."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table

# Fields of ServerArgs that SGLang fills in or changes while it starts (model, GPU and other arguments
# decide). Read from the argument-resolution code of 0.5.9 to 0.5.23: a value of these in the
# server_args line says nothing about what was typed.
_DECIDED_AT_START = frozenset(
    {
        "attention_backend",
        "prefill_attention_backend",
        "decode_attention_backend",
        "mm_attention_backend",
        "sampling_backend",
        "grammar_backend",
        "linear_attn_backend",
        "mem_fraction_static",
        "max_running_requests",
        "max_total_tokens",
        "chunked_prefill_size",
        "max_prefill_tokens",
        "page_size",
        "cuda_graph_max_bs",
        "cuda_graph_bs",
        "cuda_graph_config",
        "piecewise_cuda_graph_tokens",
        "piecewise_cuda_graph_max_tokens",
        "random_seed",
        "served_model_name",
        "tokenizer_path",
        "device",
        "dtype",
        "kv_cache_dtype",
        "moe_runner_backend",
        "speculative_moe_runner_backend",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "speculative_draft_model_path",
        "speculative_draft_model_revision",
        "speculative_attention_mode",
        "disable_overlap_schedule",
        "disable_radix_cache",
        "disable_cuda_graph",
        "disable_piecewise_cuda_graph",
        "schedule_conservativeness",
        "nccl_port",
        "watchdog_timeout",
        "mamba_scheduler_strategy",
        "mamba_radix_cache_strategy",
        "mamba_ssm_dtype",
        "mamba_track_interval",
        "max_mamba_cache_size",
        "swa_full_tokens_ratio",
        "chat_template",
        "tool_call_parser",
        "reasoning_parser",
        "load_format",
        "model_impl",
        "weight_loader_disable_mmap",
        "disable_custom_all_reduce",
        "enable_flashinfer_allreduce_fusion",
        "disable_shared_experts_fusion",
        "fp8_gemm_runner_backend",
        "fp4_gemm_runner_backend",
        "quantization_param_path",
        "hicache_io_backend",
        "hicache_mem_layout",
        "enable_multimodal",
        "custom_sigquit_handler",
        "warmups",
        "detokenizer_worker_num",
        "tokenizer_worker_num",
        "ep_size",
        "load_balance_method",
        "expert_distribution_recorder_buffer_size",
        "moe_dense_tp_size",
        "numa_node",
        "enable_dynamic_batch_tokenizer",
        "keep_mm_feature_on_device",
    }
)


def decided_at_start() -> frozenset[str]:
    return _DECIDED_AT_START


@lru_cache(maxsize=128)  # every release
def default_arguments(release: Release | None) -> Mapping[str, Any]:
    """Default of every flag's destination in a release (the newest for None); None where SGLang
    decides at start."""
    from mtpdoctor.sglang.releases import newest_release

    return flag_table(release or newest_release()).defaults()
