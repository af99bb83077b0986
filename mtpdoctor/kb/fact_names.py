"""The names of facts that knowledge may use, and how to say them to people.

``flag.``, ``arg.``, ``step.``, ``env.``, ``host.package.`` (and what is said of a distribution's requirements),
``host.limit.`` and ``capture.`` are open (their names come from SGLang, the host or the rule's regex); the
others are closed lists, so that a typo is found when the knowledge is loaded instead of being an unknown
fact for ever.
"""

from __future__ import annotations

from mtpdoctor.patterns import lazy

HOST = frozenset(
    "host." + name
    for name in (
        "platform", "machine", "container", "wsl", "driver", "cuda_driver", "cuda_driver_major", "nvcc", "failures",
        "gpu.sm", "gpu.count", "gpu.memory_gib", "gpu.free_gib", "gpu.name", "gpu.kinds", "gpu.kind_count",
        "gpu.mig", "gpu.persistence", "gpu.ecc_errors", "gpu.compute_mode", "gpu.p2p", "gpu.held_gib",
        "gpu.unexplained_gib", "gpu.leftovers", "gpu.leftover_pids", "gpu.others", "gpu.other_pids", "gpu.hidden",
        "gpu.hidden_by", "gpu.on_pci", "gpu.pci_drivers",
        "cpus", "cpus_per_gpu", "ram_gib", "ram_free_gib", "swap_gib", "shm_gib", "shm_free_gib",
        "memory_per_gpu_gib", "cgroup_memory_gib", "cgroup_cpus", "numa_nodes",
        "disk.path", "disk.purpose", "disk.free_gib", "disk.total_gib", "proxy.catches",
        "python.executable", "python.version", "python.requires", "python.fits", "python.shadows",
        "python.duplicates", "python.copies", "python.has_sglang",
        "torch.cuda", "torch.cuda_major", "torch.sms", "torch.fits_gpu",
        "kernel.name", "kernel.version", "kernel.pin", "kernel.cuda", "kernel.cuda_major", "kernel.sms",
        "kernel.fits_gpu",
    )
)  # fmt: skip
MODEL = frozenset(
    "model." + name
    for name in (
        "path", "architecture", "model_type", "layers", "hidden_size", "heads", "kv_heads", "head_dim",
        "experts", "vocab_size", "context_length", "dtype", "quantization", "mtp_layers",
        "full_attention_interval", "linear_key_heads", "linear_value_heads", "is_hybrid", "is_mla",
        "is_moe", "is_dsa", "problems", "is_multimodal", "tied_embeddings", "intermediate_size",
        "expert_intermediate_size", "experts_per_token", "kv_lora_rank", "v_head_dim", "linear_kind",
        "linear_key_dim", "linear_value_dim", "sliding_window", "rope_scaling", "quantization_block", "revision",
        "has_mtp", "has_tokenizer", "has_processor", "has_chat_template", "weights_format", "weights_gib",
        "weights_missing", "weights_truncated", "weights_pointers", "weights_empty", "weights_unreadable",
        "support", "support_from", "type_known", "type_from",
    )
)  # fmt: skip
LOG = frozenset(
    "log." + name
    for name in (
        "stage", "avail_mem_before_load_gib", "avail_mem_after_load_gib", "weights_gib",
        "avail_mem_after_pool_gib", "max_total_num_tokens", "max_running_requests", "context_len",
        "accept_len", "build", "development", "lacked", "lacked_files", "unprocessed", "processor_files", "processor_from", "total_mem_gib", "pp_ranks", "tp_ranks",
        "draft_pools", "draft_pools_gib",
        "host_pools_gb", "host_kv_pools_gb", "host_pool_ranks", "memory_limit_gib",
        "weights_link", "weights_link_folder",
    )
)  # fmt: skip
MEMORY = frozenset(
    "memory." + name
    for name in (
        "known", "sure", "trouble", "fraction", "fraction_least", "fraction_most", "fraction_best",
        "fraction_lower", "automatic_works", "hopeless", "weights_gib", "before_gib", "left_gib",
        "others_gib", "kv_tokens", "requests", "max_running_requests", "cuda_graph_max_bs",
        "chunked_prefill_size", "context_length", "context_saves_gib", "table_requests", "tp_least",
        "fraction_typed",
    )
)  # fmt: skip
CLOSED = HOST | MODEL | LOG | MEMORY | {"release"}

_OPEN = lazy(
    r"(?:flag|arg|step)\.[a-z][a-z0-9_]*$|env\.[A-Za-z_][A-Za-z0-9_]*$"
    r"|host\.(?:package|unmet|older|newer|missing|unmet_said|unmet_fix|pin)\.[A-Za-z0-9][\w.-]*$"
    r"|host\.limit\.[a-z]+$|capture\.[A-Za-z_]\w*$"
)
_PREFIXES = ("release", "flag.", "arg.", "step.", "env.", "host.", "model.", "log.", "memory.", "capture.")

_VERSIONS = frozenset(
    ("release", "host.driver", "host.cuda_driver", "host.nvcc", "host.torch.cuda", "host.kernel.cuda", "host.python.version")
)  # fmt: skip

_OF_PACKAGES = {
    "package": "the version of",
    "unmet": "packages in other versions than asked for by",
    "older": "packages older than asked for by",
    "newer": "packages newer than asked for by",
    "missing": "packages missing that are asked for by",
    "limit": "the limit (ulimit) of",
}
_WORDS = {
    "release": "the SGLang release",
    "host.platform": "the platform",
    "host.gpu.sm": "the GPU's SM number",
    "host.gpu.count": "the number of GPUs",
    "host.gpu.memory_gib": "the GPU's memory (GiB)",
    "host.gpu.free_gib": "the GPU's free memory (GiB)",
    "host.gpu.name": "the GPU's name",
    "host.shm_gib": "the size of /dev/shm (GiB)",
    "host.ram_gib": "the host's memory (GiB)",
    "host.container": "running in a container",
    "host.driver": "the GPU driver",
    "host.cuda_driver": "the driver's CUDA version",
    "host.cuda_driver_major": "the driver's CUDA major version",
    "host.cpus_per_gpu": "the number of CPUs for each GPU",
    "host.disk.free_gib": "the space on the fullest disk (GiB)",
    "host.failures": "what the probes could not look at",
    "host.gpu.compute_mode": "the GPU's compute mode",
    "host.gpu.ecc_errors": "the number of uncorrected memory errors of a GPU",
    "host.gpu.held_gib": "the memory held of a GPU (GiB)",
    "host.gpu.hidden": "the number of GPUs hidden by the environment",
    "host.gpu.kind_count": "the number of different kinds of GPUs",
    "host.gpu.leftovers": "processes of an SGLang whose launcher is gone",
    "host.gpu.mig": "multi-instance mode (MIG)",
    "host.gpu.on_pci": "the number of NVIDIA GPUs on the bus",
    "host.gpu.others": "other processes on the GPUs",
    "host.gpu.p2p": "direct access between GPUs",
    "host.gpu.pci_drivers": "the kernel drivers bound to the GPUs",
    "host.gpu.persistence": "persistence mode",
    "host.gpu.unexplained_gib": "memory of a GPU that no visible process holds (GiB)",
    "host.kernel.cuda_major": "the CUDA major version of the kernel package",
    "host.kernel.fits_gpu": "code for the GPUs in the kernel package",
    "host.kernel.name": "the kernel package",
    "host.memory_per_gpu_gib": "the memory for each GPU (GiB)",
    "host.nvcc": "the version of nvcc",
    "host.proxy.catches": "local addresses that the proxy catches",
    "host.python.duplicates": "distributions installed more than once",
    "host.python.fits": "a Python that SGLang admits",
    "host.python.has_sglang": "SGLang in a Python of this machine",
    "host.python.shadows": "folders that hide SGLang",
    "host.shm_free_gib": "the free space of /dev/shm (GiB)",
    "host.torch.cuda": "torch's CUDA version",
    "host.torch.cuda_major": "torch's CUDA major version",
    "host.torch.fits_gpu": "code for the GPUs in torch",
    "host.wsl": "running in WSL2",
    "log.stage": "the stage reached",
    "model.support": "the release's support for the model's class",
    "model.support_from": "the first later release that has the model's class",
    "model.type_known": "the release's knowledge of the model's type",
    "model.type_from": "the first later release that reads the model's type",
}


def check_fact_name(name: str) -> str | None:
    """What is wrong with the name of a fact, in words; None when it may be used."""
    if name in CLOSED or _OPEN.match(name):
        return None
    from mtpdoctor.kb.yaml_source import nearest

    if name.startswith(("flag.", "arg.")):
        fitting = name.lstrip("-").replace("-", "_").lower()
        return f"{name!r}: SGLang's field names are lower case with underscores, e.g. {fitting}"
    if not name.startswith(_PREFIXES):
        known = "release, flag.*, arg.*, step.*, env.*, host.*, model.*, log.*, memory.*, capture.*"
        return f"unknown fact {name!r}{nearest(name, CLOSED)}; facts are {known}"
    return f"unknown fact {name!r}{nearest(name, CLOSED)}"


def is_version_fact(name: str) -> bool:
    """Whether the fact is ordered as a version ("0.10" after "0.9"), not as a number."""
    return name in _VERSIONS or name.startswith("host.package.")


def fact_words(name: str) -> str:
    """The fact as a noun for people."""
    if name in _WORDS:
        return _WORDS[name]
    prefix, _, rest = name.partition(".")
    if prefix == "flag":
        return "--" + rest.replace("_", "-")
    if prefix == "host":
        kind, _, of = rest.partition(".")
        if kind in _OF_PACKAGES:
            return f"{_OF_PACKAGES[kind]} {of}"
        return f"the host's {' '.join(rest.replace('_', ' ').split('.'))}"
    if prefix == "model":
        return f"the model's {rest.replace('_', ' ')}"
    if prefix == "memory":
        return f"the memory sum's {rest.replace('_', ' ')}"
    if prefix == "log":
        return f"the log's {rest.replace('_', ' ')}"
    if prefix == "capture":
        return f'"{rest.replace("_", " ")}" of the message'
    return rest or name
