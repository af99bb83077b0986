"""Asking SGLang in a child process, against a test double of an environment that has it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from waiting import until, with_more_time

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import LaunchCommand
from mtpdoctor.sglang import ask
from mtpdoctor.sglang.ask import PretendedGpus, SglangVerdict, ask_many, ask_sglang
from mtpdoctor.sglang.installed import installed_release, python_to_ask

from .double import make_environment

GPU = PretendedGpus(4, 90, 79.5, "NVIDIA H100")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_environment(tmp_path_factory.mktemp("double") / "env"))


def launch(flags: str, env: str = "") -> LaunchCommand:
    return read_launch(f"{env} python -m sglang.launch_server --model-path /m/x {flags}".strip()).command


def ask_one(python: str, flags: str, gpu: PretendedGpus | None = GPU, **more: object) -> SglangVerdict:
    return ask_sglang(python, launch(flags), gpu=gpu, **more)  # type: ignore[arg-type]


def test_it_accepts_and_says_what_would_be_in_force(python: str) -> None:
    verdict = ask_one(python, "--tp-size 2 --api-key sk-secret-123")
    assert (verdict.verdict, verdict.version, verdict.reason) == ("accept", "0.5.9", None)
    assert verdict.resolved["tp_size"] == 2
    assert verdict.resolved["attention_backend"] == "fa3"
    assert verdict.resolved["gpu"] == "4 x (9, 0)"
    assert "sk-secret" not in repr(verdict)


def test_another_pretended_host_is_another_answer(python: str) -> None:
    verdict = ask_one(python, "", PretendedGpus(8, 121, 119.0))
    assert verdict.resolved["gpu"] == "8 x (12, 1)"
    assert verdict.resolved["attention_backend"] == "triton"
    smi = ask_one(python, "--mode smi", PretendedGpus(2, 90, 80.0))
    assert smi.resolved["attention_backend"] == "81920+81920"


def test_the_release_that_resolves_later_is_resolved(tmp_path: Path) -> None:
    python = str(make_environment(tmp_path / "env", version="0.5.23", era="new"))
    verdict = ask_one(python, "")
    assert (verdict.version, verdict.resolved["attention_backend"]) == ("0.5.23", "fa3")


def test_argparse_refuses(python: str) -> None:
    verdict = ask_one(python, "--attention-backend fa5")
    assert (verdict.verdict, verdict.stage) == ("reject", "argparse")
    assert verdict.message.startswith("argument --attention-backend: invalid choice: 'fa5'")


def test_a_bare_assertion_is_explained_from_its_source(python: str) -> None:
    verdict = ask_one(python, "--tp-size 4 --dp-size 3")
    assert (verdict.verdict, verdict.stage, verdict.error) == ("reject", "server_args", "AssertionError")
    assert verdict.site is not None
    assert (verdict.site.file, verdict.site.function) == ("sglang/srt/server_args.py", "check_server_args")
    assert "assert self.tp_size % self.dp_size == 0" in verdict.explanation[0]
    assert "is not divisible by" in verdict.explanation[1]


def test_a_message_that_says_it_is_not_explained_further(python: str) -> None:
    verdict = ask_one(python, "--mode odd")
    assert verdict.error.startswith("ValueError: No rule of mtpdoctor")
    assert verdict.explanation == ()


def test_what_the_child_prints_elsewhere_is_ignored(python: str) -> None:
    verdict = ask_one(python, "--mode noise")
    assert verdict.verdict == "accept"
    assert verdict.warnings == ("radix cache is \x1b[31moff\x1b[0m",)


@pytest.mark.parametrize(("mode", "reason"), [("crash", "SIGABRT"), ("exit", "exit code 7")])
def test_a_crash_is_unknown(python: str, mode: str, reason: str) -> None:
    verdict = ask_one(python, f"--mode {mode}")
    assert verdict.verdict == "unknown"
    assert reason in (verdict.reason or "")


def test_no_answer_in_time_ends_the_whole_group(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("DOUBLE_PIDS", str(pids))
    verdict, limit = with_more_time(
        lambda limit: ask_one(python, "--mode hang", timeout_s=limit), lambda _: pids.exists()
    )
    assert verdict.verdict == "unknown"
    assert f"no answer within {limit:g} s" in (verdict.reason or "")
    for pid in map(int, pids.read_text().split()):
        until(partial(_gone, pid), f"the end of process {pid}")


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_what_cannot_be_asked_is_unknown(tmp_path: Path) -> None:
    empty = str(make_environment(tmp_path / "env", version=None))
    verdict = ask_one(empty, "")
    assert (verdict.verdict, verdict.reason) == ("unknown", f"{empty} has no SGLang installed")
    missing = ask_one(str(tmp_path / "no-python"), "")
    assert missing.verdict == "unknown"
    assert "cannot be run" in (missing.reason or "")


def test_a_model_that_only_the_hub_has_is_unknown(python: str) -> None:
    verdict = ask_one(python, "--mode hub")
    assert verdict.verdict == "unknown"
    assert "could not read the model here" in (verdict.reason or "")


def test_on_the_real_host_nothing_is_stood_in_for(python: str) -> None:
    verdict = ask_one(python, "", None)  # the double's torch has no GPU
    assert (verdict.verdict, verdict.exception) == ("reject", "RuntimeError")
    assert "no NVIDIA driver" in verdict.message


def test_kernel_packages_are_stood_in_for_on_a_pretended_host(python: str) -> None:
    assert ask_one(python, "--mode kernel").verdict == "accept"


def test_many_commands_do_not_see_one_another(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOUBLE_PIDS", os.devnull)
    commands = [
        launch("--mode env", "DOUBLE_BACKEND=one"),
        launch("--mode crash"),
        launch("--mode env"),
        launch("--mode hang"),
        launch("--tp-size 3 --dp-size 2"),
        launch("--tp-size $TP"),
    ]

    def asked(limit: float) -> Sequence[SglangVerdict]:
        monkeypatch.setattr(ask, "COMMAND_TIMEOUT_S", limit)
        return ask_many(python, commands, gpu=GPU)

    verdicts = ["accept", "unknown", "accept", "unknown", "reject", "unknown"]
    found, limit = with_more_time(asked, lambda vs: [v.verdict for v in vs] == verdicts)
    assert [v.verdict for v in found] == verdicts
    assert [found[i].resolved["attention_backend"] for i in (0, 2)] == ["one", "unset"]
    assert "signal" in (found[1].reason or "")
    assert f"no answer within {limit:g} s" in (found[3].reason or "")
    assert "$TP" in (found[5].reason or "")


def test_another_folder_stands_in_for_the_model(python: str, tmp_path: Path) -> None:
    verdict = ask_one(python, "", model=str(tmp_path))
    assert verdict.resolved["model_path"] == str(tmp_path)


def test_words_reach_sglang_as_they_are(python: str) -> None:
    command = read_launch("sglang serve '/m/a b;$(touch x)' --mode 'it is'").command
    assert ask.arguments(command) == ["--model-path", "/m/a b;$(touch x)", "--mode", "it is"]


def test_the_python_to_ask(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(python).parent.parent
    assert python_to_ask(python) == python
    assert python_to_ask(str(folder)) == python
    monkeypatch.setenv("VIRTUAL_ENV", str(folder))
    assert python_to_ask(None) == python
    with pytest.raises(UserError, match="no program"):
        python_to_ask(str(tmp_path / "nothing"))
    empty = make_environment(tmp_path / "env", version=None).parent.parent
    monkeypatch.setenv("VIRTUAL_ENV", str(empty))
    monkeypatch.setenv("PATH", str(empty / "bin"))
    with pytest.raises(UserError, match="no Python with SGLang"):
        python_to_ask(None)


def test_the_installed_release(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = read_launch(f"{python} -m sglang.launch_server --model-path m").command
    assert (installed_release(named) or ("",))[0] == "0.5.9"
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert installed_release(launch("")) is None
    folder = Path(python).parent.parent / "lib"
    site = next(folder.glob("python*/site-packages"))
    lone = read_launch(f"PYTHONPATH=/nowhere:{site} python3 -m sglang.launch_server --model-path m").command
    assert installed_release(lone) == ("0.5.9", str(site))
    image = "docker run --gpus all lmsysorg/sglang:v0.5.10.post1-cu130 python3 -m sglang.launch_server --model-path m"
    assert (installed_release(read_launch(image).command) or ("",))[0] == "0.5.10.post1"
