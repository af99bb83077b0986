"""Failures raised in packages, plugins and forks of others, which no rule knows."""

from __future__ import annotations

from typing import Any

import dying
import pytest
from dying import LOADING, SITE

from mtpdoctor.log.installed import build_in
from mtpdoctor.log.package_lines import PackageLines


def first(error: str, frames: tuple[str, ...], *, before: str = "", **more: Any) -> dict[str, Any]:
    """The first diagnosis, as ``dying.first`` gives it; ``before``: a line above the loading of the weights."""
    return dying.first(error, frames, before=(before, LOADING) if before else (), **more)


def commands(found: dict[str, Any]) -> str:
    return "\n".join(run for fix in found["fixes"] for run in fix["run"])


def edits(fix: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(e["op"], e["name"], e["value"]) for e in fix["edits"]]


OWN = "/x/sglang/srt/managers/warp.py:step"


@pytest.mark.parametrize(
    ("before", "path"),
    [
        (
            "Successfully installed sglang-kt-0.6.1",
            "/venv/lib/python3.11/site-packages/sglang/srt/warp.py:go",
        ),
        ("sglang==0.5.13.post1+acme3", "/venv/lib/python3.11/site-packages/sglang/srt/warp.py:go"),
        ("", "/home/u/ktransformers-sglang/python/sglang/srt/warp.py:go"),
        ("", "/opt/sglang-miles/python/sglang/srt/warp.py:go"),
    ],
)
def test_sglang_is_never_installed_over_a_fork(before: str, path: str) -> None:
    found = first("KeyError: 'warp'", (path,), before=before)
    assert found["fixes"]
    assert not any(fix["title"].startswith("Upgrade SGLang") for fix in found["fixes"])
    assert "pip install --upgrade sglang\n" not in commands(found) + "\n"
    assert "lmsysorg/sglang" not in commands(found)
    assert any("over it" in fix["title"] for fix in found["fixes"])


@pytest.mark.parametrize(
    "path",
    [
        "/sgl-workspace/sglang/python/sglang/srt/warp.py:go",
        "/usr/lib/python3/dist-packages/sglang/srt/warp.py:go",
        "/home/u/sglang-0.5.13/python/sglang/srt/warp.py:go",
        "/home/u/sglang-env/lib/python3.11/site-packages/sglang/srt/warp.py:go",
        "/home/u/llm/sglang-qwen35-nvfp4/sglang/python/sglang/srt/warp.py:go",
        "/data/qwen3-sglang/lib/python3.12/site-packages/sglang/srt/warp.py:go",
    ],
)
def test_sglangs_own_trees_are_no_forks(path: str) -> None:
    found = first("KeyError: 'warp'", (path,))
    assert any("Upgrade SGLang" in fix["title"] for fix in found["fixes"])


def test_the_pin_is_the_first_fix_where_pip_said_that_another_version_is_installed() -> None:
    found = first(
        "TypeError: warp cannot be a field",
        ("/x/sglang/srt/configs/warp.py:<module>", f"{SITE}/transformers/warp.py:__init_subclass__"),
        release="0.5.9",
        before="sglang 0.5.9 requires transformers==4.57.1, but you have transformers 5.3.0 which is incompatible.",
    )
    assert "transformers==4.57.1" in found["fixes"][0]["run"][0]
    assert "5.3.0" in found["fixes"][0]["title"]


def test_an_operator_of_a_plugin_goes_on_its_blacklist() -> None:
    found = first(
        "RuntimeError: warp is late",
        (OWN, f"{SITE}/flag_gems/ops/warp_sum.py:warp_sum", f"{SITE}/flag_gems/utils/shapes.py:warp"),
    )
    assert edits(found["fixes"][0]) == [("env", "SGLANG_FL_FLAGOS_BLACKLIST", "warp_sum")]


def test_a_package_can_be_gone_round_by_the_option_that_uses_it() -> None:
    found = first(
        "RuntimeError: warp is late", (OWN, f"{SITE}/lmcache/warp.py:warp"), more="--enable-lmcache"
    )
    assert ("remove", "--enable-lmcache", None) in edits(found["fixes"][0])
    without = first("RuntimeError: warp is late", (OWN, f"{SITE}/lmcache/warp.py:warp"))
    assert ("remove", "--enable-lmcache", None) not in [e for fix in without["fixes"] for e in edits(fix)]


def test_flashinfer_is_uninstalled_where_the_gpus_are_amds() -> None:
    found = first(
        "RuntimeError: warp is late",
        (OWN, f"{SITE}/flashinfer/warp.py:warp"),
        before="[aiter] import [module_warp] under /w/aiter/jit/module_warp.so",
    )
    assert "pip uninstall -y flashinfer-python" in found["fixes"][0]["run"][0]


def test_nvidias_packages_and_tools_are_not_offered_on_amd() -> None:
    found = first(
        "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        ("/x/sglang/srt/distributed/device_communicators/pynccl_wrapper.py:NCCL_CHECK",),
        before="n:1:1 [0] NCCL INFO RCCL version 2.27.7 HIP version : 7.2 ROCm version : 7.2",
    )
    assert "nvidia-smi" not in commands(found)
    assert ("env", "NCCL_DEBUG", "INFO") not in [e for fix in found["fixes"] for e in edits(fix)]


@pytest.mark.parametrize(
    "error",
    [
        "NotImplementedError: envs.SGLANG_WARP_KIND.get()=''",
        "RuntimeError: Environment variable SGLANG_WARP_KIND is not set",
    ],
)
def test_an_empty_variable_that_the_message_names_is_the_first_fix(error: str) -> None:
    found = first(error, (OWN,))
    assert "SGLANG_WARP_KIND" in found["fixes"][0]["title"]
    assert any("export SGLANG_WARP_KIND=" in run for run in found["fixes"][0]["run"])


def test_what_lies_far_up_the_stack_is_no_reason_for_advice() -> None:
    far = ("/x/sglang/srt/managers/mm_utils.py:general_mm_embed_routine",)
    deep = tuple(f"/x/sglang/srt/models/warp{i}.py:forward" for i in range(6))
    found = first("AssertionError: warp is not there", far + deep)
    assert not any("picture" in fix["title"] or "vision" in fix["title"] for fix in found["fixes"])
    near = first("AssertionError: warp is not there", far)
    assert any("vision" in fix["title"] for fix in near["fixes"])


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Successfully installed torch-2.9.1 sgl_kernel-0.3.21", {"torch": "2.9.1", "sgl-kernel": "0.3.21"}),
        (" + torch==2.11.0+cu128", {"torch": "2.11.0+cu128"}),
        (
            "acme 1.0 requires torch<2.9, but you have torch 2.9.1+cu130 which is incompatible.",
            {"torch": "2.9.1+cu130"},
        ),
        ("Successfully installed nothing", {}),
    ],
)
def test_installed_versions_are_read_off_pips_lines(line: str, shown: dict[str, str]) -> None:
    said = {name: value for name, value, _ in PackageLines().feed(line) if name.startswith("host.package.")}
    assert said == {f"host.package.{name}": version for name, version in shown.items()}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("sglang==0.5.9+cu130", None),
        ("sglang 0.5.9+g1a2b3c4d", None),
        ("sglang==0.5.9+acme", "sglang 0.5.9+acme"),
        ("Collecting sglang-kt", "sglang-kt"),
        ("the weights are in /m/sglang", None),
    ],
)
def test_a_build_of_somebody_else_is_known_by_its_name(line: str, name: str | None) -> None:
    assert build_in(line) == name


@pytest.mark.parametrize(
    ("package", "before", "gone"),
    [("deep_ep", "npu", False), ("flashinfer", "npu", True)],
)
def test_a_package_of_another_make_is_taken_out_but_not_one_of_the_same_name(
    package: str, before: str, gone: bool
) -> None:
    """Ascend's kernel package brings a deep_ep of its own."""
    frames = {"npu": "/x/sglang/srt/hardware_backend/npu/warp.py:go"}
    found = first("RuntimeError: warp is late", (frames[before], f"{SITE}/{package}/warp.py:warp"))
    assert ("pip uninstall" in commands(found)) == gone


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.5.3.post1", "SGL_ENABLE_JIT_DEEPGEMM"),  # the new name is declared there, and nothing reads it
        ("0.5.3.post2", "SGLANG_ENABLE_JIT_DEEPGEMM"),
    ],
)
def test_deepgemm_is_switched_off_by_the_name_that_the_release_reads(release: str, name: str) -> None:
    frames = (OWN, f"{SITE}/deep_gemm/__init__.py:fp8_gemm_nt")
    found = [e for fix in first("ValueError: warp", frames, release=release)["fixes"] for e in edits(fix)]
    assert {e for e in found if "DEEPGEMM" in e[1]} == {("env", name, "0")}


@pytest.mark.parametrize(("release", "helps"), [("0.5.9", False), ("0.5.20", False), ("0.5.22", True)])
def test_a_deepgemm_that_cannot_be_imported_is_not_mended_by_a_choice_of_backend(
    release: str, helps: bool
) -> None:
    frames = (
        f"{SITE}/sglang/srt/layers/deep_gemm_wrapper/configurer.py:_compute_enable_deep_gemm",
        f"{SITE}/deep_gemm/__init__.py:<module>",
    )
    found = [e for fix in first("ValueError: warp", frames, release=release)["fixes"] for e in edits(fix)]
    assert found == ([("env", "SGLANG_ENABLE_JIT_DEEPGEMM", "0")] if helps else [])


@pytest.mark.parametrize(
    ("release", "tag"),
    [("0.4.7.post1", "v0.4.7.post1-cu124"), ("0.5.2", "v0.5.2-cu126"), ("0.5.3", "v0.5.3")],
)
def test_image_tags_of_old_releases_name_their_cuda(release: str, tag: str) -> None:
    found = first("OSError: CUDA_HOME environment variable is not set.", (OWN,), release=release)
    assert f"docker pull lmsysorg/sglang:{tag}" in commands(found).split("\n")
