"""A launch without an option that is often at fault, where nothing tells what is."""

from __future__ import annotations

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.suspects import suspects
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text


def said_of(options: str, last: str = "KeyError: 'warp'") -> Diagnosis:
    knowledge = load_knowledge()
    text = (
        f"$ python3 -m sglang.launch_server --model-path /models/m {options}\n"
        "[2026-05-05 10:00:00 TP0] sglang is using nccl==2.27.5\n"
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 99, in run_scheduler_process\n'
        "    self.widget = Widget()\n"
        f"{last}\n"
        "[2026-05-05 10:00:03] Received sigquit from a child process. It usually means the child failed.\n"
    )
    return diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]


def guessed(said: Diagnosis) -> list[tuple[str, str]]:
    return [(f.title, f.safety) for f in said.fixes if f.title.startswith("Try without --")]


def test_a_feature_that_was_asked_for_is_left_out_last_and_never_as_safe() -> None:
    said = said_of("--tp 2 --enable-two-batch-overlap --mem-fraction-static 0.8")
    assert guessed(said) == [("Try without --enable-two-batch-overlap", "risky")]
    *_, last, idle = said.fixes
    assert last.title.startswith("Try without --") and idle.title.startswith("Look whether it is known")
    assert (
        last.command
        == "python3 -m sglang.launch_server --model-path /models/m --tp 2 --mem-fraction-static 0.8"
    )


def test_what_the_failing_code_is_named_after_goes_before_what_experience_guesses() -> None:
    said = said_of(
        "--tp 2 --enable-two-batch-overlap --load-format runai_streamer --tokenizer-path /m/widget",
        last='  File "/opt/venv/lib/python3.12/site-packages/runai_streamer/widget.py", line 9, in open\n'
        "    raise KeyError('warp')\nKeyError: 'warp'",
    )
    assert [title for title, _ in guessed(said)] == [
        "Try without --load-format",
        "Try without --enable-two-batch-overlap",
    ]
    assert "(open, site-packages/runai_streamer/widget.py) bears its name" in next(
        f.why for f in said.fixes if f.title == "Try without --load-format"
    )


def test_what_says_only_what_would_be_anyway_is_not_blamed() -> None:
    path = "  File \"/opt/sglang/python/sglang/srt/layers/attention/warp.py\", line 9, in warp\n    x\nKeyError: 'warp'"
    assert guessed(said_of("--kv-cache-dtype auto", path)) == []
    assert guessed(said_of("--kv-cache-dtype fp8_e4m3", path)) == [("Try without --kv-cache-dtype", "risky")]


def test_what_the_server_is_for_stays() -> None:
    assert guessed(said_of("--tp 2 --trust-remote-code --quantization fp8 --context-length 4096")) == []


def test_the_system_and_dead_processes_blame_no_feature() -> None:
    assert (
        guessed(
            said_of("--enable-two-batch-overlap", "PermissionError: [Errno 13] Permission denied: 'warp'")
        )
        == []
    )


def test_counts_are_of_launches() -> None:
    counts = suspects()
    assert counts and all(0 <= seen.at_fault <= seen.asked for seen in counts.values())


def test_of_a_native_crash_the_stack_that_python_printed_tells_what_ran() -> None:
    """By the source of 0.5.10 the stages of two batches run only with two-batch overlap; DeepEP's code has its name."""
    knowledge = load_knowledge()
    text = (
        "$ python3 -m sglang.launch_server --model-path /models/m --tp 8 --enable-two-batch-overlap --moe-a2a-backend deepep\n"
        "[2026-08-26 10:00:00] sglang==0.5.10\n"
        "[2026-08-26 10:00:02 TP0] Load weight begin. avail mem=78.00 GB\n"
        "Fatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f3b4 (most recent call first):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/deep_ep/buffer.py", line 97 in __init__\n'
        '  File "/opt/sglang/python/sglang/srt/batch_overlap/two_batch_overlap.py", line 412 in model_forward_tbo\n\n'
        "Thread 0x00007f3b5 (most recent call first):\n"
        '  File "/usr/lib/python3.12/threading.py", line 355 in wait\n'
        "[2026-08-26 10:05:15] Received sigquit from a child process. It usually means the child failed.\n"
    )
    said = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    assert (
        "Python was in __init__ (/opt/venv/lib/python3.12/site-packages/deep_ep/buffer.py:97)" in said.cause
    )
    named = [f.title for f in said.fixes if "bears its name" in f.why or "runs only with" in f.why]
    assert any("--enable-two-batch-overlap" in title for title in named)
    assert not any("python -X faulthandler" in line for f in said.fixes for line in f.run)
