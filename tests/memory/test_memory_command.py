"""``mtpdoctor memory``: its answers, exit codes and documents; what check and fix make of the sum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from memory_sums import DATA, H200

from mtpdoctor.cli.main import main

SCHEMA = json.loads(
    (DATA.parent.parent / "mtpdoctor" / "report" / "memory.schema.json").read_text(encoding="utf-8")
)


def models(name: str) -> str:
    return str(DATA / "models" / name)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["memory", *words])
    return code, capsys.readouterr().out


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out = run(capsys, "--json", *words)
    document: dict[str, Any] = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    return code, document


LLAMA = ("--sglang", "0.5.13.post1", "--model", models("Llama-3.1-8B"))
COMMAND = ("--", "--model-path", "M")


def test_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(capsys, "--gpu", "1xsm90@79.6", *LLAMA, *COMMAND)
    assert code == 0
    assert found["fits"] is True
    assert {t["name"] for t in found["terms"]} >= {"weights", "KV pool", "graph capture", "activations"}
    assert next(c["value"] for c in found["counts"] if c["name"] == "KV tokens") > 300_000


def test_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(
        capsys,
        "--gpu",
        "8xsm90@79.6",
        "--sglang",
        "0.5.20",
        "--model",
        models("Qwen3-Next-80B-A3B"),
        *COMMAND,
    )
    assert code == 1
    assert (found["fits"], found["trouble"]) == (False, "weights")
    assert found["left_gib"] < -60
    assert found["advice"][0] | {"why": "", "loses": ""} == {
        "option": "tp_size", "direction": "raise", "value": 4, "why": "", "loses": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "missing", "give"),
    [
        (("--gpu", "1xsm90", *LLAMA), "host.gpu.memory_gib", "--gpu"),
        (("--gpu", "1xsm90@79.6", "--sglang", "0.5.13"), "model.path", "--model DIR"),
    ],
)
def test_not_decided_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], missing: str, give: str
) -> None:
    code, found = answer(capsys, *words, *COMMAND)
    assert code == 3
    assert found["fits"] is None
    assert missing in found["missing"]
    assert give in run(capsys, *words, *COMMAND)[1]


def test_without_a_release(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtpdoctor.sglang.installed.installed_release", lambda *_: None)
    code, found = answer(capsys, "--gpu", "1xsm90@79.6", "--model", models("Llama-3.1-8B"), *COMMAND)
    assert (code, found["missing"]) == (3, ["release"])


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--gpu", "1xsm90@79.6"]) == 2
    assert "no launch command" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-Next-80B-A3B", "DeepSeek-V3", "gpt-oss-20b"])
@pytest.mark.parametrize("gpu", ["1xsm120@31.4", "8xsm90@139.8"])
def test_the_page_is_80_columns_wide_and_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, gpu: str
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    words = ("--gpu", gpu, "--sglang", "0.5.20", "--model", models(name), *COMMAND, "--tp", "1")
    _, page = run(capsys, *words)
    assert "\x1b" not in page
    assert all(len(row) <= 80 for row in page.splitlines())
    assert "Memory of each GPU" in page
    assert "W weights" in page


def test_colour_where_it_is_asked_for() -> None:
    from memory_page import some_sum

    from mtpdoctor.report.memory_text import render_memory

    assert "\x1b[" in render_memory(some_sum(), color=True)
    assert "\x1b" not in render_memory(some_sum())


def test_a_saved_host_with_a_full_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "host.json"
    gpu = {"index": 0, "name": "NVIDIA H200", "sm": 90, "memory_gib": 139.8, "free_gib": 9.8, "processes": []}
    saved.write_text(json.dumps({"schema": 1, "platform": "cuda", "gpus": [gpu]}))
    code, found = answer(capsys, "--host", str(saved), *LLAMA, *COMMAND)
    assert (code, found["trouble"]) == (1, "others")
    assert found["advice"] == []
    assert any("free the GPU" in note for note in found["notes"])


def test_a_secret_in_the_command_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = answer(capsys, "--gpu", "1xsm90@79.6", *LLAMA, *COMMAND, "--api-key", "sk-verysecret")
    assert "verysecret" not in json.dumps(found)


# -- check ---------------------------------------------------------------------------------------------


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["check", "--json", *words])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def rules(document: dict[str, Any]) -> set[str]:
    return {p["rule"] for p in document["problems"] if p["severity"] == "fatal" and p["certain"]}


MEMORY_RULES = {"MTP0711", "MTP0712", "MTP0713", "MTP0714", "MTP0717"}


@pytest.mark.parametrize(
    "path", sorted(p for p in H200.glob("*.json")), ids=lambda p: p.stem
)  # every launch on the real GPU
def test_check_refuses_what_failed_and_nothing_else(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    case = json.loads(path.read_text())
    tiny = H200 / "models" / f"{case['model']}.json"
    of = str(tiny) if tiny.is_file() else models(case["model"])
    gpu = f"{case['gpu'].partition('x')[0]}xsm90@{case['driver_total_mib'] / 1024:.2f}"
    document = checked(
        capsys, "--gpu", gpu, "--sglang", case["sglang_version"], "--model", of, "--", case["command"]
    )
    found = rules(document) & MEMORY_RULES
    assert bool(found) is (case["outcome"] == "failed")
    if found:
        assert document["fixed_command"] is not None
        assert "--mem-fraction-static" in document["fixed_command"]


def test_the_weights_that_do_not_fit_get_more_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--sglang", "0.5.20", "--model", models("Qwen3-Next-80B-A3B"), *COMMAND)
    document = checked(capsys, "--gpu", "8xsm90@79.6", *words)
    assert "MTP0711" in rules(document)
    fix = document["problems"][0]["fixes"][0]
    assert [(e["name"], e["value"]) for e in fix["edits"]] == [("--tp-size", "4")]
    assert (fix["safety"], fix["verified"]) == ("risky", "rules")


def test_nothing_is_foreseen_without_the_model_or_the_memory(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        (
            "--gpu",
            "1xsm90@10",
        ),
        ("--gpu", "1xsm90", "--model", models("DeepSeek-V3")),
    ):
        assert not rules(checked(capsys, *words, "--sglang", "0.5.20", *COMMAND)) & MEMORY_RULES


def test_what_the_sum_does_not_follow_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "1xsm90@79.6", "--sglang", "0.5.20", "--model", models("Qwen3-Next-80B-A3B"), *COMMAND)
    assert rules(checked(capsys, *words)) & MEMORY_RULES
    for more in (("--cpu-offload-gb", "100"), ("--device", "cpu")):
        assert not rules(checked(capsys, *words, *more)) & MEMORY_RULES
