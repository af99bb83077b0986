"""A small table of options, so that these tests do not depend on the learned release data."""

from __future__ import annotations

from mtpdoctor.launch.flags import FlagSpec

_SPECS = [
    FlagSpec("model_path", "--model-path", ("--model-path", "--model")),
    FlagSpec("tp_size", "--tensor-parallel-size", ("--tensor-parallel-size", "--tp-size", "--tp")),
    FlagSpec("dp_size", "--data-parallel-size", ("--data-parallel-size", "--dp-size", "--dp")),
    FlagSpec("host", "--host"),
    FlagSpec("port", "--port"),
    FlagSpec("nnodes", "--nnodes"),
    FlagSpec("node_rank", "--node-rank"),
    FlagSpec("dist_init_addr", "--dist-init-addr", ("--dist-init-addr", "--nccl-init-addr")),
    FlagSpec("trust_remote_code", "--trust-remote-code", (), "switch"),
    FlagSpec("disable_radix_cache", "--disable-radix-cache", (), "switch"),
    FlagSpec("enable_dp_attention", "--enable-dp-attention", (), "switch"),
    FlagSpec("enable_metrics", "--enable-metrics", (), "switch"),
    FlagSpec("mem_fraction_static", "--mem-fraction-static"),
    FlagSpec("attention_backend", "--attention-backend"),
    FlagSpec("context_length", "--context-length"),
    FlagSpec("cuda_graph_bs", "--cuda-graph-bs", (), "many"),
    FlagSpec("lora_paths", "--lora-paths", (), "many"),
    FlagSpec("json_model_override_args", "--json-model-override-args"),
    FlagSpec("chat_template", "--chat-template"),
    FlagSpec("served_model_name", "--served-model-name"),
    FlagSpec("quantization", "--quantization"),
    FlagSpec("kv_cache_dtype", "--kv-cache-dtype"),
    FlagSpec("disaggregation_mode", "--disaggregation-mode"),
    FlagSpec("speculative_algorithm", "--speculative-algorithm"),
    FlagSpec("speculative_draft_model_path", "--speculative-draft-model-path"),
    FlagSpec("speculative_num_steps", "--speculative-num-steps"),
    FlagSpec("mamba_scheduler_strategy", "--mamba-scheduler-strategy"),
    FlagSpec("random_seed", "--random-seed"),
    FlagSpec("config", "--config"),
]


class SmallTable:
    def __init__(self) -> None:
        self.names = {alias: spec for spec in _SPECS for alias in (spec.name, *spec.aliases)}

    def resolve(self, name: str) -> FlagSpec | None:
        if name in self.names:
            return self.names[name]
        fits = {id(s): s for n, s in self.names.items() if name.startswith("--") and n.startswith(name)}
        return next(iter(fits.values())) if len(fits) == 1 else None


TABLE = SmallTable()
