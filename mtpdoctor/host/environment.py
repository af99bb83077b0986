"""Environment variables that bear on a launch of SGLang. Secrets are masked as soon as they are read."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.host.saved import mask_variable
from mtpdoctor.text import safe

# Families by their first letters: what SGLang and the libraries under it read.
# fmt: off
_PREFIXES = (
    "SGLANG_", "SGL_", "NCCL_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "NVTE_", "NVSHMEM_", "HF_", "HUGGINGFACE_",
    "HUGGING_FACE_", "TRANSFORMERS_", "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "PYTORCH_", "TRITON_", "GLOO_",
    "TP_SOCKET_", "FLASHINFER_", "FLASHMLA_", "DG_", "DEEPGEMM_", "DEEPEP_", "MC_", "MOONCAKE_", "UCX_", "NIXL_", "RDMAV_",
    "IBV_", "HIP_", "ROCR_", "ROCM_", "HSA_", "AITER_", "RCCL_", "AMD_", "ASCEND_", "HCCL_", "ZE_", "SYCL_", "ONEAPI_",
    "OMP_", "MKL_", "KMP_", "MALLOC_", "RAY_", "MODELSCOPE_", "TVM_", "XGRAMMAR_", "OUTLINES_", "TOKENIZERS_", "SAFETENSORS_",
    "OTEL_",
)
_NAMES = frozenset((
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "PYTHONNOUSERSITE",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "XDG_CACHE_HOME", "TMPDIR", "CC", "CXX", "NVCC", "MAX_JOBS",
    "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "SLURM_JOB_ID", "SLURM_NNODES", "SLURM_NODEID",
    "KUBERNETES_SERVICE_HOST", "USE_TRITON_W8A8_FP8_KERNEL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
))
_PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"))
_NOISE = ("NVIDIA_REQUIRE_", "NVIDIA_PRODUCT_")  # labels of images
# fmt: on


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of ``environ`` that SGLang or a library under it reads, by name; values safe and masked."""
    return {
        safe(name): mask_variable(name, safe(value))
        for name, value in sorted(environ.items())
        if (name.startswith(_PREFIXES) and not name.startswith(_NOISE))
        or name in _NAMES
        or name.lower() in _PROXIES
    }
