"""Where launches begin and end inside a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.log.command_line import launch_command
from mtpdoctor.log.reading import outcome, read_logs, reading_from_text
from mtpdoctor.log.types import LogReading, Stage

SERVER = "[2026-01-01 00:0{m}:03] server_args=ServerArgs(model_path='/m', tp_size=2, port=30000, host='h', node_rank={n})\n"
FAILS = (
    "[2026-01-01 00:0{m}:04 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/x/model_runner.py", line 1, in load_model\n'
    "ValueError: x{m}\n"
    "\n"
    "[2026-01-01 00:0{m}:05] Received sigquit from a child process. It usually means the child failed.\n"
)
READY = (
    "[2026-01-01 00:0{m}:06] INFO:     Started server process [7]\n"
    "[2026-01-01 00:0{m}:07] The server is fired up and ready to roll!\n"
)


def server(m: int, n: int = 0) -> str:
    return SERVER.format(m=m, n=n)


def ranges(reading: LogReading) -> list[tuple[int, int]]:
    return [(a.first[1], a.last[1]) for a in reading.attempts]


@pytest.mark.parametrize(
    ("probe", "attempts"), [("transformers.models.glm_ocr", 1), ("sglang.srt.models.warp", 2)]
)
def test_what_a_person_tries_below_a_launch_is_no_launch(probe: str, attempts: int) -> None:
    """A Python one-liner that has SGLang's own frames may be a launch (the engine's)."""
    own = '  File "/opt/sglang/python/sglang/__init__.py", line 3, in <module>\n' if "sglang" in probe else ""
    reading = reading_from_text(
        "$ python3 -m sglang.launch_server --model-path /models/m\n"
        "Traceback (most recent call last):\n"
        '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
        '  File "/opt/sglang/python/sglang/launch_server.py", line 35, in <module>\n'
        "ValueError: warp\n"
        "$ nvidia-smi\nNo devices were found\n"
        f'$ python3 -c "import {probe}"\n'
        "Traceback (most recent call last):\n"
        f'  File "<string>", line 1, in <module>\n{own}'
        f"ModuleNotFoundError: No module named '{probe}'\n"
    )
    assert len(reading.attempts) == attempts


def test_restart_loop_begins_where_the_last_one_ended() -> None:
    text = ""
    for m in range(3):
        text += f"[2026-01-01 00:0{m}:01] Failed to load generation config for /m\n"
        text += server(m) + FAILS.format(m=m)
    reading = reading_from_text(text)
    assert ranges(reading) == [(1, 7), (8, 14), (15, 21)]
    assert outcome(reading) == "failed"
    assert reading.attempt is not None
    assert next(e for e in reading.attempt.events if e.fatal).summary == "ValueError: x2"
    assert any("3 launch attempts" in note for note in reading.notes)


def test_several_commands_in_one_file() -> None:
    text = (
        "$ python -m sglang.launch_server --model-path /m --foo\n"
        "usage: launch_server.py [-h]\n"
        "launch_server.py: error: unrecognized arguments: --foo\n"
        "$ CUDA_VISIBLE_DEVICES=0 sglang serve --model-path /m \\\n"
        "    --tp 2\n" + server(1) + READY.format(m=1)
    )
    reading = reading_from_text(text)
    assert ranges(reading) == [(1, 3), (4, 8)]
    assert outcome(reading) == "ready"
    shown = launch_command(reading.attempt, reading) if reading.attempt else None
    assert shown is not None
    assert (shown[0], shown[1].number) == ("CUDA_VISIBLE_DEVICES=0 sglang serve --model-path /m --tp 2", 4)


def test_container_restarts_that_die_at_import() -> None:
    once = (
        "==========\n== CUDA ==\n==========\n\n"
        "Traceback (most recent call last):\n"
        '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
        '  File "/x/sglang/launch_server.py", line 1, in <module>\n'
        "ImportError: nothing there\n"
        "sglang-1 exited with code 1\n"
    )
    reading = reading_from_text(once * 3)
    assert len(reading.attempts) == 3
    assert reading.attempt is not None and reading.attempt.first[1] in (19, 20)


def test_second_start_without_any_end_marker() -> None:
    """Killed without a word (cgroup OOM), started again by the orchestrator."""
    text = server(0) + "[2026-01-01 00:00:04 TP0] Load weight begin. avail mem=1 GB\n"
    reading = reading_from_text(text + server(1) + READY.format(m=1))
    assert ranges(reading) == [(1, 2), (3, 5)]


@pytest.mark.parametrize("end", [FAILS.format(m=1), READY.format(m=1)])
def test_nodes_of_one_launch_are_one_attempt(end: str) -> None:
    text = server(1, 0) + "[2026-01-01 00:01:04 TP0] Init torch distributed begin.\n" + server(1, 1) + end
    assert len(reading_from_text(text).attempts) == 1


def test_ranks_that_die_together_are_one_attempt() -> None:
    dies = (
        "Traceback (most recent call last):\n"
        '  File "/x/sglang/launch_server.py", line 1, in <module>\n'
        "RuntimeError: {}\n"
    )
    reading = reading_from_text(server(1) + dies.format("a") + dies.format("b"))
    assert len(reading.attempts) == 1
    assert reading.attempt is not None and reading.attempt.events[0].summary == "RuntimeError: a"


def test_cut_start_is_an_attempt_without_server_args() -> None:
    reading = reading_from_text(
        "[2026-01-01 00:01:04 TP0] Load weight begin. avail mem=1 GB\n" + FAILS.format(m=1)
    )
    assert len(reading.attempts) == 1
    assert outcome(reading) == "failed"


def test_files_are_nodes(tmp_path: object) -> None:
    from pathlib import Path

    here = Path(str(tmp_path))
    (here / "node0.log").write_text(server(0) + FAILS.format(m=0) + server(1) + READY.format(m=1))
    (here / "node1.log").write_text(server(1, 1) + FAILS.format(m=1))
    reading = read_logs([str(here / "node0.log"), str(here / "node1.log")])
    assert len(reading.attempts) == 2
    last = reading.attempts[-1]
    assert [(s.file, s.first, s.last) for s in last.spans] == [(0, 7, 9), (1, 1, 6)]
    assert outcome(reading) == "failed"
    assert {e.line.file for e in last.events} == {1}
    assert not last.holds(reading.hits.line(0, 1)[0])
    assert last.holds(reading.hits.line(1, 1)[0])


COMMANDS = [
    ("$ python -m sglang.launch_server --model-path /m --tp 2", "python -m sglang.launch_server --model-path /m --tp 2"),
    ("root@host:/w# python3 -m sglang.launch_server --model-path /m", "python3 -m sglang.launch_server --model-path /m"),
    ("(venv) me@box:~/w$ sglang serve --model-path /m", "sglang serve --model-path /m"),
    ("+ exec python3 -m sglang.launch_server --model-path /m", "exec python3 -m sglang.launch_server --model-path /m"),
    ("++ A=1 python -m sglang.launch_server --model-path /m", "A=1 python -m sglang.launch_server --model-path /m"),
    ("Command: ['python3', '-m', 'sglang.launch_server', '--model-path', '/a b']", "python3 -m sglang.launch_server --model-path '/a b'"),
    ('      "Cmd": ["python3", "-m", "sglang.launch_server", "--model-path", "/m"],', "python3 -m sglang.launch_server --model-path /m"),
    ("    command: python3 -m sglang.launch_server --model-path /m", "python3 -m sglang.launch_server --model-path /m"),
    ("Launching: sglang serve --model-path /m --port 1", "sglang serve --model-path /m --port 1"),
    ("docker run --gpus all lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path /m",
     "docker run --gpus all lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path /m"),
    ("2026-03-19 09:11:58 INFO [server_0] 0: + python3 -m dynamo.sglang --model-path /m --tp 2 launcher.py:161",
     "python3 -m dynamo.sglang --model-path /m --tp 2"),
    ("(env) [me@gpu1 dir]$ .venv/bin/python -m sglang.launch_server --model-path /m", ".venv/bin/python -m sglang.launch_server --model-path /m"),
    ("(env) dev@mac-studio sglang % A=1 uv run python -m sglang.launch_server --model-path /m", "A=1 uv run python -m sglang.launch_server --model-path /m"),
    ("spark-1:~$ docker run --name s lmsysorg/sglang:v0.5.12 python3 -m sglang.launch_server --model-path /m",
     "docker run --name s lmsysorg/sglang:v0.5.12 python3 -m sglang.launch_server --model-path /m"),
    ("backends.sglang - INFO - With image: r/s:0.5.5, arguments: [sglang.launch_server --model-path /m --host h], ports: []",
     "python3 -m sglang.launch_server --model-path /m --host h"),
    ("I0205 11:50:58.118540     1 launcher.go:91] cmd: python -m sglang.launch_server --model-path /m", "python -m sglang.launch_server --model-path /m"),
    ("[supervisor] starting sglang: /root/x/bin/python -m sglang.launch_server --model-path /m", "/root/x/bin/python -m sglang.launch_server --model-path /m"),
    ("    Process: 4711 ExecStart=/usr/bin/python3 -m sglang.launch_server --model-path /m (code=exited, status=1/FAILURE)",
     "/usr/bin/python3 -m sglang.launch_server --model-path /m"),
    ("subprocess.CalledProcessError: Command '['python3', '-m', 'sglang.launch_server', '--model-path', '/a b']' returned non-zero exit status 1.",
     "python3 -m sglang.launch_server --model-path '/a b'"),
    ("me       4711 99.0  1.0 123 456 ?  Rl  11:02  0:42 python3 -m sglang.launch_server --model-path /m --tp 2",
     "python3 -m sglang.launch_server --model-path /m --tp 2"),
    ('+ sglang serve --model-path /m --model-loader-extra-config {"concurrency": 16} --host h',
     "sglang serve --model-path /m --model-loader-extra-config '{\"concurrency\": 16}' --host h"),
    ("+ python3 -m sglang.bench_one_batch --model-path /m --batch-size 1", "python3 -m sglang.bench_one_batch --model-path /m --batch-size 1"),
    ('  - Args: ["--model-path", "/m", "--host", ""]', "python3 -m sglang.launch_server --model-path /m --host ''"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command"), COMMANDS, ids=[c[0][:30] for c in COMMANDS])
def test_command_lines(line: str, command: str) -> None:
    attempt = reading_from_text(line + "\n" + server(1)).attempt
    assert attempt is not None
    assert attempt.command_text == command
    assert attempt.command is not None and attempt.command.number == 1


@pytest.mark.parametrize(
    "line",
    [
        "/x/launch_server.py:54: UserWarning: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is it.",
        "  Example: sglang serve --model-path <model> [options]",
        "usage: sglang serve [-h] --model-path MODEL_PATH",
        "sglang serve: error: the following arguments are required: --model-path",
        "root      4711 99.0  1.0 123 456 ?  Rl  python -m sglang.launch_server --model-path /m",
        '  File "/x/sglang/launch_server.py", line 69, in <module>',
        "./run.sh: line 3: 4711 Killed    python -m sglang.launch_server --model-path /m",
        "[2026-01-01 00:00:00] Please use sglang serve --model-path instead",
        "[2026-01-01 00:00:00] Out of memory. You could run it as: sglang serve --model-path /m --mem-fraction-static 0.7",
        "$ grep -n 'sglang serve --model-path' run.sh",
    ],
)
def test_not_command_lines(line: str) -> None:
    attempt = reading_from_text(line + "\n").attempt
    assert attempt is not None and attempt.command is None


def test_the_shell_trace_shows_what_variables_became() -> None:
    attempt = reading_from_text(
        "$ python -m sglang.launch_server --model-path $MODEL\n"
        "+ python -m sglang.launch_server --model-path /m\n" + server(1)
    ).attempt
    assert attempt is not None
    assert attempt.command_text == "python -m sglang.launch_server --model-path /m"


def test_a_command_one_word_a_line() -> None:
    attempt = reading_from_text(
        "    Image:         lmsysorg/sglang:v0.5.10\n"
        "    Command:\n      python3\n      -m\n      sglang.launch_server\n"
        "    Args:\n      --model-path\n      /models/a b\n      --tp\n      2\n    State: Waiting\n"
    ).attempt
    assert attempt is not None
    assert attempt.command_text == "python3 -m sglang.launch_server --model-path '/models/a b' --tp 2"
    listed = reading_from_text(
        'command:\n- python3\n- -m\n- sglang.launch_server\n- --model-path\n- /m\n- --tp\n- "2"\nports:\n'
    ).attempt
    assert listed is not None
    assert listed.command_text == "python3 -m sglang.launch_server --model-path /m --tp 2"
    inspected = reading_from_text(
        '        "Path": "sglang",\n        "Args": [\n            "sglang",\n            "serve",\n            "--model-path",\n'
        '            "/m",\n            "--json-model-override-args",\n            "{\\"a\\": 1}"\n        ],\n'
    ).attempt
    assert inspected is not None
    assert inspected.command_text == "sglang serve --model-path /m --json-model-override-args '{\"a\": 1}'"
    composed = reading_from_text(
        "    entrypoint: python3 -m sglang.launch_server\n    command: --model-path /m --host h\n"
    ).attempt
    assert composed is not None
    assert composed.command_text == "python3 -m sglang.launch_server --model-path /m --host h"


def test_a_restart_that_shows_no_command_has_the_one_before() -> None:
    text = (
        "+ sglang serve --model-path /m --tp 2\n"
        + server(0)
        + FAILS.format(m=0)
        + server(1)
        + FAILS.format(m=1)
    )
    reading = reading_from_text(text)
    assert len(reading.attempts) == 2 and reading.attempt is not None and reading.attempt.command is None
    shown = launch_command(reading.attempt, reading)
    assert shown is not None and shown[0] == "sglang serve --model-path /m --tp 2"
    other = reading_from_text(
        text.replace(server(1), server(1).replace("model_path='/m'", "model_path='/n'"))
    )
    assert other.attempt is not None and launch_command(other.attempt, other) is None


def test_a_wrapped_command_is_one_command() -> None:
    attempt = reading_from_text(
        "$ docker run --gpus all \\\n"
        "    -v $HOME/models:/models \\\n"
        "    lmsysorg/sglang:v0.5.9 \\\n"
        "    python3 -m sglang.launch_server \\\n"
        "    --model-path /models/m \\\n"
        "    --tp 2\n" + server(1)
    ).attempt
    assert attempt is not None
    assert attempt.command is not None and attempt.command.number == 1
    assert attempt.command_text == (
        "docker run --gpus all -v $HOME/models:/models lmsysorg/sglang:v0.5.9 "
        "python3 -m sglang.launch_server --model-path /models/m --tp 2"
    )


def test_systemd_restarts_under_new_process_ids() -> None:
    def journal(program: str, text: str) -> str:
        return "".join(f"Nov 29 13:46:00 gpu1 {program}: {line}\n" for line in text.splitlines())

    text = (
        journal("sglang[100]", server(0) + "[2026-01-01 00:00:04] Load weight begin. avail mem=1 GB")
        + journal("systemd[1]", "sglang.service: Main process exited, code=killed, status=9/KILL")
        + journal("systemd[1]", "sglang.service: Failed with result 'signal'.")
        + journal("systemd[1]", "sglang.service: Scheduled restart job, restart counter is at 1.")
        + journal("systemd[1]", "Started sglang.service - SGLang.")
        + journal("sglang[200]", server(1) + READY.format(m=1))
    )
    reading = reading_from_text(text)
    assert ranges(reading) == [(1, 4), (5, 9)]
    assert outcome(reading) == "ready"
    # the restart has only just begun: what is known is why the launch before it died
    reading = reading_from_text("".join(text.splitlines(keepends=True)[:6]))
    assert len(reading.attempts) == 1 and outcome(reading) == "failed"


def test_systemd_gives_up_after_a_restart_that_wrote_nothing() -> None:
    said = (
        "Failed at step CHDIR spawning /opt/venv/bin/python: No such file or directory",
        "Main process exited, code=exited, status=200/CHDIR",
        "Failed with result 'exit-code'.",
        "Scheduled restart job, restart counter is at 5.",
        "Start request repeated too quickly.",
        "Failed with result 'start-limit-hit'.",
    )
    text = "".join(f"Nov 12 10:00:06 gpu1 systemd[1]: sglang.service: {line}\n" for line in said)
    assert len(reading_from_text(text).attempts) == 1


def node(rank: int, *last: str) -> str:
    ranks = f"TP{8 * rank}"
    return "".join(
        f"{line}\n"
        for line in (
            "[2026-01-01 00:00:00] server_args=ServerArgs(model_path='/m', tp_size=16, nnodes=2, "
            f"node_rank={rank}, port=30000)",
            f"[2026-01-01 00:00:02 {ranks}] Load weight begin. avail mem=78.50 GB",
            f"[2026-01-01 00:00:04 {ranks}] Memory pool end. avail mem=8.00 GB",
            f"[2026-01-01 00:00:05 {ranks}] Capture cuda graph end. Time elapsed: 2.18 s.",
            *last,
        )
    )


@pytest.mark.parametrize(
    "last",
    [
        "[2026-01-01 00:00:06] Dummy health check server started in background thread at 127.0.0.1:30000",
        "[2026-01-01 00:00:06] Starting dummy health check server at 127.0.0.1:30000",
        "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    ],
)
def test_a_node_that_is_not_the_first_is_ready_when_its_health_server_is_up(last: str) -> None:
    reading = reading_from_text(node(1, last))
    assert outcome(reading) == "ready"
    assert reading.attempt is not None
    assert (reading.attempt.stage, reading.attempt.events) == (Stage.SERVING, ())
    assert outcome(reading_from_text(node(1))) == "unfinished"
    assert outcome(reading_from_text(node(0, last))) == "unfinished"
    died = "[2026-01-01 00:00:09] Scheduler or DataParallelController 4242 terminated with -9"
    assert outcome(reading_from_text(node(1, last, died))) == "failed"


def test_the_first_node_speaks_for_the_launch(tmp_path: Path) -> None:
    paths = []
    for rank, last in ((0, ""), (1, "[2026-01-01 00:00:06] Starting dummy health check server at 1.1.1.1:1")):
        paths.append(str(tmp_path / f"node{rank}.log"))
        Path(paths[-1]).write_text(node(rank, last))
    assert outcome(read_logs(paths)) == "unfinished"
    assert outcome(read_logs(paths[1:])) == "ready"


def test_of_ranks_that_write_into_each_other_without_marks_the_whole_traceback_counts() -> None:
    log = Path(__file__).parents[1] / "data" / "interleaved" / "two_ranks_without_marks.log"
    (attempt,) = read_logs([str(log)], ()).attempts
    tracebacks = [event.traceback for event in attempt.events if event.traceback is not None]
    assert [t.message for t in tracebacks] == ["No module named 'flash_mla'"]
