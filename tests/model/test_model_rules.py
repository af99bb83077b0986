"""What the files of a model's folder tell is foreseen by ``check``, before anything is launched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_folders import CONFIG, write_model

from mtpdoctor.cli.main import main

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARDS = {ONE: {"model.embed_tokens.weight": ("BF16", 100)}, TWO: {"lm_head.weight": ("BF16", 100)}}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n"


def rules(
    capsys: pytest.CaptureFixture[str], folder: Path, *flags: str, release: str = "0.5.18"
) -> dict[str, Any]:
    command = ["python", "-m", "sglang.launch_server", "--model-path", str(folder), *flags]
    main(["check", "--json", "--sglang", release, "--gpu", "1xsm90@80", "--", *command])
    document = json.loads(capsys.readouterr().out)
    return {p["rule"]: p["severity"] for p in document["problems"] if p["rule"].startswith("MTP115")}


def damaged(folder: Path, how: str) -> None:
    if how == "missing":
        (folder / TWO).unlink()
    elif how == "pointer":
        (folder / TWO).write_text(POINTER)
    elif how == "cut":
        data = (folder / TWO).read_bytes()
        (folder / TWO).write_bytes(data[:-1])
    else:
        (folder / TWO).write_bytes(b"")


@pytest.mark.parametrize(
    ("how", "release", "found"),
    [
        ("missing", "0.5.18", {"MTP1150": "fatal"}),
        ("missing", "0.5.13.post1", {"MTP1151": "degrades"}),
        ("pointer", "0.5.13.post1", {"MTP1152": "fatal"}),
        ("cut", "0.5.18", {"MTP1153": "fatal"}),
        ("empty", "0.5.18", {"MTP1153": "fatal"}),
    ],
)
def test_damaged_weight_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, release: str, found: dict[str, str]
) -> None:
    write_model(tmp_path, SHARDS)
    assert rules(capsys, tmp_path, release=release) == {}
    damaged(tmp_path, how)
    assert rules(capsys, tmp_path, release=release) == found
    assert rules(capsys, tmp_path, "--load-format", "dummy", release=release) == {}


def test_a_folder_without_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert rules(capsys, tmp_path) == {}  # a config alone says nothing about weights
    (tmp_path / "tokenizer.json").write_text("{}")
    assert rules(capsys, tmp_path) == {"MTP1155": "fatal"}
    assert rules(capsys, tmp_path, "--load-format", "dummy") == {}


def test_dropped_mtp_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path, SHARDS, CONFIG | {"num_nextn_predict_layers": 1})
    assert rules(capsys, tmp_path) == {}
    assert rules(capsys, tmp_path, "--speculative-algorithm", "NEXTN") == {"MTP1154": "degrades"}
    draft = ("--speculative-algorithm", "EAGLE", "--speculative-draft-model-path", "acme/draft")
    assert rules(capsys, tmp_path, *draft) == {}
