"""What counts as an event, of which kind, and whether the launch died of it."""

from __future__ import annotations

import warnings

import pytest

from mtpdoctor.log.reading import outcome, reading_from_text
from mtpdoctor.log.types import Event, EventKind, Stage

STARTED = (
    "[2026-01-01 00:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, port=30000)\n"
    "[2026-01-01 00:00:02 TP0] Load weight begin. avail mem=70.00 GB\n"
)
READY = (
    STARTED + "[2026-01-01 00:00:08] INFO:     Started server process [1]\n"
    "[2026-01-01 00:00:09] The server is fired up and ready to roll!\n"
    "[2026-01-01 00:00:10 TP0] Decode batch, #running-req: 1, accept len: 2.50\n"
)


def events(text: str) -> list[Event]:
    attempt = reading_from_text(text).attempt
    assert attempt is not None
    return list(attempt.events)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("terminate called after throwing an instance of 'c10::Error'", EventKind.NATIVE),
        ("Fatal Python error: Bus error", EventKind.NATIVE),
        ("!!!!!!! Segfault encountered !!!!!!!", EventKind.NATIVE),
        ("Error starting router: no worker answers", EventKind.ERROR),
        ("Killed", EventKind.SIGNAL),
        (
            "./run.sh: line 12: 4711 Killed                  python -m sglang.launch_server --tp 8",
            EventKind.SIGNAL,
        ),
        ("Segmentation fault (core dumped)", EventKind.NATIVE),
        ("已杀死", EventKind.SIGNAL),
        (
            "./run.sh: 行 3: 12345 段错误 （核心已转储） python -m sglang.launch_server --model-path /m",
            EventKind.NATIVE,
        ),
        ("srun: error: gpu07: task 0: Killed", EventKind.EXIT),
        ("sglang-1 exited with code 137", EventKind.EXIT),
        ("command terminated with exit code 137", EventKind.EXIT),
        (
            "[2026-01-01 00:00:03] Rank 0 scheduler died during initialization (exit code: -9).",
            EventKind.EXIT,
        ),
        ("[12345.678] Out of memory: Killed process 4711 (python3) total-vm:1kB", EventKind.OOM_KILL),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.", EventKind.OOM_KILL),
        ("      Reason:       OOMKilled", EventKind.OOM_KILL),
        (
            "[2026-01-01 00:00:03] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): "
            "address already in use",
            EventKind.ERROR,
        ),
        ("[2026-01-01 00:00:03 TP0] Watchdog timeout (self.watchdog_timeout=300)", EventKind.ERROR),
        ("thread '<unnamed>' panicked at src/lib.rs:1:1:", EventKind.NATIVE),
    ],
)
def test_lines_that_end_a_launch(line: str, kind: EventKind) -> None:
    found = events(STARTED + line + "\n")
    assert [(e.kind, e.line.number, e.fatal) for e in found] == [(kind, 3, True)]
    assert found[0].stage is Stage.WEIGHTS
    assert outcome(reading_from_text(STARTED + line + "\n")) == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "bash: sglang: command not found",
        "-bash: line 3: python: command not found",
        "python3: can't open file '/w/launch.py': [Errno 2] No such file or directory",
        "/usr/bin/python3: No module named sglang",
        "./start.sh: line 2: /opt/venv/bin/python: No such file or directory",
        'exec: "sglang": executable file not found in $PATH: unknown.',
        "docker: Error response from daemon: could not select device driver",
        "Error response from daemon: OCI runtime create failed: runc create failed",
        "ModuleNotFoundError: No module named 'sgl_kernel'",
        "ValueError: Speculative decoding is not compatible with radix cache",
    ],
)
def test_a_log_of_one_line_that_no_sglang_printed(line: str) -> None:
    found = events(line)
    assert [e.fatal for e in found] == [True]
    assert outcome(reading_from_text(line)) == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-01 00:00:03] Ignore import error when loading sglang.srt.models.deepseek_v4: No module named 'tilelang'",
        "[2026-01-01 00:00:03] Failed to load generation config for /m: OSError: no file. Proceeding.",
        "/opt/x.py:54: UserWarning: 'python -m sglang.launch_server' is still supported",
        "[rank0]:[W1129 13:50:22.343319674 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called",
        "sglang-1 exited with code 0",
        "gpu07:1:1 [0] NCCL WARN MSCCL++: not available",
        '[2026-01-01 00:00:03] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 500 Internal Server Error',
    ],
)
def test_lines_that_end_nothing(line: str) -> None:
    assert not any(e.fatal for e in events(STARTED + line + "\n"))
    assert outcome(reading_from_text(STARTED + line + "\n")) == "unfinished"
    assert outcome(reading_from_text(READY + line + "\n")) == "ready"


def test_argparse_counts_at_its_error_line() -> None:
    text = (
        "usage: sglang serve [-h] --model-path MODEL_PATH\n"
        "                    [--custom-sigquit-handler CUSTOM_SIGQUIT_HANDLER]\n"
        "sglang serve: error: argument --attention-backend: invalid choice: 'fa5' (choose from 'fa3')\n"
    )
    found = events(text)
    assert [(e.kind, e.line.number, e.stage, e.fatal) for e in found] == [
        (EventKind.ARGPARSE, 3, Stage.ARGPARSE, True)
    ]
    assert found[0].summary.startswith("argument --attention-backend: invalid choice")


def test_compilers_are_not_argparse() -> None:
    found = events(STARTED + "nvcc: error: unrecognized arguments: -foo\n")
    assert [e.kind for e in found] == [EventKind.ERROR]


def test_shutdown_asked_for_is_no_failure() -> None:
    text = READY + (
        "[2026-01-01 00:10:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
        "[2026-01-01 00:10:01] Subprocess scheduler_0 (pid=1) crashed with exit code -15. Triggering SIGQUIT for cleanup...\n"
        "[2026-01-01 00:10:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
        "Traceback (most recent call last):\n"
        '  File "/x/sglang/launch_server.py", line 1, in <module>\n'
        "    x\n"
        "RuntimeError: cannot schedule new futures after shutdown\n"
    )
    reading = reading_from_text(text)
    assert outcome(reading) == "ready"
    assert reading.attempt is not None and reading.attempt.shutdown is not None
    assert reading.attempt.shutdown.number == 6
    assert not any(e.fatal for e in reading.attempt.events)


@pytest.mark.parametrize(
    "end",
    [
        "[2026-01-01 00:10:01] Subprocess scheduler_0 (pid=1) crashed with exit code -15. Triggering SIGQUIT for cleanup...\n"
        "[2026-01-01 00:10:01] Received sigquit from a child process. It usually means the child failed.\n",
        "[2026-01-01 00:10:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n",
        "^CTraceback (most recent call last):\n"
        '  File "/x/sglang/launch_server.py", line 1, in <module>\n    x\nKeyboardInterrupt\n',
    ],
)
def test_stopped_before_ready_is_unfinished(end: str) -> None:
    assert outcome(reading_from_text(STARTED + end)) == "unfinished"
    assert outcome(reading_from_text(READY + end)) == "ready"


def test_failure_before_the_shutdown_stays_one() -> None:
    text = STARTED + (
        "[2026-01-01 00:00:03] ERROR:    [Errno 98] error while attempting to bind on address: address already in use\n"
        "[2026-01-01 00:10:01] Subprocess scheduler_0 (pid=1) crashed with exit code -15. Triggering SIGQUIT for cleanup...\n"
    )
    assert outcome(reading_from_text(text)) == "failed"
    assert [e.fatal for e in events(text)] == [True, False]


def test_request_error_while_serving_is_not_fatal() -> None:
    text = READY + (
        "ERROR:    Exception in ASGI application\n"
        "Traceback (most recent call last):\n"
        '  File "/x/uvicorn/protocols/http.py", line 1, in run_asgi\n'
        "    x\n"
        "ValueError: bad request\n"
        "[2026-01-01 00:00:20 TP0] Decode batch, #running-req: 1\n"
    )
    assert outcome(reading_from_text(text)) == "ready"
    traceback = next(e for e in events(text) if e.kind is EventKind.TRACEBACK)
    assert not traceback.fatal and traceback.stage is Stage.SERVING


def test_scheduler_exception_while_serving_is_fatal() -> None:
    text = READY + (
        "[2026-01-01 00:00:20 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/managers/scheduler.py", line 1, in event_loop_overlap\n'
        "    x\n"
        "AssertionError: Not enough space for mamba cache\n"
        "\n"
        "[2026-01-01 00:00:20 TP0] Decode batch, #running-req: 1\n"
        "[2026-01-01 00:00:21] Received sigquit from a child process. It usually means the child failed.\n"
    )
    assert outcome(reading_from_text(text)) == "failed"
    first = next(e for e in events(text) if e.fatal)
    assert (first.line.number, first.rank, first.stage) == (9, "TP1", Stage.SERVING)


def test_error_that_the_launch_got_over() -> None:
    text = STARTED + (
        "Traceback (most recent call last):\n"
        '  File "/x/lib/plugin.py", line 1, in try_something\n'
        "    x\n"
        "ImportError: optional thing missing\n"
        "[2026-01-01 00:00:08] INFO:     Started server process [1]\n"
        "[2026-01-01 00:00:09] The server is fired up and ready to roll!\n"
    )
    assert outcome(reading_from_text(text)) == "ready"


@pytest.mark.parametrize(
    "line",
    [
        "/opt/nvidia/nvidia_entrypoint.sh: line 67: exec: --: invalid option",
        "/docker-entrypoint: 12: exec: Illegal option --",
        "bash: line 1: ./serve: cannot execute: required file not found",
        "/app/run.sh: line 3: MODEL: unbound variable",
        "sh: 1: Syntax error: Unterminated quoted string",
        "exec /usr/bin/python3: exec format error",
    ],
)
def test_a_shell_that_cannot_run_the_command(line: str) -> None:
    reading = reading_from_text(f"== CUDA ==\n\nCUDA Version 12.4.1\n\n{line}\n")
    assert outcome(reading) == "failed"
    assert reading.attempt is not None
    assert [(e.kind, e.line.text, e.stage) for e in reading.attempt.events] == [
        (EventKind.ERROR, line, Stage.ENV)
    ]
    assert outcome(reading_from_text(f"{line}\n{READY}")) == "ready"


def test_the_parser_of_literals_says_nothing() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        reading_from_text(
            "[2026-01-01 00:00:01] server_args=ServerArgs(model_path='/m', tp_size=1if 2else 3)\n"
        )
        reading_from_text("['python', '-m', 'sglang.launch_server', 0x1for x in y, '--tp', '2']\n")
    assert said == []
