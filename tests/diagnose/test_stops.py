"""A log that just stops: where it stands, who is behind, what may hold it up; and that no cause is claimed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.stop_line import span, stop_line
from mtpdoctor.diagnose.types import Report, Stop
from mtpdoctor.host.types import Gpu, HostFacts
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import read_logs, reading_from_text

ROOT = Path(__file__).resolve().parent.parent
LAUNCH = "python -m sglang.launch_server --model-path /m"


def at(second: int, rank: str, text: str) -> str:
    who = f" {rank}" if rank else ""
    return f"[2026-05-20 10:{second // 60:02}:{second % 60:02}{who}] {text}"


def log(*lines: str, command: str = "--tp 4") -> str:
    return "\n".join([f"$ {LAUNCH} {command}", *lines]) + "\n"


def started(ranks: int = 4, second: int = 2) -> list[str]:
    return [at(second, f"TP{i}", "Init torch distributed begin.") for i in range(ranks)]


def loading(ranks: int = 4) -> list[str]:
    out = started(ranks)
    out += [at(5, f"TP{i}", "Init torch distributed ends. mem usage=0.11 GB") for i in range(ranks)]
    return out + [at(6, f"TP{i}", "Load weight begin. avail mem=78.00 GB") for i in range(ranks)]


def report_on(text: str, told: Given | None = None) -> Report:
    knowledge = load_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals), knowledge, told or Given())


def stop_of(text: str, told: Given | None = None) -> Stop:
    report = report_on(text, told)
    assert report.outcome == "unfinished" and report.diagnoses == ()
    assert report.stop is not None
    return report.stop


def ids(stop: Stop) -> list[str]:
    return [cause.id for cause in stop.causes]


# -- where it stands -----------------------------------------------------------------------------------


def test_the_stage_the_last_sign_of_life_and_the_times_before_it() -> None:
    stop = stop_of(
        log(
            *loading(), "Loading safetensors checkpoint shards:  12% Completed | 3/25 [00:09<01:06,  3.0s/it]"
        )
    )
    assert stop.stage == "weights" and stop.progress == "3 of 25 shards"
    assert stop.last is not None and stop.last.number == 14 and "3/25" in stop.last.text
    assert stop.entered is not None and stop.entered.number == 10
    assert (stop.before, stop.before_s) == ("dist_init", 4)
    assert stop.quiet_s == 240 and stop.quiet_why
    assert stop.silent_s is None and stop.overdue is None  # the log's end is not the launch's
    assert ids(stop)[0] == "slow-weights"
    assert stop.causes[0].clues[0].line == stop.last


def test_a_stage_that_is_done_shows_no_bar_of_it() -> None:
    bar = "Loading safetensors checkpoint shards: 100% Completed | 25/25 [00:09<00:00,  3.0it/s]"
    assert stop_of(log(*loading(), bar)).progress is None
    half = "Loading safetensors checkpoint shards:  12% Completed | 3/25 [00:09<01:06,  3.0s/it]"
    assert (
        stop_of(
            log(*loading(1), half, at(40, "TP0", "Load weight end. avail mem=10 GB"), command="")
        ).progress
        is None
    )


@pytest.mark.parametrize(("until", "overdue"), [(100, False), (1200, True)])
def test_health_checks_show_how_long_it_has_been_quiet(until: int, overdue: bool) -> None:
    up = [
        at(20, "", "INFO:     Started server process [1]"),
        at(21, "", "INFO:     Application startup complete."),
    ]
    checks = [
        at(
            second,
            "",
            f'INFO:     10.0.0.9:{40000 + second} - "GET /health HTTP/1.1" 503 Service Unavailable',
        )
        for second in range(30, until + 1, 10)
    ]
    stop = stop_of(log(*loading(), *up, *checks))
    assert stop.last is not None and "startup complete" in stop.last.text
    assert stop.silent_until is not None and "/health" in stop.silent_until.text
    assert stop.silent_s == until - 21 and stop.overdue is overdue
    assert ids(stop) == ["warmup-request"]


def test_a_line_that_repeats_itself_is_no_sign_of_life() -> None:
    again = [
        at(60 + 10 * n, "", f"Router: worker {n} of http://10.0.0.2:30000 is not there yet")
        for n in range(80)
    ]
    stop = stop_of(log(*loading(), *again))
    assert stop.last is not None and stop.last.text.startswith("[2026-05-20 10:04:10]")
    assert stop.silent_s == 600 and stop.overdue


def test_of_several_files_the_one_written_last_has_the_last_sign(tmp_path: Path) -> None:
    one, two = tmp_path / "node0.log", tmp_path / "node1.log"
    one.write_text(
        log(*started(2, 30), command="--tp 4 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000")
    )
    two.write_text("\n".join(at(9, f"TP{i}", "Init torch distributed begin.") for i in (2, 3)) + "\n")
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(one), str(two)], knowledge.literals), knowledge)
    assert report.stop is not None and report.stop.last is not None
    assert report.stop.last.file == 0 and report.stop.late == ()


# -- ranks ---------------------------------------------------------------------------------------------


def test_a_rank_that_began_what_the_others_ended_is_behind() -> None:
    ends = [at(40, f"TP{i}", "Load weight end. avail mem=10 GB") for i in (0, 1, 3)]
    stop = stop_of(log(*loading(), *ends))
    assert [(late.rank, late.stage) for late in stop.late] == [("TP2", "weights")]
    assert stop.late[0].last is not None and stop.late[0].last.number == 12
    assert ids(stop)[0] == "rank-behind" and "TP2" in stop.causes[0].clues[0].text


def test_a_rank_that_says_nothing_before_the_ranks_have_met_is_behind_and_later_was_only_left_out() -> None:
    stop = stop_of(log(*started(1), command="--tp 2"))
    assert [(late.rank, late.last) for late in stop.late] == [("TP1", None)]
    assert stop_of(log(*loading(1), command="--tp 8")).late == ()
    nodes = "--tp 4 --nnodes 2 --node-rank 1 --dist-init-addr 10.0.0.1:5000"
    here = [at(2, "TP2", "Init torch distributed begin.")]
    assert [late.rank for late in stop_of(log(*here, command=nodes)).late] == ["TP3"]


def test_the_words_of_newer_releases_count_too() -> None:
    begun = [at(2, f"TP{i}", "Init parallel begin.") for i in range(2)]
    stop = stop_of(log(*begun, command="--tp 2"))
    assert stop.stage == "dist_init" and stop.late == () and "nodes-missing" not in ids(stop)
    half = stop_of(log(*begun, at(4, "TP0", "Init parallel ends. elapsed=1.20 s"), command="--tp 2"))
    assert [late.rank for late in half.late] == ["TP1"] and ids(half)[0] == "rank-behind"


def test_an_expert_rank_is_no_rank_of_its_own() -> None:
    lines = [*loading(), *(at(30, f"TP{i} EP{i}", "Load weight end. avail mem=10 GB") for i in range(4))]
    stop = stop_of(log(*lines))
    assert stop.ranks == 4 and stop.late == ()


# -- what may hold it up -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "command", "first"),
    [
        (started(8), "--tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000", "nodes-missing"),
        (started(8), "--tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 127.0.0.1:5000", "address-loopback"),
        ([*started(4), at(4, "TP0", "sglang is using nccl==2.28.9")], "--tp 4", "p2p"),
        (
            [*loading(), "DeepGEMM warmup:   4%|#   | 655/16384 [01:02<24:40, 10.62it/s]"],
            "--tp 4",
            "deepgemm-warmup",
        ),
        ([*loading(1), at(30, "TP0", "Load weight end. avail mem=10 GB")], "", "after-weights"),
        (
            [
                *loading(),
                at(
                    30,
                    "TP0",
                    "Capture cuda graph begin. This can take up to several minutes. avail mem=12.00 GB",
                ),
                at(31, "TP0", "Registering 0 cuda graph addresses"),
                at(31, "TP1", "Registering 0 cuda graph addresses"),
            ],
            "--tp 4",
            "custom-all-reduce",
        ),
        (
            [*loading(1), at(30, "TP0", "Capture cuda graph begin. avail mem=12.00 GB")],
            "--enable-torch-compile",
            "torch-compile",
        ),
        (
            [
                *loading(1),
                at(20, "", "INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)"),
            ],
            "--disaggregation-mode prefill",
            "pd-peer",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_the_causes_go_by_stage_lines_and_command(lines: list[str], command: str, first: str) -> None:
    stop = stop_of(log(*lines, command=command))
    assert ids(stop)[0] == first and len(ids(stop)) <= 4
    assert all(cause.tell and cause.do for cause in stop.causes)


def test_a_proxy_of_the_command_speaks_for_itself_and_its_address_is_not_shown() -> None:
    up = at(20, "", "INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
    text = log(*loading(1), up, command="").replace(
        "$ python", "$ http_proxy=http://joe:s3cret@proxy:3128 python"
    )
    stop = stop_of(text)
    assert ids(stop)[0] == "proxy" and stop.causes[0].clues[0].text == "http_proxy is set"
    without = stop_of(log(*loading(1), up, command=""))
    assert "proxy" not in ids(without)


def test_what_would_decide_is_named_and_what_the_host_is_known_to_be_counts() -> None:
    text = log(*started(2), at(4, "TP0", "sglang is using nccl==2.28.9"), command="--tp 2")
    stop = stop_of(text)
    assert "whether the GPUs are busy" in stop.causes[0].open
    cards = tuple(Gpu(i, "NVIDIA GeForce RTX 4090", 89, 24.0, 24.0) for i in range(2))
    known = stop_of(text, Given(host=HostFacts("cuda", cards)))
    assert "the GPU's name is NVIDIA GeForce RTX 4090" in [clue.text for clue in known.causes[0].clues]


def test_an_option_that_was_not_given_and_a_release_without_the_cause_leave_it_out() -> None:
    capture = [*loading(), at(30, "TP0", "Running FlashInfer autotune...")]
    tuned = log(*capture, command="--tp 4 --enable-symm-mem")
    assert ids(stop_of(tuned, Given(release="0.5.13")))[0] == "autotune-symmetric-memory"
    assert "autotune-symmetric-memory" not in ids(stop_of(tuned, Given(release="0.5.20")))
    assert "autotune-symmetric-memory" not in ids(stop_of(log(*capture), Given(release="0.5.13")))


PY_SPY = """Process 4242: sglang::scheduler_TP1
Python v3.12.11 (/usr/bin/python3.12)

Thread 4242 (idle): "MainThread"
    acquire (filelock/_api.py:344)
    __enter__ (filelock/_api.py:376)
    load_cuda_ops (flashinfer/jit/core.py:134)
Thread 4300 (idle): "Thread-1"
    wait (threading.py:355)
"""
FAULTHANDLER = """Thread 0x00007f1c2a7fc700 (most recent call first):
  File "/usr/lib/python3/site-packages/torch/utils/file_baton.py", line 50 in wait
  File "/usr/lib/python3/site-packages/torch/utils/cpp_extension.py", line 2156 in _jit_compile
"""


@pytest.mark.parametrize(("dump", "frame"), [(PY_SPY, "filelock"), (FAULTHANDLER, "file_baton")])
def test_stacks_pasted_into_the_log_count(dump: str, frame: str) -> None:
    lines = [*loading(2), at(9, "TP0", "Capture cuda graph begin. avail mem=12.00 GB")]
    stop = stop_of(log(*lines, command="--tp 2") + dump)
    assert ids(stop)[0] in ("stale-build-lock", "flashinfer-jit")
    lock = next(cause for cause in stop.causes if cause.id == "stale-build-lock")
    assert frame in lock.clues[0].text and lock.clues[0].line is not None
    assert "the Python stacks of the ranks" not in lock.open


# -- no false alarm ------------------------------------------------------------------------------------


def test_what_a_person_ended_in_time_is_told_as_that() -> None:
    text = log(
        *loading(2),
        at(20, "", "kill_process_tree called: parent_pid=1"),
        "KeyboardInterrupt",
        command="--tp 2",
    )
    stop = stop_of(text)
    assert stop.ended is not None and stop.causes == () and not stop.overdue
    assert stop.silent_s == 14 and stop_line(stop) == "stopped from outside at weights"


def test_what_a_person_ended_after_a_long_silence_stood_still() -> None:
    late = "[2026-05-20 10:41:00] kill_process_tree called: parent_pid=1"
    stop = stop_of(log(*loading(2), late, "KeyboardInterrupt", command="--tp 2"))
    assert stop.ended is not None and stop.overdue and stop.causes


def test_a_server_that_answers_serves() -> None:
    answer = at(30, "", 'INFO:     10.1.1.1:40001 - "POST /v1/embeddings HTTP/1.1" 200 OK')
    up = at(20, "", "INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
    stop = stop_of(log(*loading(1), up, answer, command=""))
    assert stop.answers is not None and stop.causes == ()


@pytest.mark.parametrize(
    "name",
    [
        *(f"tests/healthy/{p.name}" for p in sorted((ROOT / "healthy").glob("unfinished_*.log"))),
        "tests/data/unseen_reports/h08_still_loading.log",
        "tests/data/unseen_reports/h12_help_text.log",
        "tests/data/public_reports/unfinished_cut_while_loading.log",
    ],
)
def test_a_start_that_is_well_has_no_rank_behind_and_is_not_overdue(name: str) -> None:
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(ROOT.parent / name)], knowledge.literals), knowledge)
    assert report.outcome == "unfinished" and report.stop is not None
    assert report.stop.late == () and not report.stop.overdue


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("public_reports/unfinished_waiting_for_node1", "nodes-missing"),
        ("public_reports/unfinished_cut_in_jit_warmup", "deepgemm-warmup"),
        ("public_reports/unfinished_download_progress", "download-stalled"),
        ("unseen_reports/r34_deepep_freeze", "deepgemm-warmup"),
        ("unseen_reports/r62_pd_hicache_stuck", "cache-store"),
        ("unseen_reports/r63_k2_stuck_after_load", "after-weights"),
        ("unseen_reports/r64_spark_idles_after_download", "after-download"),
        ("h200_logs/two_nodes_alone", "address-loopback"),
    ],
)
def test_reports_of_hangs(name: str, expected: str) -> None:
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(ROOT / "data" / f"{name}.log")], knowledge.literals), knowledge)
    assert report.stop is not None and ids(report.stop)[0] == expected


@given(st.lists(st.text(max_size=60), max_size=12), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_whatever_stands_behind_a_start_it_is_told(texts: list[str], cut: int) -> None:
    report = report_on(log(*loading(2)[: 6 - cut], command="--tp 2") + "\n".join(texts))
    if report.outcome == "unfinished":
        assert report.stop is not None and len(report.stop.causes) <= 4 and stop_line(report.stop)


@pytest.mark.parametrize(
    ("log_name", "loaded"),
    [
        ("sample_logs/spec_no_buffer_with_radix.log", False),
        ("tests/healthy/unfinished_059_loading.log", True),
    ],
)
def test_only_a_log_that_stops_loads_the_knowledge_of_hangs(log_name: str, loaded: bool) -> None:
    code = (
        "import sys; from mtpdoctor.cli.main import main; main(sys.argv[1:]);"
        "found = {'mtpdoctor.kb.hangs', 'mtpdoctor.diagnose.stops'} & set(sys.modules); sys.exit(40 + len(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "diagnose", log_name],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == (42 if loaded else 40), done.stderr


def test_a_launch_without_sglang_has_no_stop() -> None:
    assert report_on("hello\nworld\n").stop is None


def test_spans_in_words() -> None:
    assert [span(s) for s in (None, 4.2, 119, 240, 7200, 9000)] == [
        "?",
        "4 s",
        "119 s",
        "4 min",
        "2 h",
        "2 h 30 min",
    ]


def test_a_command_given_beside_the_log_counts() -> None:
    told = Given(
        document=read_launch(f"{LAUNCH} --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000")
    )
    stop = stop_of("\n".join(started(8)) + "\n", told)
    assert ids(stop)[0] == "nodes-missing"


def test_what_rules_foresee_of_the_stages_to_come_is_noted() -> None:
    """A limit of no request at all stops the warm-up (0.5.7 and later); what the stages behind it would have refused is not foreseen."""
    shown = log(*loading(), command="--tp 4 --prefill-max-requests 0")
    notes = report_on(shown, Given(release="0.5.10")).notes
    assert [n[:40] for n in notes if "foresees" in n] == ["MTP2338 foresees that this launch fails:"]
    assert not any("foresees" in n for n in report_on(shown, Given(release="0.5.6")).notes)
    passed = log(*loading(), command="--tp 4 --tool-call-parser nonsense")
    assert not any("foresees" in n for n in report_on(passed, Given(release="0.5.10")).notes)
