"""The root cause is found however a failing log came about: flushed late, cut, doubled, in pieces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.reading import read_logs, reading_from_text

SRT = "/usr/local/lib/python3.12/dist-packages/sglang/srt"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of "
    "79.11 GiB of which 1.10 GiB is free. Process 4242 has 61.00 GiB memory in use."
)
PEER = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.5]:51222"
UNKNOWN = "KeyError: 'model.layers.3.experts.w13'"
QUIT = ["[2026-05-01 10:20:40] Received sigquit from a child process. It usually means the child failed."]
HANDLED = [
    "[2026-05-01 10:02:00] ERROR:    Exception in ASGI application",
    "Traceback (most recent call last):",
    f'  File "{SRT}/entrypoints/openai/serving_chat.py", line 211, in _process',
    "    raise ValueError('bad')",
    "ValueError: bad content part",
]


def start(node: int = 0, nodes: int = 1, ranks: Sequence[int] = range(8)) -> list[str]:
    lines = [
        "$ python -m sglang.launch_server --model-path /m/DeepSeek --tp-size 8",
        f"[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m/DeepSeek', tp_size=8, nnodes={nodes}, "
        f"node_rank={node}, port=30000, mem_fraction_static=0.9)",
    ]
    for rank in ranks:
        lines.append(f"[2026-05-01 10:00:10 TP{rank}] Init torch distributed begin.")
        lines.append(f"[2026-05-01 10:00:20 TP{rank}] Load weight begin. avail mem=78.00 GB")
    return lines


def died(time: str, rank: str, exception: str, file: str = "model_executor/model_runner.py") -> list[str]:
    function = "load_model" if "runner" in file else "event_loop_overlap"
    return [
        f"[2026-05-01 {time} {rank}] Scheduler hit an exception: Traceback (most recent call last):",
        f'  File "{SRT}/managers/scheduler.py", line 3600, in run_scheduler_process',
        "    scheduler = Scheduler(",
        f'  File "{SRT}/{file}", line 1075, in {function}',
        "    self.step()",
        exception,
        "",
    ]


def watchdog(time: str, rank: int) -> list[str]:
    return [
        f"[rank{rank}]:[E501 {time}.123456789 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
        "600011 milliseconds before timing out."
    ]


def serving() -> list[str]:
    return [
        *start(),
        "[2026-05-01 10:00:30 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=20.00 GB, mem usage=58.00 GB.",
        "[2026-05-01 10:01:00] INFO:     Started server process [1]",
        "[2026-05-01 10:01:03] The server is fired up and ready to roll!",
    ]


FAILING = [*start(), *died("10:05:30", "TP5", OOM), *QUIT, "Killed"]


def report_of(lines: Sequence[str] | str) -> Report:
    knowledge = own_knowledge()
    text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
    return diagnose(reading_from_text(text, knowledge.literals), knowledge)


def root_of(report: Report) -> str:
    assert report.outcome == "failed"
    return report.diagnoses[0].root.body


@pytest.mark.parametrize("exception", [OOM, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("others", ["peers", "watchdogs"])
def test_the_first_in_time_counts_not_the_first_in_the_file(exception: str, others: str) -> None:
    lines = start()
    for rank in (0, 1, 2, 3, 4, 6, 7):
        lines += died("10:15:31", f"TP{rank}", PEER) if others == "peers" else watchdog("10:15:31", rank)
    report = report_of([*lines, *died("10:05:30", "TP5", exception), *QUIT])
    assert root_of(report) == exception
    assert report.diagnoses[0].ranks == ("TP5",)
    shown = {line.text for line in report.diagnoses[0].consequences}
    assert any(("Connection closed" if others == "peers" else "Watchdog caught") in text for text in shown)


def test_what_a_launch_went_on_after_does_not_explain_an_exception_that_no_rule_knows() -> None:
    told = (
        Path(__file__).parent / "data" / "public_reports" / "ready_no_p2p_and_gloo_warnings.log"
    ).read_text(encoding="utf-8")
    lines = [line.removeprefix("sglang-1  | ") for line in told.split("\n")]
    warned = lines[: next(i for i, line in enumerate(lines) if "fired up" in line)]
    assert any("peer access is not supported" in line for line in warned)
    report = report_of([*warned, *died("16:50:43", "TP1", UNKNOWN), *QUIT])
    assert root_of(report) == UNKNOWN
    assert report.diagnoses[0].rule is None


def test_without_times_the_order_of_the_file_counts() -> None:
    untimed = [line.replace("[2026-05-01 10:15:31 TP3] ", "") for line in died("10:15:31", "TP3", UNKNOWN)]
    late = UNKNOWN.replace("KeyError", "IndexError")
    assert root_of(report_of([*start(), *untimed, *died("10:05:30", "TP5", late), *QUIT])) == UNKNOWN


@pytest.mark.parametrize("exception", [OOM, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_nodes_of_a_launch_in_any_order(tmp_path: Path, exception: str, order: tuple[int, int]) -> None:
    first = start(0, 2)
    for rank in range(8):
        first += died("10:05:33", f"TP{rank}", PEER)
    second = [*start(1, 2, range(8, 16)), *died("10:05:30", "TP13", exception)]
    paths = [tmp_path / "node0.log", tmp_path / "node1.log"]
    for path, lines in zip(paths, (first, second), strict=True):
        path.write_text("\n".join([*lines, *QUIT]) + "\n")
    knowledge = own_knowledge()
    report = diagnose(read_logs([str(paths[i]) for i in order], knowledge.literals), knowledge)
    assert root_of(report) == exception
    assert report.files[report.diagnoses[0].root.file].endswith("node1.log")


def test_nodes_in_different_time_zones_are_not_compared(tmp_path: Path) -> None:
    first = [*start(0, 2), *died("10:05:30", "TP3", OOM), *QUIT]
    second = [x.replace(" 10:", " 02:") for x in [*start(1, 2, range(8, 16)), *died("10:05:33", "TP9", PEER)]]
    for name, lines in (("a.log", first), ("b.log", second)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    knowledge = own_knowledge()
    reading = read_logs([str(tmp_path / "a.log"), str(tmp_path / "b.log")], knowledge.literals)
    assert root_of(diagnose(reading, knowledge)) == OOM


def test_one_of_two_hundred_ranks() -> None:
    lines = start(0, 1, range(200))
    for rank in range(200):
        lines += died("10:05:31", f"TP{rank}", PEER) if rank != 137 else died("10:05:30", "TP137", OOM)
    report = report_of([*lines, *QUIT])
    assert root_of(report) == OOM
    assert report.diagnoses[0].ranks == ("TP137",)


@pytest.mark.parametrize("exception", [OOM, "KeyError: 7"], ids=["known", "unknown"])
def test_a_handled_exception_is_not_why_the_server_died_later(exception: str) -> None:
    dead = died("10:02:05", "TP0", exception, "managers/scheduler.py")
    assert root_of(report_of([*serving(), *HANDLED, *dead, *QUIT])) == exception


def test_a_handled_exception_before_a_kill() -> None:
    killed = "[2026-05-01 10:02:01] Subprocess scheduler_0 (pid=77) crashed with exit code -9. Triggering SIGQUIT for cleanup..."
    assert "exit code -9" in root_of(report_of([*serving(), *HANDLED, killed, *QUIT]))


def test_the_last_attempt_counts() -> None:
    healthy = [line.replace(" 10:0", " 11:0") for line in serving()]
    report = report_of([*FAILING, *healthy])
    assert (report.outcome, report.diagnoses) == ("ready", ())
    again = [line.replace(" 10:", " 12:") for line in FAILING]
    report = report_of([*healthy, *again])
    assert root_of(report) == OOM
    assert report.diagnoses[0].root.number > len(healthy)


FENCED = ["### It dies", "```bash", FAILING[0], "```", "and I get", "```", *FAILING[1:], "```", "Why?"]


@pytest.mark.parametrize(
    "text",
    [
        "\r\n".join(FAILING) + "\r\n",
        "\n".join(line for line in FAILING for _ in range(2)),
        "\n".join(FENCED),
        "\n".join(f"> {line}" for line in FAILING),
        "\n".join(
            json.dumps({"ts": f"2026-05-01T10:00:{i % 60:02d}Z", "msg": x}) for i, x in enumerate(FAILING)
        ),
        "\n".join(f"2026-05-01T02:00:{i % 60:02d}Z {x}" for i, x in enumerate(FAILING)),
        "\n".join(FAILING[12:]),
        "\n".join(FAILING[:-2]),
    ],
    ids=["crlf", "doubled", "markdown", "quoted", "json", "other-zone", "head-cut", "tail-cut"],
)
def test_in_every_shape(text: str) -> None:
    report = report_of(text)
    assert root_of(report) == OOM
    assert report.diagnoses[0].ranks == ("TP5",)
    assert len(report.diagnoses) == 1


def test_cut_inside_the_traceback_is_a_failure_without_a_made_up_cause() -> None:
    report = report_of(FAILING[: FAILING.index(OOM) - 1])
    assert report.outcome == "failed"
    assert [d.rule for d in report.diagnoses] == [None]


def test_a_command_put_together_holds_every_argument_that_is_not_the_default() -> None:
    """The log was kept without its command: what ``server_args`` shows is the launch, all of it."""
    log = Path(__file__).parent.parent / "docs" / "sessions" / "kv_pool_too_small.1.log"
    report = report_of(log.read_text(encoding="utf-8"))
    assert report.diagnoses[0].rule == "MTP0700"
    start, _, rest = (report.diagnoses[0].fixes[0].command or "").partition(" --mem-fraction-static ")
    assert start == (
        "python -m sglang.launch_server --model-path /models/Qwen3-tiny --attention-backend triton "
        "--chunked-prefill-size 8192 --cuda-graph-max-bs 4 --disable-piecewise-cuda-graph --grammar-backend none "
        "--load-format dummy"
    )
    fraction, *others = rest.split(" ")
    assert others == ["--port", "31210", "--sampling-backend", "pytorch"]
    assert 0.3 < float(fraction) < 0.98
