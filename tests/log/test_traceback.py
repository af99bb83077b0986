"""Tracebacks as logs carry them: chained, interleaved, tagged, grouped, cut."""

from __future__ import annotations

from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.log.types import Attempt, EventKind, Link, Traceback


def attempt_of(text: str) -> Attempt:
    attempt = reading_from_text(text).attempt
    assert attempt is not None
    return attempt


def tracebacks(text: str) -> list[Traceback]:
    return [e.traceback for e in attempt_of(text).events if e.traceback is not None]


def only(text: str) -> Traceback:
    found = tracebacks(text)
    assert len(found) == 1, [t.type for t in found]
    return found[0]


def test_head_inside_a_record_gives_the_rank() -> None:
    t = only(
        "[2026-01-01 00:00:02 DP1 TP3 EP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        "                ^^^^^^^^^^\n"
        '  File "/s/sglang/srt/model_executor/model_runner.py", line 20, in load_model\n'
        "KeyError: 'model.layers.0'\n"
        "\n"
        "[2026-01-01 00:00:03] Received sigquit from a child process.\n"
    )
    assert (t.rank, t.type, t.message, t.cut) == ("DP1 TP3 EP3", "KeyError", "'model.layers.0'", False)
    assert [(f.function, f.lineno, f.code) for f in t.frames] == [
        ("run_scheduler_process", 10, "scheduler = Scheduler("),
        ("load_model", 20, ""),
    ]
    assert t.exception is not None and t.exception.number == 6
    assert t.head.number == 1


def test_bare_exception_and_repeated_frames() -> None:
    t = only(
        "Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in f\n'
        "    f()\n"
        '  File "/s/a.py", line 1, in f\n'
        "    f()\n"
        "  [Previous line repeated 996 more times]\n"
        "AssertionError\n"
    )
    assert (t.type, t.message, len(t.frames)) == ("AssertionError", "", 2)


def test_an_error_named_by_its_code_is_the_last_line() -> None:
    """NVML's classes: NVMLError_ and the name of the code."""
    t = only(
        "Traceback (most recent call last):\n"
        '  File "/s/pynvml.py", line 1, in nvmlDeviceGetHandleByIndex\n'
        "    _nvmlCheckReturn(ret)\n"
        '  File "/s/pynvml.py", line 2, in _nvmlCheckReturn\n'
        "    raise NVMLError(ret)\n"
        "pynvml.NVMLError_NotSupported: Not Supported\n"
    )
    assert (t.type, t.message, t.cut) == ("pynvml.NVMLError_NotSupported", "Not Supported", False)


def test_syntax_error_block() -> None:
    t = only(
        "Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in <module>\n'
        "    import b\n"
        '  File "/s/b.py", line 3\n'
        "    def f(:\n"
        "          ^\n"
        "SyntaxError: invalid syntax\n"
    )
    assert (t.type, t.frames[-1].path, t.frames[-1].code) == ("SyntaxError", "/s/b.py", "def f(:")


def test_message_goes_on_until_a_blank_line_or_a_record() -> None:
    t = only(
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in init_torch_distributed\n'
        "    torch._C._cuda_setDevice(device)\n"
        "torch.AcceleratorError: CUDA error: invalid device ordinal\n"
        "GPU device may be out of range, do you have enough GPUs?\n"
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "[2026-01-01 00:00:02 TP0] Load weight begin. avail mem=1.00 GB\n"
    )
    assert t.message.splitlines()[:2] == [
        "CUDA error: invalid device ordinal",
        "GPU device may be out of range, do you have enough GPUs?",
    ]
    assert "Load weight" not in t.message
    kinds = [e.kind for e in attempt_of("x\n").events]
    assert kinds == []


def test_chain_in_both_forms() -> None:
    t = only(
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in f\n'
        "ImportError: a\n"
        "\n"
        "The above exception was the direct cause of the following exception:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/s/b.py", line 2, in g\n'
        "ValueError: b\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/s/c.py", line 3, in h\n'
        "RuntimeError: c\n"
    )
    assert t.link is Link.CONTEXT and t.inner is not None
    assert t.inner.link is Link.CAUSE and t.inner.inner is not None
    assert [x.type for x in (t, t.inner, t.root)] == ["RuntimeError", "ValueError", "ImportError"]
    assert t.rank == t.root.rank == "TP1"


def test_chain_whose_beginning_is_cut_off() -> None:
    t = only(
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/s/c.py", line 3, in h\n'
        "RuntimeError: c\n"
    )
    assert (t.link, t.inner, t.type) == (Link.CONTEXT, None, "RuntimeError")


def test_two_ranks_line_by_line_in_one_stream() -> None:
    text = (
        "[2026-01-01 00:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/scheduler.py", line 10, in run_scheduler_process\n'
        "    s = Scheduler()\n"
        '  File "/s/scheduler.py", line 10, in run_scheduler_process\n'
        "    s = Scheduler()\n"
        '  File "/s/model_runner.py", line 20, in load_model\n'
        "    foo()\n"
        "[2026-01-01 00:00:02 TP2] Load weight end. elapsed=1 s\n"
        '  File "/s/model_runner.py", line 20, in load_model\n'
        "    foo()\n"
        "ValueError: a\n"
        "ValueError: a\n"
    )
    found = tracebacks(text)
    assert {t.rank for t in found} == {"TP0", "TP1"}
    for t in found:
        assert [f.function for f in t.frames] == ["run_scheduler_process", "load_model"]
        assert (t.type, t.cut) == ("ValueError", False)


def test_other_ranks_records_between_the_lines() -> None:
    lines = [
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/s/scheduler.py", line 10, in run_scheduler_process',
        "    s = Scheduler()",
        '  File "/s/model_runner.py", line 20, in load_model',
        "    foo()",
        "ValueError: a",
    ]
    noise = "[2026-01-01 00:00:02 TP0] Ignore import error when loading x: No module named 'tilelang'"
    t = only("\n".join(f"{noise}\n{line}" for line in lines))
    assert (t.rank, t.type, len(t.frames), t.message) == ("TP1", "ValueError", 2, "a")
    assert t.exception is not None and t.exception.number == 12


def test_rank_tags_of_torch() -> None:
    found = tracebacks(
        "[rank0]: Traceback (most recent call last):\n"
        "[rank3]: Traceback (most recent call last):\n"
        '[rank0]:   File "a.py", line 1, in <module>\n'
        "[rank0]:     main()\n"
        '[rank3]:   File "b.py", line 1, in <module>\n'
        "[rank3]:     main()\n"
        "[rank3]: RuntimeError: three\n"
        "[rank0]: RuntimeError: zero\n"
    )
    assert {(t.rank, t.message, t.frames[0].path) for t in found} == {
        ("rank3", "three", "b.py"),
        ("rank0", "zero", "a.py"),
    }


def test_exception_group() -> None:
    t = only(
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/x/sglang/srt/a.py", line 1, in <module>\n'
        "  |     main()\n"
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/x/b.py", line 2, in f\n'
        "    |     g()\n"
        "    | ValueError: inner\n"
        "    | \n"
        "    | During handling of the above exception, another exception occurred:\n"
        "    | \n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/x/b.py", line 3, in f\n'
        "    |     g()\n"
        "    | KeyError: 'x'\n"
        "    +------------------------------------\n"
        "after\n"
    )
    assert t.type == "ExceptionGroup"
    assert t.inner is not None and t.inner.type == "KeyError"
    assert (t.root.type, t.root.message, t.root.frames[0].lineno) == ("ValueError", "inner", 2)


def test_remote_traceback_in_a_ray_message() -> None:
    t = only(
        "Traceback (most recent call last):\n"
        '  File "/x/sglang/launch_server.py", line 1, in <module>\n'
        "    x\n"
        "ray.exceptions.RayTaskError(RuntimeError): ray::Actor.f() (pid=1, ip=10.0.0.1)\n"
        '  File "/x/sglang/srt/model_executor/model_runner.py", line 5, in load_model\n'
        "    y\n"
        "RuntimeError: the reason\n"
    )
    assert t.root.type == "RuntimeError" and t.root.message == "the reason"


def test_cut_at_either_end() -> None:
    start = only(
        "    self.foo()\n"
        '  File "/x/sglang/srt/model_executor/model_runner.py", line 3, in load_model\n'
        "    g()\n"
        "RuntimeError: boom\n"
    )
    assert start.cut and (start.type, start.message) == ("RuntimeError", "boom")
    end = only(
        "[2026-01-01 00:00:03 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/model_executor/model_runner.py", line 3, in load_model\n'
        "    g()"
    )
    assert end.cut and end.exception is None and end.rank == "TP0" and end.frames[0].code == "g()"


def test_indentation_lost_on_the_way() -> None:
    t = only(
        "Traceback (most recent call last):\n"
        'File "/x/a.py", line 3, in load_model\n'
        "g(model)\n"
        'File "/x/b.py", line 4, in g\n'
        'raise ValueError("no")\n'
        "ValueError: no\n"
    )
    assert [f.code for f in t.frames] == ["g(model)", 'raise ValueError("no")']
    assert (t.type, t.message) == ("ValueError", "no")


def test_head_behind_a_progress_bar() -> None:
    t = only(
        "  0%|          | 0/3 [00:00<?, ?it/s]\rCapturing batches (bs=4 avail_mem=1.00 GB):   0%|   | 0/3 [00:00<?, ?it/s]"
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/cuda_graph_runner.py", line 1, in capture\n'
        "RuntimeError: x\n"
    )
    assert (t.rank, t.head.number, t.head.part > 0, t.type) == ("TP1", 1, True, "RuntimeError")


def test_stack_prints_and_faulthandler_are_no_exceptions() -> None:
    text = (
        "[2026-01-01 00:00:02] something odd\n"
        "Stack (most recent call last):\n"
        '  File "/s/a.py", line 1, in f\n'
        "    g()\n"
        "[2026-01-01 00:00:02] Load weight begin. avail mem=1.00 GB\n"
        "Fatal Python error: Segmentation fault\n"
        "\n"
        "Current thread 0x00007f (most recent call first):\n"
        '  File "/x/a.py", line 12 in foo\n'
    )
    events = attempt_of(text).events
    assert [e.kind for e in events] == [EventKind.NATIVE]


def test_traceback_in_one_json_message() -> None:
    import json

    message = (
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in load_model\n    g()\nValueError: one message\n'
    )
    first = json.dumps(
        {"log": "[2026-01-01 00:00:01] server_args=ServerArgs(tp_size=2)\n", "stream": "stderr"}
    )
    second = json.dumps({"log": message, "stream": "stderr"})
    t = only(f"{first}\n{second}\n")
    assert (t.rank, t.type, t.message) == ("TP1", "ValueError", "one message")
    assert t.exception is not None and t.exception.number == 2


def test_typographic_quotes_are_read_as_plain_ones() -> None:
    """A log that went through a word processor or a chat; also inside JSON, whose own quotes stay."""
    lines = [
        "Traceback (most recent call last):",
        "  File \u201c/s/a.py\u201d, line 3, in f",
        "    g()",
        "KeyError: \u2018k\u2019",
    ]
    plain = "\n".join(lines) + "\n"
    in_json = "".join(f'{{"log":"{x}\\n","stream":"stderr"}}\n' for x in lines)
    for text in (
        plain,
        in_json,
        f"python -m sglang.launch_server --json-model-override-args '{{\"a\": 1}}'\n{plain}",
    ):
        attempt = reading_from_text(text).attempt
        assert attempt is not None
        (found,) = [e.traceback for e in attempt.events if e.traceback is not None]
        assert (found.type, found.message, found.frames[0].path) == ("KeyError", "'k'", "/s/a.py")
