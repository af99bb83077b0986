"""What this launch can do without stands last, behind what a rule knows of the kind of failure."""

from __future__ import annotations

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

START = "/opt/sglang/python/sglang/srt/managers/scheduler.py"


def said_of(options: str, frames: list[tuple[str, str]], last: str, release: str = "0.5.16") -> Diagnosis:
    knowledge = load_knowledge()
    places = [(START, "run_scheduler_process"), *frames]
    text = (
        f"$ python3 -m sglang.launch_server --model-path /models/m {options}\n"
        f"[2026-08-05 10:00:00] sglang=={release}\n"
        "[2026-08-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        + "".join(f'  File "{path}", line 99, in {function}\n    x = y()\n' for path, function in places)
        + f"{last}\n"
        "[2026-08-05 10:00:03] Received sigquit from a child process. It usually means the child failed.\n"
    )
    said = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    assert said.rule is not None
    return said


def titles(said: Diagnosis) -> list[str]:
    return [fix.title for fix in said.fixes]


DEVICE = "RuntimeError: CUDA error: invalid device ordinal"
LOADER = [("/opt/sglang/python/sglang/srt/model_loader/weight_utils.py", "othertensors_weights_iterator")]


def test_a_loader_after_which_the_failing_code_is_named_can_be_left_out() -> None:
    frames = [("/opt/sglang/python/sglang/srt/model_loader/loader.py", "remote_instance_weights")]
    said = said_of("--tp 2 --load-format remote_instance", frames, DEVICE)
    *_, last = said.fixes
    assert (last.title, last.safety) == ("Try without --load-format", "risky")
    assert last.command == "python3 -m sglang.launch_server --model-path /models/m --tp 2"
    assert len(said.fixes) > 1  # what the rule knows goes before it


def test_code_with_another_name_ties_nothing() -> None:
    assert "Try without --load-format" not in titles(said_of("--load-format runai_streamer", LOADER, DEVICE))


def test_a_loader_that_the_checkpoint_needs_stays() -> None:
    frames = [("/opt/sglang/python/sglang/srt/model_loader/loader.py", "bitsandbytes_weights_iterator")]
    assert "Try without --load-format" not in titles(said_of("--load-format bitsandbytes", frames, DEVICE))


def test_one_backend_in_two_options_is_left_out_of_both() -> None:
    frames = [("/opt/sglang/python/sglang/srt/layers/attention/nsa/tilelang_kernel.py", "launch")]
    options = "--nsa-prefill-backend tilelang --nsa-decode-backend tilelang"
    said = said_of(options, frames, DEVICE, "0.5.9")
    assert said.fixes[-1].title == "Try without --nsa-prefill-backend and --nsa-decode-backend"
    assert {edit.name for edit in said.fixes[-1].edits} == {"--nsa-prefill-backend", "--nsa-decode-backend"}


def test_a_value_that_much_code_is_named_after_counts_only_in_its_own_part() -> None:
    frames = [("/opt/venv/lib/python3.12/site-packages/flashinfer/norm/rmsnorm.py", "rmsnorm")]
    assert "Try without --attention-backend" not in titles(
        said_of("--attention-backend flashinfer", frames, DEVICE)
    )


def test_what_runs_only_with_an_option_can_be_left_out_once() -> None:
    """By the source of 0.5.16 the LoRA manager runs only with --enable-lora."""
    frames = [
        ("/opt/sglang/python/sglang/srt/model_executor/model_runner.py", "init_lora_manager"),
        ("/opt/sglang/python/sglang/srt/lora/lora_manager.py", "init_state"),
    ]
    options = "--enable-lora --max-lora-rank 8 --lora-target-modules all"
    said = said_of(options, frames, DEVICE)
    without = [fix for fix in said.fixes if any(edit.name == "--enable-lora" for edit in fix.edits)]
    assert [fix.safety for fix in without] == ["risky"]
    assert without[0] is said.fixes[-1]


def test_memory_and_what_the_system_refuses_blame_no_option() -> None:
    frames = [("/opt/sglang/python/sglang/srt/model_loader/loader.py", "remote_instance_weights")]
    refused = "PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'"
    for last in (
        refused,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 139.80 GiB",
    ):
        assert "Try without --load-format" not in titles(
            said_of("--load-format remote_instance", frames, last)
        )
