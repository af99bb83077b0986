"""`mtpdoctor probe` as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent
MODEL = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 256,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024, "torch_dtype": "bfloat16",
    "max_position_embeddings": 4096, "intermediate_size": 512,
}  # fmt: skip
SAVED = {
    "schema": 1, "platform": "cuda", "driver": "580.159.04", "cuda_driver": "13.0", "ram_gib": 1007.5, "shm_gib": 64.0,
    "gpus": [{"index": 0, "name": "NVIDIA H200", "sm": 90, "memory_gib": 140.4, "free_gib": 139.8, "processes": []}],
}  # fmt: skip


def doctor(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mtpdoctor", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8", **env},
        timeout=120,
        cwd=ROOT,
    )


def test_this_machine_as_a_page() -> None:
    done = doctor("probe", "--timeout", "30")
    assert done.stderr == "" and done.returncode in (0, 1)
    for heading in ("GPUs", "Memory", "System", "Python", "Disk space", "TCP ports in use"):
        assert f"\n{heading} ─" in done.stdout
    assert max(len(row) for row in done.stdout.splitlines()) <= 80


def test_this_machine_as_a_document_that_is_shown_elsewhere(tmp_path: Path) -> None:
    done = doctor("probe", "--json", "--timeout", "30", HF_TOKEN="hf_abcdefghijklmnop1234")
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((ROOT / "mtpdoctor/report/probe.schema.json").read_text()))
    assert "hf_abcdefghijklmnop1234" not in done.stdout and document["env"]["HF_TOKEN"] == "<hidden>"
    assert document["model"] is None
    path = tmp_path / "host.json"
    path.write_text(done.stdout)
    again = doctor("probe", "--json", "--host", str(path))
    assert again.returncode == done.returncode
    assert json.loads(again.stdout) == document
    checked = doctor(
        "check", "--host", str(path), "--sglang", "0.5.13.post1", "--json", "--", "--model-path", "/models/x"
    )
    assert json.loads(checked.stdout)["schema"] == 1, checked.stderr


def test_a_saved_host(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(SAVED))
    done = doctor("probe", "--host", str(path))
    assert done.returncode == 0, done.stderr
    assert "1 × NVIDIA H200 (SM90)" in done.stdout and "139.8 of 140.4 GiB free" in done.stdout


def test_the_model_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    done = doctor("probe", "--model", str(tmp_path), "--timeout", "30")
    assert "Qwen3ForCausalLM" in done.stdout
    document = json.loads(doctor("probe", "--json", "--model", str(tmp_path), "--timeout", "30").stdout)
    assert document["model"]["architecture"] == "Qwen3ForCausalLM"
    assert "model" in {d["purpose"] for d in document["disks"]}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "/nothing/host.json"), "cannot be read"),
        (("--python", "/nothing/python"), "--python: there is no /nothing/python"),
        (("--model", "/nothing/model"), "/nothing/model"),
        (("--sglang", "new"), "no release number"),
        (("--timeout", "0"), "--timeout must be"),
        (("--timeout", "nan"), "--timeout must be"),
        (("--host", "x.json", "--python", "python"), "exclude each other"),
    ],
)
def test_bad_usage_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    done = doctor("probe", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_a_terminal_without_block_characters() -> None:
    done = doctor("probe", "--timeout", "30", PYTHONIOENCODING="ascii")
    assert done.stdout.isascii() and "GPUs -----" in done.stdout
