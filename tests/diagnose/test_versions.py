"""Package versions in logs: blamed where they explain the failure, in exact commands, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from dying import SITE, first

from mtpdoctor.log.package_lines import PackageLines

OWN = "/x/sglang/srt/managers/warp.py:step"
KERNEL = f"{SITE}/sgl_kernel/__init__.py:<module>"
SYMBOL = f"ImportError: {SITE}/sgl_kernel/sm90/common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa"
INDUCTOR = f"{SITE}/torch/_inductor/runtime/triton_heuristics.py:make_launcher"
HOOK = "torch._inductor.exc.InductorError: AttributeError: type object 'CompiledKernel' has no attribute 'launch_enter_hook'"


def commands(found: dict[str, Any], which: int = 0) -> str:
    return "\n".join(found["fixes"][which]["run"])


@pytest.mark.parametrize(
    ("before", "error", "frames", "release", "run"),
    [
        (  # what pip said of the two packages between which it fails goes before a rule that knows nothing of versions
            (
                'torch 2.7.1 requires triton==3.3.1; platform_system == "Linux", but you have triton 3.4.0 which is incompatible.',
                "Successfully installed triton-3.4.0",
            ),
            HOOK,
            (OWN, INDUCTOR),
            "0.4.9",
            "pip install triton==3.3.1",
        ),
        (("torch   2.9.1   pypi_0  pypi", "triton  3.6.0   pypi_0  pypi"), HOOK, (OWN, INDUCTOR), None, "triton==3.5.1"),
        (  # torch was moved, and Triton with it or not: torch brings its own
            ("torch==2.10.0", "triton==3.5.1"),
            HOOK,
            (OWN, INDUCTOR),
            "0.5.9",
            "pip install torch==2.9.1 torchvision==0.24.1",
        ),
        (("torch   2.10.0+cu128", "sgl-kernel  0.3.21"), SYMBOL, (KERNEL,), None, "torch==2.9.1"),
        (("torch==2.10.0+cu130",), SYMBOL, (KERNEL,), "0.5.9", "--index-url https://download.pytorch.org/whl/cu130"),
        (
            ("apache-tvm-ffi            0.1.5",),
            f"OSError: {SITE}/tilelang/lib/libtvm.so: undefined symbol: TVMFFIErrorSetRaisedFromCStrParts",
            (f"{SITE}/tilelang/__init__.py:<module>",),
            "0.5.16",
            "pip install apache-tvm-ffi==0.1.11",
        ),
        (
            ("Name: xgrammar", "Version: 0.2.1"),
            "TypeError: TokenizerInfo.from_huggingface() got an unexpected keyword argument 'warp'",
            (OWN,),
            "0.5.9",
            "pip install xgrammar==0.1.27",
        ),
        (
            ("flashinfer_python: 0.6.4", "flashinfer_cubin: 0.6.4"),
            "ImportError: cannot import name 'warp' from 'flashinfer.decode'",
            (OWN,),
            "0.5.9",
            "pip install flashinfer-python==0.6.3 flashinfer-cubin==0.6.3",
        ),
        (  # from 0.6.14 on the part of ready-made kernels has an index of its own
            ("flashinfer-python         0.6.12", "flashinfer-cubin          0.6.12"),
            "ImportError: cannot import name 'warp' from 'flashinfer.decode'",
            (OWN,),
            "0.5.20",
            "flashinfer-cubin==0.6.18 --extra-index-url https://flashinfer.ai/whl",
        ),
        (
            ("flashinfer-jit-cache      0.6.14+cu130", "flashinfer-python         0.6.12"),
            "RuntimeError: flashinfer-jit-cache version (0.6.14+cu130) does not match flashinfer version (0.6.12). Please",
            (f"{SITE}/flashinfer/jit/env.py:_get_aot_dir",),
            "0.5.13",
            "flashinfer-jit-cache==0.6.12 --index-url https://flashinfer.ai/whl/cu130",
        ),
        (
            ("torch   2.9.1+cu128", "nvidia-nccl-cu12   2.21.5"),
            f"ImportError: {SITE}/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindowRegister",
            (f"{SITE}/torch/__init__.py:<module>",),
            "0.5.9",
            "pip install nvidia-nccl-cu12==2.27.5",
        ),
    ],
)  # fmt: skip
def test_a_version_that_explains_the_failure_is_the_first_fix(
    before: tuple[str, ...], error: str, frames: tuple[str, ...], release: str | None, run: str
) -> None:
    found = first(error, frames, release, before=before)
    assert run in commands(found)
    assert "The log shows" in found["cause"] and "(line " in found["cause"]


@pytest.mark.parametrize(
    ("before", "error", "frames"),
    [
        ("transformers  5.3.0", "AttributeError: 'NoneType' object has no attribute 'warp'", (OWN,)),
        ("torch==2.10.0", "AttributeError: 'Warp' object has no attribute 'x'", (f"{SITE}/torch/nn/modules/module.py:_call_impl", OWN)),
        ("transformers  5.3.0", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", (OWN,)),
        ("torch==2.9.1\ntriton==3.6.0", "torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfResources: out of resource: shared memory", (OWN, INDUCTOR)),
        ("transformers  4.57.6", "TypeError: warp cannot be a field", (OWN, f"{SITE}/transformers/warp.py:warp")),
        (
            "[aiter] import [module_warp] under /w/aiter/jit/module_warp.so\ntorch==2.8.0+rocm7.0",
            "TypeError: warp() takes 1 positional argument but 2 were given",
            (OWN, f"{SITE}/torch/_inductor/warp.py:warp"),
        ),
    ],
)  # fmt: skip
def test_a_version_that_does_not_explain_it_is_not_blamed(
    before: str, error: str, frames: tuple[str, ...]
) -> None:
    found = first(error, frames, "0.5.9", before=tuple(before.split("\n")))
    assert found["rule"] != "MTP1993"
    assert "The log shows" not in found["cause"]


def test_a_kernel_that_was_compiled_against_another_torch_is_compiled_again() -> None:
    before = (
        "#14 318.4 Installing build dependencies: started",
        "#14 361.9  + torch==2.10.0",
        "#14 902.7 Successfully built sgl-kernel-cpu",
        "#14 904.0 Successfully installed sgl-kernel-cpu-0.3.21",
        "torch                     2.9.0+cpu",
    )
    found = first(SYMBOL, (KERNEL,), "0.5.8", before=before, more="--device cpu")
    assert "--no-build-isolation" in commands(found)
    assert "2.9.0" in found["fixes"][0]["title"]


def test_commands_of_rules_get_the_versions_and_the_cuda_of_this_launch() -> None:
    found = first(
        "RuntimeError: CRITICAL WARNING: PyTorch 2.9.1 & CuDNN Compatibility Issue Detected",
        (OWN,),
        "0.5.9",
        before=("torch    2.9.1+cu130",),
    )
    assert commands(found) == "pip install nvidia-cudnn-cu13==9.16.0.29"
    without = first(SYMBOL, (KERNEL,), "0.5.9")
    assert "sgl-kernel==0.3.21" in commands(without) and "torch==2.9.1" in commands(without)


def test_what_the_shell_puts_into_a_command_gets_no_version() -> None:
    found = first(
        "flashinfer.jit.core.MissingJITCacheError: JIT compilation is disabled via FLASHINFER_DISABLE_JIT environment variable",
        (OWN, f"{SITE}/flashinfer/jit/core.py:build"),
        "0.5.16",
    )
    install = next(run for fix in found["fixes"] for run in fix["run"] if "pip install" in run)
    assert "==$(pip show flashinfer-python | sed " in install


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("#12 31.02 Successfully installed torch-2.10.0+cu128", {"host.package.torch": "2.10.0+cu128"}),
        ("[conda] torch     2.9.1    pypi_0    pypi", {"host.package.torch": "2.9.1"}),
        ("PyTorch version: 2.9.1+cu130", {"host.package.torch": "2.9.1+cu130"}),
        ("RUN pip install 'transformers==5.3.0' accelerate", {"host.package.transformers": "5.3.0"}),
        (
            "Requirement already satisfied: numpy in /v/lib/python3.12/site-packages (from torch) (2.4.1)",
            {"host.package.numpy": "2.4.1"},
        ),
        (
            "The package `torch` requires `triton==3.5.1 ; sys_platform == 'linux'`, but `3.6.0` is installed",
            {"log.ask.triton": "==3.5.1 by torch", "host.package.triton": "3.6.0"},
        ),
        (
            "sglang 0.5.9 has requirement transformers==4.57.1, but you have transformers 5.3.0.",
            {"log.ask.transformers": "==4.57.1 by sglang 0.5.9", "host.package.transformers": "5.3.0"},
        ),
        (
            "Skipping import of cpp extensions due to incompatible torch version 2.10.0+cu128 for torchao version 0.9.0   Please",
            {"host.package.torch": "2.10.0+cu128", "host.package.torchao": "0.9.0"},
        ),
        ("- PyTorch version (accelerator?): 2.9.1+cu128 (CUDA)", {"host.package.torch": "2.9.1+cu128"}),
        (
            'command: ["bash", "-c", "pip install -q \'torch==2.10.0\' x; sglang serve"]',
            {"host.package.torch": "2.10.0"},
        ),
        (
            '[{"name": "sglang", "version": "0.5.9"}, {"name": "torch", "version": "2.10.0"}]',
            {"host.package.torch": "2.10.0"},
        ),
        ("    Uninstalling triton-3.3.1:", {}),
        (" - torch==2.11.0", {}),
        ("torch 2.7.1 is what we use", {}),
        ("ERROR: No matching distribution found for sgl-kernel==0.3.21", {"host.package.sgl-kernel": None}),
    ],
)
def test_versions_are_read_in_every_form(text: str, shown: dict[str, str]) -> None:
    assert {name: value for name, value, _ in PackageLines().feed(text)} == shown


def test_a_newer_transformers_is_offered_where_this_sglang_has_the_models_class() -> None:
    error = "ValueError: The checkpoint you are trying to load has model type `glm_moe_dsa` but Transformers does not recognize this architecture."
    found = first(error, (OWN,), "0.5.9")
    assert "0.5.10" in found["fixes"][0]["title"] and "transformers==5.2.0" in commands(found, 1)
    older = first(error, (OWN,), "0.5.6")
    assert "0.5.10" in older["fixes"][0]["title"] and "transformers==5.2.0" not in commands(older)
    image = "docker run rocm/sgl-dev:v0.5.8.post1-rocm720-mi35x-20260219 bash serve.sh"
    assert "transformers==5.2.0" in commands(first(error, (OWN,), "0.5.8.post1", before=(image,)))
