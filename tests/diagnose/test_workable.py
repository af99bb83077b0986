"""What cannot work on the GPU or with the model that a log names is not offered; what a word denies is no evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.generate import listed_choices
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.condition_source import parse_condition
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.match import denied
from mtpdoctor.log.reading import read_logs
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import ReleaseRange
from mtpdoctor.sglang.flags import flag_table

START = (
    "$ python3 -m sglang.launch_server --model-path {model} --attention-backend trtllm_mha\nsglang: 0.5.18\n"
)
REFUSED = "ValueError: TRTLLM MHA backend for prefill is only supported on Blackwell GPUs (SM100). Please use a different prefill backend.\n"


def said(tmp_path: Path, text: str) -> Report:
    log = tmp_path / "launch.log"
    log.write_text(text, encoding="utf-8")
    knowledge = load_knowledge()
    return diagnose(read_logs([str(log)], knowledge.literals), knowledge)


def set_values(report: Report) -> set[str]:
    return {e.value or "" for d in report.diagnoses for f in d.fixes for e in f.edits if e.op.value == "set"}


@pytest.mark.parametrize(
    ("line", "sm"),
    [
        ("Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.", 121),
        ("GPU 0: NVIDIA H20 (UUID: GPU-1)", 90),
        ("| 0  NVIDIA GeForce RTX 4090        Off |", 89),
        ("| 0  NVIDIA RTX PRO 6000 Blackwell Workstation Edition |", 120),
        ("nvcc -gencode=arch=compute_120a,code=sm_120a -c a.cu", 120),
        ("ptxas --gpu-name=sm_121a a.ptx", 121),
    ],
)
def test_the_gpu_is_read_off_the_log(tmp_path: Path, line: str, sm: int) -> None:
    report = said(tmp_path, START.format(model="M") + line + "\n" + REFUSED)
    assert report.facts is not None and report.facts["host.gpu.sm"] == sm
    assert report.facts.get("host.platform", "cuda") == "cuda"
    assert ("fa3" in set_values(report)) == (sm == 90)


@pytest.mark.parametrize(
    ("line", "platform"),
    [
        ("RuntimeError: hipErrorNoBinaryForGpu at /opt/rocm/lib", "rocm"),
        ("RuntimeError: g++ -I/opt/rocm/include --offload-arch=gfx1036 warp.cpp failed", "rocm"),
        ("RuntimeError: nvcc -I/opt/rocm/include --offload-arch=gfx1036 warp.cu failed", None),
    ],
)
def test_a_toolkit_that_lies_about_is_no_platform(tmp_path: Path, line: str, platform: str | None) -> None:
    """A compiler finds another make's folder and integrated GPU, whatever the server runs on."""
    report = said(
        tmp_path,
        START.format(model="M") + "Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/warp.py", line 7, in go\n    build()\n' + line + "\n",
    )
    assert report.facts is not None and report.facts.get("host.platform") in (platform, platform or "cuda")


@pytest.mark.parametrize(
    "line",
    [
        "FP8 needs compute capability 8.9",
        "nvcc -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_120,code=sm_120",
    ],
)
def test_what_is_asked_or_built_for_is_no_gpu(tmp_path: Path, line: str) -> None:
    report = said(tmp_path, START.format(model="M") + line + "\n" + REFUSED)
    assert report.facts is not None and "host.gpu.sm" not in report.facts


def test_a_sparse_model_gets_no_dense_backend(tmp_path: Path) -> None:
    assert "triton" in set_values(said(tmp_path, START.format(model="M") + REFUSED))
    assert "triton" not in set_values(
        said(tmp_path, START.format(model="deepseek-ai/DeepSeek-V3.2") + REFUSED)
    )


def test_the_table_holds_together() -> None:
    """Every row: known options, a condition that can be read, a range of releases, values that some release has."""
    table = json.loads((releases_folder() / "backends.json").read_text(encoding="utf-8"))
    for row in table["rows"]:
        parse_condition(row["cannot"])
        ReleaseRange.parse(row.get("releases", "*"))
        assert row["why"]
        fields = row.get("fields", table["options"][row["of"]])
        assert set(fields) <= set(table["options"][row["of"]])
        assert any(flag_table(None).by_dest(field) is not None for field in fields)


@pytest.mark.parametrize(
    "text",
    [
        '"OOMKilled": false,',
        "OOMKilled=0",
        'x "OOMKilled":null',
        "oom: not OOMKilled",
        '{\\"OOMKilled\\":false}',
        "OOMKilled: no",
    ],
)
def test_a_word_that_is_denied(text: str) -> None:
    start = text.index("OOMKilled")
    assert denied(text, start, start + len("OOMKilled"))


@pytest.mark.parametrize(
    "text", ['"OOMKilled": true', "Reason: OOMKilled", "OOMKilled", "OOMKilled (exit 137)"]
)
def test_a_word_that_is_not_denied(text: str) -> None:
    start = text.index("OOMKilled")
    assert not denied(text, start, start + len("OOMKilled"))


@pytest.mark.parametrize(
    "text",
    [
        "(choose from 'a', 'b-2')",
        "(choose from a, b-2)",
        '(choose from "a", "b-2")',
        "invalid choice: 'x' (choose from 'a', 'b-2')",
    ],
)
def test_the_parsers_own_list(text: str) -> None:
    assert listed_choices(text) == ("a", "b-2")


def test_the_log_lists_the_choices_that_count(tmp_path: Path) -> None:
    error = "launch_server.py: error: argument --tool-call-parser: invalid choice: '{}' (choose from 'qwen25', 'llama3', 'pythonic')\n"
    command = "$ python3 -m sglang.launch_server --model-path M --tool-call-parser {}\n"
    assert set_values(said(tmp_path, command.format("llama4") + error.format("llama4"))) == {"pythonic"}
    assert set_values(said(tmp_path, command.format("glm99") + error.format("glm99"))) == set()


def test_a_guess_does_not_overwrite_what_was_typed(tmp_path: Path) -> None:
    text = (
        "$ python3 -m sglang.launch_server --model-path M --model-pth x --port 30000\nsglang: 0.5.18\n"
        "launch_server.py: error: unrecognized arguments: --model-pth x\n"
    )
    assert set_values(said(tmp_path, text)) == set()
    alone = text.replace("--model-path M ", "")
    assert set_values(said(tmp_path, alone)) == {"x"}


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("--mamba-radix-cache-strategy extra_buffer", "--mamba-scheduler-strategy extra_buffer"),
        ("--reasoning_parser qwen3", "--reasoning-parser qwen3"),
    ],
)
def test_a_refused_name_is_not_in_force(tmp_path: Path, typed: str, written: str) -> None:
    """What was asked for under a name that this release refuses is asked for again under the right one."""
    text = (
        f"$ python3 -m sglang.launch_server --model-path M {typed} --port 30000\nsglang: 0.5.13.post1\n"
        f"launch_server.py: error: unrecognized arguments: {typed}\n"
    )
    fix = said(tmp_path, text).diagnoses[0].fixes[0]
    assert fix.command is not None and written in fix.command


@pytest.mark.parametrize(
    ("model", "offered"),
    [
        ("openai/gpt-oss-120b", False),
        ("/models/gpt-oss-20b", False),
        ("google/gemma-4-31B-it", False),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", False),
        ("Qwen/Qwen3-32B", True),
    ],
)
def test_the_public_name_of_a_model_tells_what_its_class_cannot(
    tmp_path: Path, model: str, offered: bool
) -> None:
    report = said(
        tmp_path,
        f"$ python3 -m sglang.launch_server --model-path {model} --attention-backend fa4 --kv-cache-dtype fp8_e4m3\nsglang: 0.5.18\n"
        "AssertionError: FP8 is only supported on SM100 (compute capability 10.x) for FA4 CuTe.\n",
    )
    assert (
        "flashinfer" in set_values(report)
    ) == offered  # no attention sinks there; not among those that SGLang takes for the model
    assert "triton" in set_values(report)
