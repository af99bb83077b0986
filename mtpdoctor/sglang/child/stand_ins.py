"""Makes this process believe in a CUDA host that is not there: torch's device queries, ``nvidia-smi``
and the kernel packages that load only where a GPU is.

Loaded by ``ask.py`` beside it. Nothing here runs on a GPU; what is stood in for answers only questions.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

# Top-level packages of compiled kernels and what they are built on. SGLang imports them while it reads
# its arguments, but asks them nothing that decides a check.
KERNEL_PACKAGES = frozenset(
    (
        "sgl_kernel", "sglang_kernel", "sgl_flash_mla", "flashinfer", "deep_gemm", "sgl_deep_gemm", "deep_ep",
        "flash_mla", "cutlass", "tilelang", "quack", "cuda", "nvshmem", "humming", "triton_kernels",
        "deepseek_recipe", "tml_renderers", "decord", "decord2", "smg_grpc_proto", "smg_grpc_servicer",
    )
)  # fmt: skip
GIB = 2**30
SHARED_MEMORY = {7: 65536, 8: 166912, 9: 232448, 10: 232448, 11: 232448, 12: 101376}  # bytes a block may use


class _StandIn(types.ModuleType):
    __path__: Any = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=self.__name__ + "." + name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] in KERNEL_PACKAGES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        module = _StandIn(spec.name)
        module.__dict__["__version__"] = "99.0.0"
        return module

    def exec_module(self, module: Any) -> None:
        pass


def stand_in(gpu: dict[str, Any], scratch: str) -> None:
    """Set everything up. ``scratch`` is a folder for the stand-in ``nvidia-smi``; the caller removes it."""
    # transformers looks for optional packages when it is imported: it must see the real ones only
    with contextlib.suppress(ImportError):
        from transformers import AutoConfig, AutoProcessor, AutoTokenizer  # noqa: F401
    sys.meta_path.insert(0, _Finder())
    import torch

    _pretend_cuda(torch, gpu)
    _forgive_operators(torch)
    _nvidia_smi(gpu, scratch)


def _pretend_cuda(torch: Any, gpu: dict[str, Any]) -> None:
    major, minor = gpu["sm"] // 10, gpu["sm"] % 10
    memory = int(gpu["gib"] * GIB)
    properties = types.SimpleNamespace(
        name=gpu["name"],
        major=major,
        minor=minor,
        total_memory=memory,
        multi_processor_count=gpu["sms"],
        shared_memory_per_block_optin=SHARED_MEMORY.get(major, 232448),
        shared_memory_per_multiprocessor=SHARED_MEMORY.get(major, 232448) + 1024,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048 if major in (8, 9, 10) else 1536,
        L2_cache_size=50 * 2**20,
        warp_size=32,
        gcnArchName="",
        uuid="GPU-0",
        is_integrated=0,
    )
    answers = {
        "is_available": True,
        "device_count": gpu["count"],
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "get_device_name": gpu["name"],
        "mem_get_info": (int(memory * 0.98), memory),
        "current_device": 0,
        "is_initialized": False,
        "set_device": None,
        "synchronize": None,
        "empty_cache": None,
        "_lazy_init": None,
    }
    for name, value in answers.items():
        setattr(torch.cuda, name, lambda *a, _value=value, **k: _value)
    if torch.version.cuda is None:
        torch.version.cuda = "13.0"


def _forgive_operators(torch: Any) -> None:
    """Fake kernels are registered for operators of packages that are only stood in for: let it pass."""
    register = getattr(torch.library, "register_fake", None)
    if register is None:
        return

    def register_fake(operator: Any, func: Any = None, **options: Any) -> Any:
        def decorate(f: Callable[..., Any]) -> Any:
            try:
                return register(operator, **options)(f)
            except RuntimeError:
                return f

        return decorate(func) if func else decorate

    torch.library.register_fake = register_fake


def _nvidia_smi(gpu: dict[str, Any], scratch: str) -> None:
    """SGLang asks ``nvidia-smi`` for each GPU's memory in MiB."""
    path = os.path.join(scratch, "nvidia-smi")
    lines = "\n".join([str(int(gpu["gib"] * 1024))] * gpu["count"])
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n")
    os.chmod(path, 0o755)
    os.environ["PATH"] = scratch + os.pathsep + os.environ.get("PATH", "")
