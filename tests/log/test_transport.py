"""Whatever carries a log: the same text, ranks and line numbers come out as from the plain log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.wrap import TRANSPORTS, wrap
from mtpdoctor.log.kinds import Peeled
from mtpdoctor.log.lines import logical_lines
from mtpdoctor.log.scan import ScannedLog, learn_from, scan
from mtpdoctor.log.shapes import shape_of
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.transport import learn

REAL = Path(__file__).parents[1] / "data" / "real_logs"
LOGS = ["scheduler_killed_sigkill", "tp2_on_one_gpu", "spec_no_buffer_with_radix"]
LITERALS = [
    "scheduler died during initialization",
    'File "<frozen runpy>", line 198',  # quotes and angle brackets: escaped in JSON
    "ValueError: Speculative decoding for",
    "kill_process_tree called",
    "not printed anywhere",
    " & ",
]


def scanned(data: bytes, literals: list[str] | None = None) -> ScannedLog:
    return scan([LogSource.of_bytes(data)], literals or LITERALS)


def everything(log: ScannedLog) -> list[tuple[int, int, str | None, str]]:
    return [(x.number, x.part, x.rank, x.text) for x in log.window(0, 1, log.files[0].line_count)]


def real(name: str) -> list[str]:
    return (REAL / f"{name}.log").read_bytes().decode().removesuffix("\n").split("\n")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", LOGS)
def test_a_carried_log_reads_like_the_plain_one(name: str, transport: str) -> None:
    lines = real(name)
    plain = scanned(wrap(lines, "plain"))
    carried = scanned(wrap(lines, transport))
    assert carried.files[0].line_count == len(lines)
    assert everything(carried) == everything(plain)
    for literal in LITERALS:
        assert [x.key for x in carried.lines(literal)] == [x.key for x in plain.lines(literal)], literal
        assert carried.count(literal) == plain.count(literal)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_trailing_blanks_of_a_prefix_may_be_cut_off(transport: str) -> None:
    """Editors and copies strip them: ``sglang-1  |`` is an empty line still."""
    lines = real("spec_no_buffer_with_radix")
    lines.insert(12, "")
    stripped = b"\n".join(line.rstrip(b" ") for line in wrap(lines, transport).split(b"\n"))
    assert scanned(stripped).line(0, 13)[0].text == ""


@pytest.mark.parametrize(
    ("transport", "stream"),
    [
        ("compose", "sglang-1"),
        ("swarm", "llm_sglang.1.kx3q9zr2@gpu1"),
        ("kubectl_prefix", "pod/sglang-7d9c6b5f4-x2x8z/server"),
        ("journald", "sglang[4242]"),
        ("journald_json", "python3[4242]"),
        ("slurm_padded", "3"),
        ("ray", "RayWorker pid=4242, ip=10.0.0.7"),
        ("rank_prefix", "rank3"),
        ("torchrun", "default3"),
        ("mpi", "1,3"),
        ("pdsh", "gpu-node03"),
        ("stern", "sglang-7d9c6b5f4-x2x8z server"),
        ("supervisor", "sglang"),
        ("kubernetes_slurm", "pod/sglang-0/server/3"),
        ("journald_compose", "docker[812]/sglang-1"),
        ("plain", ""),
    ],
)
def test_the_stream_is_what_the_prefix_names(transport: str, stream: str) -> None:
    log = scanned(wrap(real("tp2_on_one_gpu"), transport))
    assert {x.stream for x in log.window(0, 1, 10**6)} == {stream}


def test_several_services_are_told_apart() -> None:
    lines = ["[2026-11-29 13:46:42 TP0] Load weight begin.", "Traceback (most recent call last):"]
    data = (
        "".join(f"sglang-{i % 2}  | {lines[i % 2]}\n" for i in range(8)) + "sglang-0 exited with code 137\n"
    )
    log = scanned(data.encode(), ["exited with code 137", "Traceback (most"])
    assert [x.stream for x in log.window(0, 1, 2)] == ["sglang-0", "sglang-1"]
    (gone,) = log.lines("exited with code 137")
    assert (gone.stream, gone.text) == ("sglang-0", "sglang-0 exited with code 137")
    assert log.count("Traceback (most") == 4


@pytest.mark.parametrize(
    "line",
    [
        "0: not a task number",
        "name | not a service",
        "2026-11-29 13:46:42 a stray timestamp",
        "node1: not a host",
        'ValueError: {"log": "x", "stream": "y"}',
        '{"message": "a body that a client sent", "code": 400}',
        '{"log": "one-off", "stream": "stdout"}',
        "Nov 29 13:46:12 gpu1 kernel: Out of memory: Killed process 4242 (sglang::schedul)",
        "   0%|          | 0/25 [00:00<?, ?it/s]",
        "| NVIDIA-SMI 570.86  |",
        "12: [GPU] | 3 |",
    ],
)
def test_what_only_looks_like_a_prefix_once_stays(line: str) -> None:
    lines = real("scheduler_killed_sigkill")
    lines[50:50] = [line]
    assert scanned(wrap(lines, "plain")).line(0, 51)[0].text == line


def test_a_prefix_that_begins_late_is_taken_off_too() -> None:
    """A terminal's own lines, then a container's."""
    shell = ["$ docker compose up", "Attaching to sglang-1"]
    inner = real("scheduler_killed_sigkill")
    data = wrap(shell, "plain") + wrap(inner, "compose")
    log = scanned(data)
    assert log.line(0, 1)[0].text == shell[0]
    plain = scanned(wrap(inner, "plain"))
    assert [x.text for x in log.window(0, 3, 10**6)] == [x.text for x in plain.window(0, 1, 10**6)]


def test_ray_prefixes_only_some_lines() -> None:
    lines = real("tp2_on_one_gpu")
    data = "".join(f"(SchedulerActor pid={i}) {x}\n" if i % 3 == 0 else f"{x}\n" for i, x in enumerate(lines))
    assert everything(scanned(data.encode())) == everything(scanned(wrap(lines, "plain")))


def test_one_json_record_may_hold_a_whole_traceback() -> None:
    import json

    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: "\x1b[31mx\x1b[0m"'
    data = "".join(
        json.dumps({"levelname": "ERROR", "message": f"{i} failed", "exc_info": trace}) + "\n"
        for i in range(5)
    )
    log = scanned(data.encode(), ['KeyError: "x"', "2 failed"])
    assert [x.key for x in log.lines("2 failed")] == [(0, 3, 0)]
    assert [x.key for x in log.lines('KeyError: "x"')] == [(0, n, 4) for n in range(1, 6)]
    assert [x.text for x in log.line(0, 3)][3] == "    g()"


@pytest.mark.parametrize("form", ["cri", "docker"])
def test_a_line_that_the_runtime_cut_is_one_again(form: str) -> None:
    import json

    message = "server_args=ServerArgs(" + "x=1, " * 8000 + "needle_at_the_end=True)"
    pieces = [message[i : i + 16384] for i in range(0, len(message), 16384)]
    time = "2026-11-29T13:46:42.123456789Z"
    rows = ["first", *pieces, "last"]
    if form == "cri":
        tags = ["F"] + ["P"] * (len(pieces) - 1) + ["F", "F"]
        carried = [f"{time} stderr {tag} {row}" for tag, row in zip(tags, rows, strict=True)]
    else:
        cut = rows[1:-2]
        carried = [
            json.dumps({"log": row if row in cut else row + "\n", "stream": "stderr", "time": time})
            for row in rows
        ]
    log = scanned(("\n".join(carried) + "\n").encode(), ["needle_at_the_end", "ServerArgs(", "last"])
    assert log.files[0].line_count == len(rows)
    (line,) = log.lines("ServerArgs(")
    assert line.number == 2
    assert line.text.startswith("server_args=ServerArgs(")
    assert line.text.endswith("needle_at_the_end=True)")
    assert [x.key for x in log.lines("needle_at_the_end")] == [line.key]
    assert log.line(0, 3) == ()
    assert [x.number for x in log.window(0, 1, 99)] == [1, 2, len(rows)]
    assert log.window(0, 3, 4) == []


@pytest.mark.parametrize(
    ("text", "rank", "time", "body"),
    [
        ("[2026-11-29 13:46:42] server_args=x", None, "2026-11-29 13:46:42", "server_args=x"),
        ("[2026-11-29 13:46:42 TP1] Load", "TP1", "2026-11-29 13:46:42", "Load"),
        ("[2026-11-29 13:46:42 DP1 TP3 EP3] a", "DP1 TP3 EP3", "2026-11-29 13:46:42", "a"),
        (
            "[2026-11-29 13:46:42 DP0 ATTN_CP1 MOE_DP2 PP0 TP1 EP0] a",
            "DP0 ATTN_CP1 MOE_DP2 PP0 TP1 EP0",
            "2026-11-29 13:46:42",
            "a",
        ),
        ("[2026-11-29 13:46:42.123 PP0 TP1] a", "PP0 TP1", "2026-11-29 13:46:42.123", "a"),
        ("[2026-11-29 13:46:42,123 TP0] a", "TP0", "2026-11-29 13:46:42,123", "a"),
        ("[2026-11-29 13:46:42 encode_server] a", None, "2026-11-29 13:46:42", "a"),
        ("[2026-11-29 13:46:42 encode_dp_worker[2]] a", "encode_dp_worker[2]", "2026-11-29 13:46:42", "a"),
        ("[11-29 13:46:42] Starting server...", None, "11-29 13:46:42", "Starting server..."),
        ("[13:46:42 TP0] Init torch distributed begin.", "TP0", "13:46:42", "Init torch distributed begin."),
        ("[2026-11-29 13:46:42] [2026-11-29 13:46:42 TP2] a", "TP2", "2026-11-29 13:46:42", "a"),
        (
            "[2026-11-29 13:46:42] INFO:     10.0.0.1:1 - x",
            None,
            "2026-11-29 13:46:42",
            "INFO:     10.0.0.1:1 - x",
        ),
        ("[transformers] `use_fast`", None, None, "[transformers] `use_fast`"),
        ("INFO 11-29 13:46:42 x.py:1] a", None, None, "INFO 11-29 13:46:42 x.py:1] a"),
        ("[2026-11-29 13:46:42 TP1 a", None, None, "[2026-11-29 13:46:42 TP1 a"),
    ],
)
def test_sglangs_own_prefix(text: str, rank: str | None, time: str | None, body: str) -> None:
    (line,) = logical_lines(text, 1)
    assert (line.rank, line.time, line.body, line.text) == (rank, time, body, text)


BAR = "Capturing batches (bs=1 avail_mem=123.70 GB):   4%|▍         | 1/25 [00:00<00:04,  5.00it/s]"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"\r  0%|   | 0/25 [00:00<?, ?it/s]\r{BAR}", ["  0%|   | 0/25 [00:00<?, ?it/s]", BAR]),
        (f"{BAR}[2026-11-29 13:48:22 TP1] dead", [BAR, "[2026-11-29 13:48:22 TP1] dead"]),
        (f"{BAR} [2026-11-29 13:48:22] dead", [BAR + " ", "[2026-11-29 13:48:22] dead"]),
        (f"{BAR}Traceback (most recent call last):", [BAR, "Traceback (most recent call last):"]),
        (
            "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.0s/it]Killed",
            ["Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.0s/it]", "Killed"],
        ),
        ("unfinished[2026-11-29 13:48:22 TP1] other", ["unfinished", "[2026-11-29 13:48:22 TP1] other"]),
        ("it said '[2026-11-29 13:48:22 TP1] other'", ["it said '[2026-11-29 13:48:22 TP1] other'"]),
        ("after [2026-11-29 13:48:22] x", ["after [2026-11-29 13:48:22] x"]),
        (BAR, [BAR]),
        ("text\r", ["text"]),
        ("\r", [""]),
        ("", [""]),
    ],
)
def test_what_was_printed_behind_a_bar_is_a_line_of_its_own(text: str, parts: list[str]) -> None:
    assert [x.text for x in logical_lines(text, 1)] == parts
    assert [x.part for x in logical_lines(text.encode(), 1)] == list(range(len(parts)))


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_learning_and_peeling_take_anything(lines: list[bytes]) -> None:
    transports = learn([b"\n".join(lines)])
    for raw in lines:
        assert logical_lines(raw.replace(b"\n", b""), 1, 0, transports)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "data").glob("*_logs/*.log")), ids=lambda p: p.stem
)
def test_nothing_is_taken_off_a_plain_log(path: Path) -> None:
    # torch's tag stands on the lines of some exceptions only, wherever they are
    assert set(learn_from(LogSource.of_bytes(path.read_bytes(), path.name)).names) <= {"rank_prefix"}


@given(st.lists(st.text(alphabet="ab1 [](:|>-T\n", max_size=40), max_size=30))
def test_a_prefix_shape_takes_something_off_the_front_only(lines: list[str]) -> None:
    kind = shape_of(lines)
    for text in lines if kind is not None else ():
        found = kind.peel(text) if kind is not None else None
        assert found is None or text.endswith(found.rest)


def test_a_prefix_shape_is_given_up_quickly_on_long_words() -> None:
    lines = [f"job-{i}.7/3 x2 y3: [2026-01-01 00:00:0{i % 10}] text" for i in range(20)]
    kind = shape_of(lines)
    assert kind is not None
    assert kind.peel("a1" * 200_000) is None
    assert [kind.peel(x) for x in lines][3] == Peeled("x2 y3", None, "[2026-01-01 00:00:03] text")
