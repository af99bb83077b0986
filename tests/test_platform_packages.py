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
    commands = "\n".join(line for fix in offered for line in fix["run"])
    assert "torch==" not in commands
    assert "docker pull lmsysorg/sglang:v0.5.18\n" not in commands + "\n"
    assert "newer ROCm image" in offered[0]["title"] and "torch must stay the ROCm build" in offered[0]["why"]
