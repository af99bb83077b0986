"""A failed launch always has a root line, and always something to do next - also where no rule knows it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.kb.types import Role
from mtpdoctor.log.reading import read_logs

DATA = Path(__file__).parents[1] / "data"
LOGS = sorted(
    [
        *DATA.glob("unseen_reports*/*.log"),
        *DATA.glob("public_reports/**/*.log"),
        *DATA.glob("real_logs/**/*.log"),
    ]
)


@cache
def without_rules() -> Knowledge:
    return Knowledge.of(())


@cache
def consequences_only() -> Knowledge:
    """The worst case: everything that is told is known to follow from something, and nothing else is known."""
    return Knowledge.of([r for r in load_knowledge().rules if r.role in (Role.CONSEQUENCE, Role.NOISE)])


def said(path: Path, knowledge: Knowledge) -> Report:
    return diagnose(read_logs([str(path)], knowledge.literals), knowledge)


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_without_rules(path: Path) -> None:
    # Each log meets one of the two, drawn by its name, so that a new log changes no other's draw.
    knowledge = consequences_only() if crc32(path.stem.encode()) % 2 else without_rules()
    report = said(path, knowledge)
    if report.outcome != "failed":
        return
    first = report.diagnoses[0]
    assert first.root.text.strip()
    assert first.rule is None and first.confidence == 0.3
    assert first.fixes or first.next_steps


def of_text(tmp_path: Path, text: str, knowledge: Knowledge | None = None) -> Report:
    path = tmp_path / "server.log"
    path.write_text(text)
    return said(path, knowledge or without_rules())


EXCEPTION = """[2026-01-01 10:00:20 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sgsite/sglang/srt/disaggregation/decode.py", line 200, in add
    x = receiver.infos
{last}
[2026-01-01 10:00:21] Received sigquit from a child process. It usually means the child failed.
"""


@pytest.mark.parametrize(
    ("before", "last", "root"),
    [
        (
            "[2026-01-01 10:00:19 TP0] Failed to fetch the layout from http://10.0.0.9:8998/route: Connection refused",
            "AttributeError: 'Receiver' object has no attribute 'infos'",
            "10.0.0.9",
        ),
        (
            "host:14:15 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.9.8.7<43369> failed : Connection refused",
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "10.9.8.7",
        ),
        (
            "E0101 10:00:19.355509 10240 rdma_context.cpp:198] Failed to open device mlx5_9: No such device",
            "TypeError: 'NoneType' object is not subscriptable",
            "mlx5_9",
        ),
        # the exception names its object itself
        (
            "[2026-01-01 10:00:19 TP0] Failed to load generation config from /models/m",
            "ValueError: --attention-backend foo cannot be used with this model",
            "--attention-backend foo",
        ),
        # another rank's line says nothing of this one
        (
            "[2026-01-01 10:00:19 TP3] Failed to fetch the layout from http://10.0.0.9:8998/route: Connection refused",
            "AttributeError: 'Receiver' object has no attribute 'infos'",
            "AttributeError",
        ),
        # a line that names nothing
        (
            "[2026-01-01 10:00:19 TP0] Failed to warm up",
            "AttributeError: 'Receiver' object has no attribute 'infos'",
            "AttributeError",
        ),
    ],
)
def test_a_line_that_says_why(tmp_path: Path, before: str, last: str, root: str) -> None:
    report = of_text(tmp_path, f"{before}\n{EXCEPTION.format(last=last)}")
    assert report.outcome == "failed"
    assert root in report.diagnoses[0].root.text


def test_an_exit_status_yields_to_what_the_container_says(tmp_path: Path) -> None:
    text = """sglang  | == Some Server ==
sglang  | ERROR: This container needs a driver of at least 570, and the driver found was 535.
sglang  |
sglang exited with code 139
"""
    knowledge = load_knowledge()
    path = tmp_path / "compose.log"
    path.write_text(text)
    report = diagnose(read_logs([str(path)], knowledge.literals), knowledge)
    assert report.outcome == "failed"
    assert "needs a driver" in report.diagnoses[0].root.text


def test_the_line_below_a_banner(tmp_path: Path) -> None:
    text = EXCEPTION.format(
        last="""some.compiler.errors.CompilationError:
///------------------[ERROR][Triton][BEG]------------------
[Pass] encounters error:
other-compile: Cannot find option named 'Chip9'!
///------------------[ERROR][Triton][END]------------------"""
    )
    assert "Chip9" in of_text(tmp_path, text).diagnoses[0].root.text


def test_workers_that_die_without_a_word(tmp_path: Path) -> None:
    text = """[2026-05-27 09:22:10] server_args=ServerArgs(model_path='/models/M', tp_size=8)
some-binder: setting nodes: Operation not permitted
[2026-05-27 09:22:24] Rank 0 scheduler died during initialization (exit code: 1). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/sgsite/sglang/launch_server.py", line 28, in run_server
    launch_server(server_args)
RuntimeError: Rank 0 scheduler died during initialization (exit code: 1). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.
"""
    report = of_text(tmp_path, text, load_knowledge())
    assert report.outcome == "failed"
    assert "Operation not permitted" in report.diagnoses[0].root.text
    assert report.diagnoses[0].fixes or report.diagnoses[0].next_steps


DESCRIBED = """Containers:
  sglang:
    Command:
      python3
      -m
      sglang.launch_server
    Args:
      --model-path
      M
    Last State:     Terminated
      Exit Code:    137
Events:
  Type     Reason     Age    From     Message
  Normal   Started    98s    kubelet  Started container sglang
  Warning  BackOff    21s    kubelet  Back-off restarting failed container sglang
"""
COMPOSE = """$ cat docker-compose.yml
services:
  sglang:
    image: lmsysorg/sglang:latest
    command: python3 -m sglang.launch_server --model-path M --tp 2
"""
INSPECT = """[{"State": {"ExitCode": 1}, "Config": {
        "Cmd": ["python3", "-m", "sglang.launch_server", "--model-path", "M", "--tp", "2"]
}}]
"""
LOG = (
    "[2026-05-27 09:22:10] server_args=ServerArgs(model_path='M', tp_size=2)\n[2026-05-27 09:22:15 TP0] Load weight begin. avail mem=78.00 GB\n"
    + (EXCEPTION.format(last="ValueError: the value 'abc' is not one of its kind"))
)


@pytest.mark.parametrize("block", [DESCRIBED, COMPOSE, INSPECT], ids=["describe", "compose", "inspect"])
@pytest.mark.parametrize("after", [True, False])
def test_a_description_is_no_launch(tmp_path: Path, block: str, after: bool) -> None:
    report = of_text(tmp_path, LOG + block if after else block + LOG)
    assert report.attempts == 1
    assert "not one of its kind" in report.diagnoses[0].root.text
    assert report.command is not None and "--model-path M" in report.command


def test_every_label_set_is_read() -> None:
    assert len(LOGS) > 200 and all(
        json.loads(p.read_text()) for p in DATA.glob("unseen_reports*/labels.json")
    )
