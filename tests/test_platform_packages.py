"""Fixes that fit the make of GPU, and options that were given in two parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.cli.main import main


def fixes(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    log = tmp_path / "server.log"
    log.write_text(text, encoding="utf-8")
    main(["diagnose", str(log), "--json"])
    return list(json.loads(capsys.readouterr().out)["diagnoses"][0]["fixes"])


def all_commands(offered: list[dict[str, Any]]) -> str:
    return "\n".join(line for fix in offered for line in fix["run"])


def test_address_and_port_given_apart_become_one_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "--num-nodes 2 --master-addr 10.0.0.1 --master-port 20000"
    first = fixes(
        f"$ docker run lmsysorg/sglang:v0.5.12 python3 -m sglang.launch_server --model-path /m --tp 2 {command}\n"
        f"launch_server.py: error: unrecognized arguments: {command}\n",
        tmp_path,
        capsys,
    )[0]
    assert "--dist-init-addr 10.0.0.1:20000" in first["command"]
    assert "--nnodes 2" in first["command"]
    assert ":5000" not in first["command"]


def test_no_cuda_wheel_or_image_for_an_amd_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offered = fixes(
        "$ docker run lmsysorg/sglang:v0.5.18-rocm720-mi30x python3 -m sglang.launch_server --model-path /m\n"
        "Traceback (most recent call last):\n"
        '  File "/sgl-workspace/aiter/aiter/ops/attention.py", line 21, in <module>\n'
        "    from aiter.ops.triton.x import y\n"
        '  File "/opt/venv/lib/python3.10/site-packages/triton/runtime/jit.py", line 28, in <module>\n'
        "    raise RuntimeError(\n"
        "RuntimeError: aiter gluon kernels require triton>=3.6.0, found 3.4.0\n",
        tmp_path,
        capsys,
    )
    commands = all_commands(offered)
    assert "torch==" not in commands
    assert "docker pull lmsysorg/sglang:v0.5.18\n" not in commands + "\n"
    assert "newer ROCm image" in offered[0]["title"] and "torch must stay the ROCm build" in offered[0]["why"]


def test_an_upgrade_on_amd_gpus_is_the_image_of_that_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "$ docker run lmsysorg/sglang:v0.5.16-rocm720-mi35x python3 -m sglang.launch_server --model-path /m --tp 8"
        " --disaggregation-mode decode --disaggregation-decode-enable-radix-cache --speculative-algorithm EAGLE\n"
        "ValueError: --disaggregation-decode-enable-radix-cache is incompatible with speculative decoding\n",
        tmp_path,
        capsys,
    )
    upgrade = next(fix for fix in offered if fix["title"].startswith("Upgrade SGLang to 0.5.23"))
    assert upgrade["run"] == [
        "docker pull lmsysorg/sglang:v0.5.23-rocm720-mi35x   # MI300 and MI325: v0.5.23-rocm720-mi30x"
    ]


def test_what_a_release_pins_is_asked_of_it_where_the_log_names_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "AttributeError: module 'sgl_kernel' has no attribute 'awq_dequantize'\n", tmp_path, capsys
    )
    install = next(line for line in offered[0]["run"] if line.startswith("pip install"))
    assert "PINNED" not in install
    assert "m.requires('sglang')" in install and "sgl-kernel|sglang-kernel" in install


def test_a_library_of_cuda_12_that_is_meant_is_not_renamed_for_a_torch_of_cuda_13(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "torch                     2.11.0+cu130\n"
        "ImportError: /v/lib/python3.12/site-packages/mooncake/engine.so: /usr/local/cuda/lib64/libcudart.so.12: "
        "version `libcudart.so.12' not found (required by /v/lib/python3.12/site-packages/mooncake/engine.so)\n",
        tmp_path,
        capsys,
    )
    commands = all_commands(offered)
    assert "pip install nvidia-cuda-runtime-cu12" in commands


def test_what_is_uninstalled_before_keeps_its_bare_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "$ docker run lmsysorg/sglang:v0.5.16 python3 -m sglang.launch_server --model-path /m\n"
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 10, in step\n'
        "    resolve_num_tokens_per_req(x=1)\n"
        "TypeError: resolve_num_tokens_per_req() got an unexpected keyword argument 'x'\n",
        tmp_path,
        capsys,
    )
    commands = all_commands(offered)
    assert "pip uninstall -y sglang && pip install --no-cache-dir sglang==0.5.16" in commands


def test_a_development_state_has_no_rocm_image_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "$ docker run rocm/sgl-dev:v0.5.9-rocm700-mi30x-20260101 python3 -m sglang.launch_server --model-path /m\n"
        "sglang==0.5.9.dev123\nModuleNotFoundError: No module named 'sgl_kernel'\n",
        tmp_path,
        capsys,
    )
    commands = [line for fix in offered for line in fix["run"] if "rocm7" in line]
    assert commands and not any("dev123" in line for line in commands)
    assert not any(line.endswith("lmsysorg/sglang:v0.5.9") for line in all_commands(offered).splitlines())


@pytest.mark.parametrize(("gpu", "image"), [("MI300X", True), ("MI210", False)])
def test_an_image_for_other_amd_gpus_is_no_answer(
    gpu: str, image: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        f"AMD Instinct {gpu}\n"
        "$ python3 -m sglang.launch_server --model-path /m --tp 8"
        " --disaggregation-mode decode --disaggregation-decode-enable-radix-cache --speculative-algorithm EAGLE\n"
        "[2026-05-05 10:00:00] sglang==0.5.16\n"
        "ValueError: --disaggregation-decode-enable-radix-cache is incompatible with speculative decoding\n",
        tmp_path,
        capsys,
    )
    assert ("-rocm720-mi3" in all_commands(offered)) is image
    assert "pip install sglang" not in all_commands(offered)
    upgrade = next(fix for fix in offered if fix["title"].startswith("Upgrade SGLang"))
    assert any("AMDGPU_TARGET" in note for note in upgrade["notes"]) is not image


def test_examples_of_amd_targets_in_a_message_make_no_amd_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        "$ python3 -m sglang.launch_server --model-path /m\n"
        "RuntimeError: Could not detect ROCm GPU architecture automatically. Please set TVM_FFI_ROCM_ARCH_LIST"
        " environment variable (e.g. 'gfx90a gfx942').\n",
        tmp_path,
        capsys,
    )
    assert offered[0]["edits"] == [{"op": "env", "name": "TVM_FFI_GPU_BACKEND", "value": "cuda"}]


def test_of_two_names_of_a_variable_the_one_that_is_set_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = fixes(
        'env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: "expandable_segments:True"}]\n'
        "args: python3 -m sglang.launch_server --model-path /m --tp 8\n"
        "RuntimeError: Runtime check failed at custom_all_reduce.cuh:37: CUDA error: invalid argument\n",
        tmp_path,
        capsys,
    )
    assert [edit["name"] for edit in offered[0]["edits"]] == ["PYTORCH_CUDA_ALLOC_CONF"]
    assert offered[1]["edits"][0]["name"] == "--disable-custom-all-reduce"
