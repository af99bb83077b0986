"""A launch that stands still: when it is said, of whom, and what is held to be the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standing import RECORDED
from stuck_scenes import HANGS, QUIET, in_stage, judged, process

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.types import Stage
from mtpdoctor.watch.hangs import facts_of
from mtpdoctor.watch.stuck import Watchdog
from mtpdoctor.watch.types import Output, Process, Progress, Ready, Resumed, StageReached

# -- when ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [s for s in Stage if s is not Stage.SERVING])
def test_every_stage_may_be_quiet_for_its_time_and_not_longer(stage: Stage) -> None:
    dog = in_stage(stage)
    assert not dog.due(QUIET[stage] - 1)
    assert dog.due(QUIET[stage])
    stuck = judged(dog, QUIET[stage] + 1, process())
    assert stuck.stage is stage and stuck.quiet_s == QUIET[stage] + 1 and not stuck.compiling
    assert stuck.likely, "every stage has usual causes"
    assert all("To tell:" in cause and "Then:" in cause for cause in stuck.likely)


def test_it_is_told_again_ever_more_rarely_and_ends_with_a_sign_of_life() -> None:
    dog = in_stage(Stage.WEIGHTS)
    at, told = 0.0, []
    while at < 6000:
        at += 10
        if dog.due(at):
            dog.judge(at, [])
            told.append(at)
    assert 3 <= len(told) <= 5
    resumed = dog.saw(Output(at, ("[2026-01-01 00:00:00] Load weight end. elapsed=9000 s",)))
    assert isinstance(resumed, Resumed)
    assert dog.saw(Output(at + 1, ("another line",))) is None
    assert not dog.due(at + 10)


def test_a_server_may_be_quiet_for_ever() -> None:
    dog = in_stage(Stage.WARMUP)
    dog.saw(Ready(10.0, "http://127.0.0.1:30000"))
    assert not dog.due(1e6)


def test_chatter_and_endless_repetition_are_no_signs_of_life() -> None:
    dog = in_stage(Stage.DIST_INIT)
    for second in range(200):
        dog.saw(
            Output(
                float(second),
                (
                    f'[2026-01-01 00:00:{second % 60:02}] INFO:     10.0.0.1:5 - "GET /health HTTP/1.1" 503',
                    f"[2026-01-01 00:00:{second % 60:02}] [rank{second}] connecting to peer, attempt {second}",
                ),
            )
        )
    assert dog.due(200)


def test_a_bar_that_moves_is_progress_and_one_that_does_not_is_none() -> None:
    dog = in_stage(Stage.WEIGHTS)
    for n in range(40):
        at = n * 200.0
        dog.saw(
            Output(
                at, (f"Loading safetensors checkpoint shards:  {n}% Completed | {n}/40 [00:0{n % 9}<00:01]",)
            )
        )
        dog.saw(Progress(at, Stage.WEIGHTS, None, n, 40, "shards"))
        assert not dog.due(at + 100)
    for n in range(40, 60):
        at = n * 200.0
        dog.saw(Output(at, ("Loading safetensors checkpoint shards:  97% Completed | 39/40 [00:05<00:01]",)))
        dog.saw(Progress(at, Stage.WEIGHTS, None, 39, 40, "shards"))
    assert dog.due(60 * 200.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 500), st.sampled_from(["line", "stage", "progress", "judge"])), max_size=30
    )
)
@settings(max_examples=60, deadline=None)
def test_it_is_never_due_right_after_a_new_line(steps: list[tuple[float, str]]) -> None:
    dog, at = Watchdog(HANGS), 0.0
    for n, (wait, what) in enumerate(steps):
        at += wait
        if what == "line":
            dog.saw(Output(at, (f"something new {'abcdefghij'[n % 10] * (n + 1)}",)))
            assert not dog.due(at + 1)
        elif what == "stage":
            dog.saw(StageReached(at, list(Stage)[n % 11], f"TP{n % 3}", None, None))
            assert dog.quiet(at) == 0
        elif what == "progress":
            dog.saw(Progress(at, Stage.WEIGHTS, None, n, 100, "shards"))
        elif dog.due(at):
            assert judged(dog, at, process(rank=f"TP{n}")).quiet_s >= QUIET[dog.stage]
            assert not dog.due(at)


# -- who -----------------------------------------------------------------------------------------------


def lines(*texts: str) -> Output:
    return Output(1.0, tuple(f"[2026-01-01 00:00:00 {text}" for text in texts))


def test_ranks_that_are_behind_are_named() -> None:
    dog = in_stage(Stage.WEIGHTS, tp_size=4)
    dog.saw(lines(*(f"TP{i}] Load weight begin. avail mem=100.{i} GB" for i in range(4))))
    dog.saw(lines(*(f"TP{i}] Load weight end. elapsed={i} s" for i in (0, 1, 3))))
    assert judged(dog, 300).behind == ("TP2",)


def test_two_ranks_are_told_apart_by_what_they_began() -> None:
    dog = in_stage(Stage.DIST_INIT)
    dog.saw(lines("TP0] Init torch distributed begin.", "TP1] Init torch distributed begin."))
    assert dog.behind() == ()
    dog.saw(
        lines("TP1] Init torch distributed ends. mem usage=1 GB", "TP1] Load weight begin. avail mem=1 GB")
    )
    assert dog.behind() == ("TP0",)


@pytest.mark.parametrize(
    "told", ["server_args=ServerArgs(tp_size=3, nnodes=1)", "server_args={'tp_size': 3, 'x': 1}"]
)
def test_a_rank_that_says_nothing_is_behind(told: str) -> None:
    dog = in_stage(Stage.DIST_INIT)
    dog.saw(Output(0.5, (f"[2026-01-01 00:00:00] {told}",)))
    dog.saw(lines("TP0] Init torch distributed begin.", "TP2] Init torch distributed begin."))
    assert dog.behind() == ("TP1",)


@pytest.mark.parametrize(
    "name", ["tp2_ready_mtp", "tp2_killed_rank", "dpa_ready", "ep2_tp2", "pp2_ready", "dp2_ready"]
)
def test_no_rank_of_a_healthy_start_is_behind_at_its_end(name: str) -> None:
    path = next(p for p in (RECORDED / f"{name}.log",) if p.is_file())
    dog = Watchdog(HANGS)
    for line in path.read_text(errors="replace").splitlines():
        if "fired up" in line or "Traceback" in line:
            break
        dog.saw(Output(1.0, (line,)))
    if name != "tp2_killed_rank":
        assert dog.behind() == ()


# -- why -----------------------------------------------------------------------------------------------


def first(dog: Watchdog, *processes: Process, found: tuple[str, ...] = ()) -> str:
    return judged(dog, QUIET[dog.stage] + 1, *processes, found=found).likely[0]


def test_the_launch_command_speaks_too() -> None:
    command = "http_proxy=http://proxy:3128 python -m sglang.launch_server --model-path /m"
    given = Given(document=read_launch(command))
    dog = in_stage(Stage.WARMUP, facts=lambda: facts_of(given))
    dog.saw(lines("INFO:     Uvicorn running on http://127.0.0.1:30000"))
    told = judged(dog, 400, process()).likely[0]
    assert (
        told.startswith("A proxy of the environment") and "http_proxy is set" in told and "3128" not in told
    )
    assert facts_of(Given()) is None


def test_compilers_at_work_are_no_hang() -> None:
    dog = in_stage(Stage.GRAPH_CAPTURE)
    stuck = judged(dog, 400, process(), process(pid=7, name="cicc", state="running", cpu_percent=99.0))
    assert stuck.compiling and "being compiled" in stuck.likely[0] and "cicc" in stuck.likely[0]


@pytest.mark.parametrize(
    "frame",
    [
        "make_llir (triton/compiler/compiler.py:312)",
        "_worker_compile (torch/_inductor/async_compile.py:55)",
        "_run_ninja_build (torch/utils/cpp_extension.py:2400) run_ninja",
        "compile_all (deep_gemm/jit/compiler.py:120) deep_gemm compile",
    ],
)
def test_compiling_inside_the_process_is_seen_by_its_stack(frame: str) -> None:
    busy = process(cpu_percent=100.0, state="running", stack=("main (a.py:1)", frame))
    assert judged(in_stage(Stage.GRAPH_CAPTURE), 400, busy).compiling
    idle = process(cpu_percent=0.0, stack=("main (a.py:1)", frame))
    assert not judged(in_stage(Stage.GRAPH_CAPTURE), 400, idle).compiling


def test_a_stale_build_lock() -> None:
    waiting = process(
        stack=("_jit_compile (torch/utils/cpp_extension.py:2156)", "wait (torch/utils/file_baton.py:50)")
    )
    found = ("build lock ~/.cache/torch_extensions/py311/x/lock is 300 min old",)
    told = first(in_stage(Stage.GRAPH_CAPTURE), waiting, found=found)
    assert "build lock" in told and "file_baton" in told


def test_slow_storage_and_dead_storage() -> None:
    slow = process(state="disk sleep", cpu_percent=4.0, read_bytes_per_s=3e7)
    told = first(in_stage(Stage.WEIGHTS), slow, found=("weights on lustre, mounted at /shared",))
    assert "slowly from network storage" in told and "lustre" in told
    dead = process(state="disk sleep", cpu_percent=0.0, read_bytes_per_s=0.0)
    assert any("does not answer" in t for t in judged(in_stage(Stage.WEIGHTS), 300, dead).likely)


def test_nodes_that_do_not_come() -> None:
    dog = in_stage(Stage.DIST_INIT, nodes=2)
    dog.saw(lines("TP0] Init torch distributed begin."))
    waiting = process(
        stack=("init_process_group (torch/distributed/c10d.py:1)", "_create_c10d_store (rendezvous.py:9)")
    )
    assert "nodes that do not come" in first(dog, waiting)
    alone = in_stage(Stage.DIST_INIT, nodes=1)
    assert not any("nodes that" in t for t in judged(alone, 200, waiting).likely)


def test_a_spinning_collective_points_to_peer_access() -> None:
    dog = in_stage(Stage.DIST_INIT)
    dog.saw(lines(*(f"TP{i}] Init torch distributed begin." for i in range(2))))
    spin = [process(pid=i, rank=f"TP{i}", cpu_percent=100.0, gpu_percent=100) for i in range(2)]
    told = first(dog, *spin, found=("iommu is on (amd_iommu=on) and not passed through",))
    assert "write into each other's memory" in told and "NCCL_P2P_DISABLE" in told


def test_a_rank_that_died_without_a_word() -> None:
    dog = in_stage(Stage.GRAPH_CAPTURE)
    dog.saw(lines(*(f"TP{i}] Capture cuda graph begin. This can take minutes." for i in range(2))))
    told = first(
        dog, process(rank="TP0", cpu_percent=100.0, gpu_percent=100), process(rank="TP1", state="zombie")
    )
    assert "died without a word" in told and "TP1" in told


def test_a_wrong_interface_and_a_stalled_download() -> None:
    dog = in_stage(Stage.DIST_INIT)
    dog.saw(lines("TP0] Init torch distributed begin.", "TP1] Init torch distributed begin."))
    told = first(
        dog, process(), found=("interface 'eth9' of NCCL_SOCKET_IFNAME is not up here (there are lo)",)
    )
    assert "wrong network interface" in told and "eth9" in told
    told = first(
        in_stage(Stage.WEIGHTS),
        process(),
        found=("download 0ab3… is at 1.20 GiB and has not grown for 9 min",),
    )
    assert "does not move" in told


@given(
    st.sampled_from([s for s in Stage if s is not Stage.SERVING]),
    st.lists(
        st.builds(
            process,
            name=st.sampled_from(["sglang::scheduler_TP0", "nvcc", "python", "\x1b[31mx"]),
            rank=st.none() | st.sampled_from(["TP0", "DP1 TP3"]),
            state=st.sampled_from(["running", "sleeping", "disk sleep", "zombie", "stopped"]),
            cpu_percent=st.none() | st.floats(0, 3200),
            read_bytes_per_s=st.none() | st.floats(0, 1e10),
            gpu_percent=st.none() | st.integers(0, 100),
            stack=st.lists(st.text(max_size=30), max_size=3).map(tuple),
        ),
        max_size=4,
    ),
    st.lists(st.text(max_size=60), max_size=5),
)
@settings(max_examples=120, deadline=None)
def test_whatever_is_seen_there_is_an_answer(stage: Stage, seen: list[Process], texts: list[str]) -> None:
    dog = in_stage(stage, tp_size=2, nodes=2)
    dog.saw(Output(1.0, tuple(texts)))
    assert 1 <= len(judged(dog, 1000, *seen, found=tuple(texts)).likely) <= 4


def test_what_goes_on_while_it_is_looked_at_is_not_stuck() -> None:
    dog = in_stage(Stage.WEIGHTS)
    assert dog.due(300)
    dog.saw(Output(300.5, ("Load weight end.",)))
    assert dog.judge(301, [process()]) is None


def test_broken_knowledge_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "hangs").mkdir()
    (tmp_path / "hangs" / "stages.yaml").write_text(
        "stages: {weights: {quiet_s: much}}\nchatter: [x]\ncompiling: {}\n"
    )
    with pytest.raises(UserError, match=r"stages\.yaml"):
        load_hangs(tmp_path)
