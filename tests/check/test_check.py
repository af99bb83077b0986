"""``mtpdoctor check`` as people and programs use it: verdicts, problems, fixes, exit codes, JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import mtpdoctor
from mtpdoctor.cli.check import as_typed
from mtpdoctor.cli.main import main

from .double import make_environment

MODELS = Path(__file__).parent.parent / "data" / "models"
SCHEMA = json.loads((Path(mtpdoctor.__file__).parent / "report" / "check.schema.json").read_text())
HYBRID = f"--model-path {MODELS / 'Qwen3.5-27B'}"
DENSE = f"--model-path {MODELS / 'Llama-3.1-8B'}"
H100 = ("--gpu", "4xsm90@80")


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of ``check --json``; the document fits its schema and is all there is."""
    code = main(["check", "--json", *arguments])
    out = capsys.readouterr()
    document = json.loads(out.out)
    jsonschema.validate(document, SCHEMA)
    assert out.err == ""
    assert out.out.isascii()
    return code, document


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["check", *arguments])
    return code, capsys.readouterr().out


def words(command: str) -> list[str]:
    return ["--", *command.split()]


def test_a_command_that_starts(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = check(capsys, *H100, "--sglang", "0.5.16", *words(f"{DENSE} --tp 2"))
    assert (code, document["verdict"], document["argument_checks"]) == (0, "accept", "accept")
    assert document["source"] == "rules"
    assert document["sglang_version"] == "0.5.16"
    assert document["fixed_command"] is None
    assert not [p for p in document["problems"] if p["severity"] == "fatal"]
    assert document["resolved"]["tp_size"] in (2, "2")


def test_a_command_that_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"python3 -m sglang.launch_server {HYBRID} --tp 4 --speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer"
    options = (*H100, "--sglang", "0.5.13.post1")
    code, document = check(capsys, *options, *words(command))
    assert (code, document["verdict"], document["argument_checks"]) == (1, "reject", "reject")
    first = document["problems"][0]
    assert (first["severity"], first["stage"], first["certain"]) == ("fatal", "server_args", True)
    assert any(f["command"] and f["safety"] == "safe" for f in first["fixes"])
    fixed = document["fixed_command"]
    assert fixed is not None
    assert fixed.startswith(f"python3 -m sglang.launch_server {HYBRID} --tp 4")
    again, second = check(capsys, *options, "--command", fixed)
    assert (again, second["verdict"]) == (0, "accept")


@pytest.mark.parametrize(
    ("flags", "rule", "edit"),
    [
        ("--speculative-alogrithm NEXTN", "MTP0100", "--speculative-algorithm"),
        ("--attention-backend fa5", "MTP0101", None),
        ("--tp two", "MTP0103", None),
        ("--tp", "MTP0102", None),
        ("--speculative-num 3", "MTP0105", None),
        ("--mamba-radix-cache-strategy extra_buffer", "MTP0100", "--mamba-scheduler-strategy"),
        ("--max-model-len 8192", "MTP0100", "--context-length"),
    ],
)
def test_what_the_parser_would_refuse(
    capsys: pytest.CaptureFixture[str], flags: str, rule: str, edit: str | None
) -> None:
    code, document = check(capsys, *H100, "--sglang", "0.5.13.post1", *words(f"{DENSE} {flags}"))
    assert (code, document["argument_checks"]) == (1, "reject")
    first = document["problems"][0]
    assert (first["rule"], first["stage"]) == (rule, "argparse")
    if edit is not None:
        assert edit in [e["name"] for f in first["fixes"] for e in f["edits"]]
        assert edit in document["fixed_command"]


def test_several_problems_are_mended_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{HYBRID} --tp 4 --speculative-alogrithm NEXTN --max-model-len 8192 --mamba-radix-cache-strategy no_buffer"
    options = (*H100, "--sglang", "0.5.13.post1")
    code, document = check(capsys, *options, *words(command))
    assert code == 1
    assert document["fixed_command"] is not None
    assert check(capsys, *options, "--command", document["fixed_command"])[0] == 0


def test_no_model_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = check(capsys, *H100, "--sglang", "0.5.16", "--", "--tp", "2")
    assert code == 1
    assert [p["rule"] for p in document["problems"] if p["severity"] == "fatal"] == ["MTP0104"]


def test_a_fact_that_decides_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    command = words("--model-path some/model --tp 3 --speculative-algorithm NEXTN --port 61999")
    code, document = check(capsys, "--sglang", "0.5.16", *command)
    assert (code, document["verdict"]) == (3, "unknown")
    open_ = [p for p in document["problems"] if p["severity"] == "fatal"]
    assert open_
    assert not any(p["certain"] for p in open_)
    assert any(name.startswith("model.") for p in open_ for name in p["unknown"])
    code, shown = text(capsys, "--sglang", "0.5.16", *command)
    assert code == 3
    assert shown.startswith("NOT DECIDED")
    assert "--model DIR" in shown


def test_the_release_is_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = make_environment(tmp_path / "env", version=None).parent.parent
    monkeypatch.setenv("VIRTUAL_ENV", str(empty))
    code, document = check(capsys, *H100, *words(f"{DENSE} --tp 2"))
    assert (code, document["verdict"], document["sglang_version"]) == (3, "unknown", None)


def test_the_installed_release_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = make_environment(tmp_path / "env", version="0.5.16")
    monkeypatch.setenv("VIRTUAL_ENV", str(python.parent.parent))
    assert check(capsys, *H100, *words(f"{DENSE} --tp 2"))[1]["sglang_version"] == "0.5.16"
    named = check(capsys, *H100, "--sglang", "0.5.9", *words(f"{DENSE} --tp 2"))
    assert named[1]["sglang_version"] == "0.5.9"


def test_a_launch_file_is_checked_and_its_fix_is_a_diff(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(
        f"#!/bin/bash\n# keep this\nexec python3 -m sglang.launch_server \\\n  {HYBRID} \\\n  --tp 4 \\\n"
        "  --speculative-alogrithm NEXTN\n"
    )
    code, document = check(capsys, *H100, "--sglang", "0.5.9", "--command-file", str(script))
    assert code == 1
    diff = document["problems"][0]["fixes"][0]["diff"]
    assert "-  --speculative-alogrithm NEXTN" in diff
    assert "+  --speculative-algorithm NEXTN" in diff


def test_a_secret_is_masked_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    command = words(f"{DENSE} --tp two --api-key sk-verysecret-0815")
    for options in ((), ("-v",), ("--json",)):
        main(["check", *H100, "--sglang", "0.5.9", *options, *command])
        assert "verysecret" not in capsys.readouterr().out


def test_no_escape_sequence_of_a_command_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        [
            "check",
            *H100,
            "--sglang",
            "0.5.9",
            "--",
            "--model-path",
            "m\x1b[31m\x07",
            "--served-model-name",
            "\x1bc",
        ]
    )
    assert not set(capsys.readouterr().out) & {"\x1b", "\x07"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no launch command"),
        (["--command", "x", "--", "y"], "more than one"),
        (["--", "python", "train.py"], "no SGLang"),
        (["--gpu", "8xfast", "--", "--model-path", "m"], "--gpu"),
        (["--sglang", "newest", "--", "--model-path", "m"], "--sglang"),
        (["--model", "/nowhere/at/all", "--", "--model-path", "m"], "/nowhere/at/all"),
        (["--command-file", "/nowhere/at/all.sh"], "/nowhere/at/all.sh"),
        (["--ask-sglang", "/nowhere/python", "--", "--model-path", "m"], "/nowhere/python"),
    ],
)
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["check", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_words_become_the_text_that_was_typed() -> None:
    assert as_typed(["A=1 2", "python", "-m", "sglang.launch_server", "--x", "a b"]) == (
        "A='1 2' python -m sglang.launch_server --x 'a b'"
    )
    assert (
        as_typed(["python -m sglang.launch_server --x 'a b'"]) == "python -m sglang.launch_server --x 'a b'"
    )
    assert as_typed(["--model-path", "m"]) == "python -m sglang.launch_server --model-path m"


def test_silent_losses_are_named_with_what_restores_them(capsys: pytest.CaptureFixture[str]) -> None:
    options = (*H100, "--sglang", "0.5.9", *words(f"{DENSE} --tp 2 --speculative-algorithm EAGLE"))
    code, document = check(capsys, *options)
    lost = [p for p in document["problems"] if p["severity"] == "degrades"]
    assert code == 0
    assert "MTP0052" in [p["rule"] for p in lost]
    code, shown = text(capsys, *options)
    assert code == 0
    assert shown.startswith("WOULD START (SGLang 0.5.9)")
    assert "SGLANG_ENABLE_SPEC_V2" in shown


def test_the_text_says_verdict_cause_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = text(
        capsys, *H100, "--sglang", "0.5.9", *words(f"{HYBRID} --tp 4 --speculative-alogrithm NEXTN")
    )
    assert code == 1
    assert shown.startswith("WOULD NOT START (SGLang 0.5.9): it would stop at argparse")
    assert "MTP0100" in shown
    assert "- --speculative-alogrithm NEXTN" in shown
    assert "+ --speculative-algorithm NEXTN" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_verbose_shows_what_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = text(capsys, "-v", *H100, "--sglang", "0.5.16", *words(f"{HYBRID} --tp 4"))
    assert "In force" in shown
    assert "attention_backend" in shown


# -- this machine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "rule", "stage"),
    [
        ("--model-path {tmp}/none", "MTP0440", "config"),
        ("--model-path {tmp}", "MTP0444", "config"),
        ("--model-path some/model --speculative-draft-model-path {tmp}/none", "MTP0440", "config"),
        ("--model-path some/model --chat-template {tmp}/none.jinja", "MTP0460", "tokenizer"),
    ],
)
def test_what_this_machine_lacks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: str, rule: str, stage: str
) -> None:
    command = words(flags.format(tmp=tmp_path) + " --port 61999")
    code, document = check(capsys, "--sglang", "0.5.16", *command)
    found = [
        (p["rule"], p["stage"]) for p in document["problems"] if p["certain"] and p["severity"] == "fatal"
    ]
    assert (code, found) == (1, [(rule, stage)])
    elsewhere = check(capsys, *H100, "--sglang", "0.5.16", *command)[1]
    assert rule not in [p["rule"] for p in elsewhere["problems"]]


def test_a_container_has_its_own_paths(capsys: pytest.CaptureFixture[str]) -> None:
    image = "docker run --gpus all lmsysorg/sglang:v0.5.16 python3 -m sglang.launch_server --model-path /none/at/all"
    _, document = check(capsys, "--command", image)
    assert document["sglang_version"] == "0.5.16"
    assert "MTP0440" not in [p["rule"] for p in document["problems"]]


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, document = check(capsys, "--sglang", "0.5.16", *words(f"{DENSE} --port {port}"))
    assert code == 1
    first = document["problems"][0]
    assert (first["rule"], first["stage"]) == ("MTP0510", "warmup")
    assert str(port) in first["cause"]
    assert document["argument_checks"] != "reject"


# -- SGLang itself, as a test double ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_environment(tmp_path_factory.mktemp("double") / "env"))


def test_sglang_is_asked_and_believed(capsys: pytest.CaptureFixture[str], python: str) -> None:
    command = words(f"{DENSE} --tp-size 4 --dp-size 3")
    code, document = check(capsys, *H100, "--ask-sglang", python, *command)
    assert (code, document["verdict"], document["argument_checks"]) == (1, "reject", "reject")
    assert (document["source"], document["sglang_version"]) == ("sglang", "0.5.9")
    first = document["problems"][0]
    assert (first["source"], first["said"]) == ("sglang", "AssertionError")


def test_sglang_overrules_the_rules(capsys: pytest.CaptureFixture[str], python: str) -> None:
    """The double accepts what the real release does not: its word counts, and the rule's is a note."""
    command = words(f"{DENSE} --tp-size 4 --mode odd")
    _, by_rules = check(capsys, *H100, "--sglang", "0.5.9", *command)
    assert by_rules["argument_checks"] == "reject"
    code, document = check(capsys, *H100, "--ask-sglang", python, *words(f"{DENSE} --tp-size 4 --mode plain"))
    assert (code, document["argument_checks"]) == (0, "accept")
    assert document["resolved"]["attention_backend"] == "fa3"
    assert any("MTP0105 was foreseen" in note for note in document["notes"])


def test_a_refusal_that_no_rule_knows_is_shown_in_its_words(
    capsys: pytest.CaptureFixture[str], python: str
) -> None:
    command = words(f"{DENSE} --mode odd")
    code, document = check(capsys, *H100, "--ask-sglang", python, *command)
    assert code == 1
    first = document["problems"][0]
    assert (first["rule"], first["source"]) == (None, "sglang")
    assert "widgets" in first["said"]
    code, shown = text(capsys, *H100, "--ask-sglang", python, *command)
    assert "SGLang says: ValueError: No rule of mtpdoctor" in " ".join(shown.split())


def test_fixes_are_confirmed_by_sglang(capsys: pytest.CaptureFixture[str], python: str) -> None:
    command = words(f"{DENSE} --tp_size 4")
    code, document = check(capsys, *H100, "--ask-sglang", python, *command)
    assert code == 1
    assert document["problems"][0]["fixes"][0]["verified"] == "sglang"
    assert document["fixed_command"].endswith("--tp-size 4")


def test_an_sglang_that_does_not_answer_leaves_the_rules(
    capsys: pytest.CaptureFixture[str], python: str
) -> None:
    code, document = check(
        capsys, *H100, "--sglang", "0.5.9", "--ask-sglang", python, *words(f"{DENSE} --mode crash")
    )
    assert document["source"] == "rules"
    assert any("SIGABRT" in note for note in document["notes"])
    assert code == 1  # 0.5.9 has no --mode


def test_another_release_than_the_one_named(capsys: pytest.CaptureFixture[str], python: str) -> None:
    assert main(["check", *H100, "--sglang", "0.5.16", "--ask-sglang", python, *words(DENSE)]) == 2
    assert "0.5.16" in capsys.readouterr().err


def test_asking_on_the_real_host_needs_no_gpu_option(capsys: pytest.CaptureFixture[str], python: str) -> None:
    code, document = check(capsys, "--ask-sglang", python, *words(DENSE))
    assert (code, document["argument_checks"]) == (1, "reject")
    assert "NVIDIA driver" in document["problems"][0]["said"]


def test_a_diagnosis_can_ask_about_its_fixes(
    capsys: pytest.CaptureFixture[str], python: str, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "$ python -m sglang.launch_server --model-path m --tp-sise 2\n"
        "usage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --tp-sise 2\n"
    )
    options = ["--json", *H100, "--sglang", "0.5.9", "--command"]
    launch = "python -m sglang.launch_server --model-path m --tp-sise 2"
    assert main(["diagnose", str(log), *options, launch, "--ask-sglang", python]) == 1
    fixes = json.loads(capsys.readouterr().out)["diagnoses"][0]["fixes"]
    assert fixes[0]["verified"] == "sglang"


def test_as_a_process(tmp_path: Path) -> None:
    """Nothing but the document on standard output, and no cache or network is needed."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mtpdoctor",
            "check",
            "--json",
            *H100,
            "--sglang",
            "0.5.16",
            *words(f"{DENSE} --tp 2"),
        ],
        capture_output=True,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), SCHEMA)


@pytest.mark.parametrize(("switch", "verdict"), [("--enable", "reject"), ("--no-enable", "accept")])
def test_the_negative_form_of_a_switch_switches_off(
    capsys: pytest.CaptureFixture[str], switch: str, verdict: str
) -> None:
    command = f"{DENSE} --tp-size 2 {switch}-tp-lm-head-all-to-all".split()
    _, document = check(capsys, *H100, "--sglang", "0.5.20", "--", "sglang", "serve", *command)
    assert document["verdict"] == verdict
