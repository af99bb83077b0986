"""Environment variables that a log shows outside of the launch command: printed by ``env``, or told by NCCL."""

from __future__ import annotations

from mtpdoctor.patterns import lazy

__all__ = ["LITERALS", "variable_in"]

LITERALS = (
    "set by environment to",
    "NCCL_",
    "GLOO_SOCKET_IFNAME=",
    "CUDA_MODULE_LOADING=",
    "CUDA_LAUNCH_BLOCKING=",
    "CUDA_DEVICE_MAX_CONNECTIONS=",
    "CUDA_HOME=",
    "_ALLOC_CONF=",
    "SGLANG_",
    "HF_HUB_",
    "HF_ENDPOINT=",
    "HF_HOME=",
    "LD_PRELOAD=",
    "TORCH_CUDA_ARCH_LIST=",
    "_VISIBLE_DEVICES=",
    "NVSHMEM_",
)

# Names that decide how a launch goes; nothing that may hold a secret.
_PRINTED = lazy(
    r"(?:export |declare -x )?"
    r"((?:CUDA|NCCL|GLOO|SGLANG|SGL|PYTORCH|TORCH|TORCHINDUCTOR|TRITON|FLASHINFER|NVSHMEM|UCX|MC|HIP|ROCR|HSA|AITER|ASCEND|HCCL"
    r"|HF|TRANSFORMERS|OMP)_[A-Z0-9_]+|LD_PRELOAD|LD_LIBRARY_PATH)"
    r"=(\"[^\"]*\"|'[^']*'|[^\s\"'$]*)"
)
_SECRET = lazy(r"TOKEN|KEY|SECRET|PASS")
_OF_NCCL = lazy(r"NCCL INFO (NCCL_[A-Z0-9_]+) set by environment to (\S+?)\.?$")


def variable_in(text: str) -> tuple[str, str] | None:
    """Name and value of the variable that a line shows, or None. Lines of NCCL's debugging say what was set for it."""
    if "set by environment to" in text:
        told = _OF_NCCL.search(text)
        return (told[1], told[2]) if told else None
    shown = _PRINTED.fullmatch(text.rstrip())
    if shown is None or _SECRET.search(shown[1]):
        return None
    return shown[1], shown[2].strip("\"'")
