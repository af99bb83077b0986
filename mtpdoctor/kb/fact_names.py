"""The names of facts that knowledge may use, and how to say them to people.

``flag.``, ``arg.``, ``step.``, ``env.``, ``host.package.`` and ``capture.`` are open (their names come from
SGLang, the host or the rule's regex); the others are closed lists, so that a typo is found when the
knowledge is loaded instead of being an unknown fact for ever.
"""

from __future__ import annotations

from mtpdoctor.patterns import lazy

HOST = frozenset(
    {
        "host.platform", "host.gpu.sm", "host.gpu.count", "host.gpu.memory_gib", "host.gpu.free_gib",
        "host.gpu.name", "host.shm_gib", "host.ram_gib", "host.container", "host.driver", "host.cuda_driver",
    }
)  # fmt: skip
MODEL = frozenset(
    "model." + name
    for name in (
        "path", "architecture", "model_type", "layers", "hidden_size", "heads", "kv_heads", "head_dim",
        "experts", "vocab_size", "context_length", "dtype", "quantization", "mtp_layers",
        "full_attention_interval", "linear_key_heads", "linear_value_heads", "is_hybrid", "is_mla",
        "is_moe", "problems",
    )
)  # fmt: skip
LOG = frozenset(
    "log." + name
    for name in (
        "stage", "avail_mem_before_load_gib", "avail_mem_after_load_gib", "weights_gib",
        "avail_mem_after_pool_gib", "max_total_num_tokens", "max_running_requests", "context_len",
        "accept_len", "total_mem_gib",
    )
)  # fmt: skip
CLOSED = HOST | MODEL | LOG | {"release"}

_OPEN = lazy(
    r"(?:flag|arg|step)\.[a-z][a-z0-9_]*$|env\.[A-Za-z_][A-Za-z0-9_]*$|host\.package\.[A-Za-z0-9][\w.-]*$"
    r"|capture\.[A-Za-z_]\w*$"
)
_PREFIXES = ("release", "flag.", "arg.", "step.", "env.", "host.", "model.", "log.", "capture.")

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
    "log.stage": "the stage reached",
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
        known = "release, flag.*, arg.*, step.*, env.*, host.*, model.*, log.*, capture.*"
        return f"unknown fact {name!r}{nearest(name, CLOSED)}; facts are {known}"
    return f"unknown fact {name!r}{nearest(name, CLOSED)}"


def is_version_fact(name: str) -> bool:
    """Whether the fact is ordered as a version ("0.10" after "0.9"), not as a number."""
    return name in ("release", "host.driver", "host.cuda_driver") or name.startswith("host.package.")


def fact_words(name: str) -> str:
    """The fact as a noun for people."""
    if name in _WORDS:
        return _WORDS[name]
    prefix, _, rest = name.partition(".")
    if prefix == "flag":
        return "--" + rest.replace("_", "-")
    if prefix == "host":
        return f"the version of {rest.partition('.')[2]}"
    if prefix == "model":
        return f"the model's {rest.replace('_', ' ')}"
    if prefix == "log":
        return f"the log's {rest.replace('_', ' ')}"
    return rest or name
